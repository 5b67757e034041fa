import { join } from 'node:path';
import type { StopKind } from './batch.ts';
import { branchTranscript, type BranchedSession } from './branch.ts';
import { Chats, type ChatsDeps } from './chats.ts';
import type { Damage } from './conversation.ts';
import { callIdsOf } from './eligibility.ts';
import { SessionFault } from './faults.ts';
import { allChatsDirs, deleteSession, type ListWanted, listSessions, type SessionPage } from './files.ts';
import { isStoredSessionId, parseSessionId } from './ids.ts';
import { chatPath, chatsDir, type PathEnvironment, runtimeDir } from './paths.ts';
import type { SessionEvent, ToolSetup } from './ports.ts';
import type { LeftOpen } from './replay.ts';
import { Session, type SessionDeps } from './session.ts';
import { type TranscriptFile, withTranscript } from './transcript-file.ts';

export interface SessionsDeps extends SessionDeps, ChatsDeps {
  readonly env: PathEnvironment;
}

/** A session as one load found it. */
export interface Loaded {
  readonly session: Session;
  /** The calls that can be asked again; the hint is given when there are any. */
  readonly open: ReadonlySet<string>;
}

/** What a replay shows: the records as they were when the load began, and what a running turn has said since. */
export interface LoadedReplay extends Loaded {
  /** Undefined for a session that has not written anything yet. */
  readonly file: TranscriptFile | undefined;
  readonly left: LeftOpen;
  readonly inFlight: readonly SessionEvent[];
  /** To be told what of the file could not be read. */
  readonly damaged: (damage: Damage) => void;
}

/** The live sessions of this process, and the saved ones on disk. */
export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #chats: Chats;
  readonly #live = new Map<string, Session>();
  /** Sessions that are being opened, so that two loads at once share one. */
  readonly #opening = new Map<string, Promise<Session>>();
  /** Sessions that are no longer live, but whose turns still end, or whose files are being removed. */
  readonly #closing = new Map<string, Promise<void>>();
  /** Idle sessions whose files are being looked at: a second look would close what the first load opened. */
  readonly #refreshing = new Map<Session, Promise<void>>();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
    this.#chats = new Chats(deps);
  }

  /** A live session, by its id in any case. */
  find(sessionId: string): Session | undefined {
    return this.#live.get(sessionId.toLowerCase());
  }

  /** Starts a session without records. Throws `SessionFault` `auth_required`, or `invalid_params` for an id in use. */
  async create(cwd: string, wantedId: string | undefined, setup: ToolSetup): Promise<Session> {
    const id = wantedId === undefined ? crypto.randomUUID() : wantedSessionId(wantedId);
    await this.#deps.model(cwd);
    const path = chatPath(cwd, id, this.#deps.env);
    // The file first: what lives is looked at in the same step that adds to it.
    if (wantedId !== undefined && ((await exists(path)) || this.#live.has(id) || this.#closing.has(id))) {
      throw new SessionFault('invalid_params', `The session ${id} exists already; load it, or choose another id.`);
    }
    const session = new Session(id, this.#chats.create(id, cwd, path), this.#deps);
    session.configure(setup);
    this.#live.set(id, session);
    return session;
  }

  /** Attaches to a session without a replay. Throws `SessionFault` `unknown_session`. */
  async resume(sessionId: string, cwd: string, suppressed: boolean, setup: ToolSetup): Promise<Loaded> {
    const session = await this.#attach(sessionId, cwd, setup);
    await this.#refresh(session);
    session.attachedUnseen();
    return this.#decide(session, suppressed);
  }

  /**
   * Attaches to a session and hands what is to be replayed to `show`; live updates wait until what `delivered` gives has
   * settled, which is asked only when `show` has succeeded. Throws `SessionFault` and what `show` throws.
   */
  async load<T>(
    sessionId: string,
    cwd: string,
    suppressed: boolean,
    setup: ToolSetup,
    show: (loaded: LoadedReplay) => Promise<T>,
    delivered: () => Promise<void>,
  ): Promise<T> {
    const session = await this.#attach(sessionId, cwd, setup);
    return await session.showing(async () => {
      await this.#refresh(session);
      const loaded = this.#decide(session, suppressed);
      return await this.#withReplay(session, loaded, show);
    }, delivered);
  }

  /** Hands the records of a session to `read` without starting it; nothing is opened. */
  async peek<T>(
    sessionId: string,
    cwd: string,
    read: (replay: Omit<LoadedReplay, 'session'>) => Promise<T>,
  ): Promise<T> {
    const id = parseSessionId(sessionId);
    const path = chatPath(cwd, id, this.#deps.env);
    const live = this.#live.get(id);
    if (live?.cwd === cwd) return await this.#withReplay(live, { session: live, open: new Set() }, read);
    return await withTranscript(path, undefined, async (file) => {
      if (file === undefined) throw unknownSession(id);
      const left = { open: new Set<string>(), waiting: new Set<string>() };
      return await read({
        open: left.open,
        file,
        left,
        inFlight: [],
        damaged: (damage) => this.#chats.warn(path, damage),
      });
    });
  }

  /** The saved sessions of a folder, or of all, the newest first. */
  async list(wanted: ListWanted): Promise<SessionPage> {
    const { env } = this.#deps;
    const folders = wanted.cwd === undefined ? allChatsDirs(runtimeDir(env)) : [chatsDir(wanted.cwd, env)];
    return await listSessions(folders, wanted);
  }

  /** Ends a live session: its turn stops, everything is written. */
  async close(sessionId: string): Promise<void> {
    const session = this.find(sessionId);
    if (session !== undefined) await this.#end(session.id, async () => {});
  }

  /** Ends a session and removes its files; one that is not there is removed already. Throws `SessionFault`. */
  async delete(sessionId: string): Promise<void> {
    const id = sessionId.toLowerCase();
    if (!isStoredSessionId(id)) return;
    await this.#opening.get(id)?.catch(ignore);
    const path = this.#live.get(id)?.chat.store.path;
    const paths = path === undefined ? this.#savedPaths(id) : [path];
    await this.#end(id, async () => {
      for (const path of paths) await deleteSession(path);
    });
  }

  /** Ends a session, if it is live, and then does `last`. Whoever loads it meanwhile waits, and finds what is left then. */
  async #end(id: string, last: () => Promise<void>): Promise<void> {
    const session = this.#live.get(id);
    // Gone at once, so that nothing begins in it any more.
    this.#live.delete(id);
    session?.stop('close');
    const ended = Promise.all([this.#closing.get(id), session?.ended()]).then(last);
    const closing = ended.then(ignore, ignore).finally(() => {
      if (this.#closing.get(id) === closing) this.#closing.delete(id);
    });
    this.#closing.set(id, closing);
    await closing;
    await ended;
  }

  /** Copies a session's conversation into a new one. Throws `SessionFault`. */
  async branch(sessionId: string, cwd: string, name: string | undefined): Promise<BranchedSession> {
    const id = parseSessionId(sessionId);
    await this.#closing.get(id);
    if (this.#live.get(id)?.busy) {
      throw new SessionFault(
        'invalid_params',
        `A turn is running in session ${id}; branch it when the turn has ended.`,
      );
    }
    const { env } = this.#deps;
    const titles = (await this.list({ cwd })).sessions.flatMap(({ title }) => title ?? []);
    return await withTranscript(chatPath(cwd, id, env), undefined, async (file) => {
      if (file === undefined) throw unknownSession(id);
      const newId = crypto.randomUUID();
      const context = this.#chats.context(newId, cwd);
      return await branchTranscript({ file, name, titles, context, path: chatPath(cwd, newId, env) });
    });
  }

  /** Stops every turn and waits until everything is written. */
  async shutdown(kind: StopKind): Promise<void> {
    const sessions = [...this.#live.values()];
    for (const session of sessions) session.stop(kind);
    await Promise.all([...sessions.map((session) => session.ended()), ...this.#closing.values()]);
  }

  async #attach(sessionId: string, cwd: string, setup: ToolSetup): Promise<Session> {
    const id = parseSessionId(sessionId);
    const session = this.#live.get(id) ?? (await (this.#opening.get(id) ?? this.#open(id, cwd)));
    if (session.cwd === cwd) {
      session.configure(setup);
      return session;
    }
    throw new SessionFault(
      'invalid_params',
      `The session ${id} is open in ${session.cwd}; load it with that folder as cwd.`,
    );
  }

  #open(id: string, cwd: string): Promise<Session> {
    const opening = this.#read(id, cwd).finally(() => this.#opening.delete(id));
    this.#opening.set(id, opening);
    return opening;
  }

  async #read(id: string, cwd: string): Promise<Session> {
    await this.#closing.get(id);
    const path = chatPath(cwd, id, this.#deps.env);
    const chat = await this.#chats.read(id, cwd, path);
    if (chat === undefined) throw unknownSession(id);
    const session = new Session(id, chat, this.#deps);
    this.#live.set(id, session);
    return session;
  }

  /** An idle session that another process wrote to is read anew, once for all loads that find it so. */
  #refresh(session: Session): Promise<void> {
    const running = this.#refreshing.get(session);
    if (running !== undefined) return running;
    const refreshing = this.#refreshNow(session).finally(() => this.#refreshing.delete(session));
    this.#refreshing.set(session, refreshing);
    return refreshing;
  }

  async #refreshNow(session: Session): Promise<void> {
    const { store } = session.chat;
    const { path, tail } = store;
    // A turn that began meanwhile writes the file itself, and keeps the chat that it began with.
    const isOurs = () => session.busy || store.tail !== tail;
    if (isOurs()) return;
    const unchanged = await withTranscript(path, undefined, async (file) => {
      if (file === undefined) return tail === null;
      if (tail === null || file.ino !== tail.ino || file.size !== tail.size) return false;
      const end = Buffer.alloc(tail.tailBytes.length);
      await file.handle.read(end, 0, end.length, file.size - end.length);
      return end.equals(tail.tailBytes);
    });
    if (unchanged || isOurs()) return;
    const chat = await this.#chats.read(session.id, session.cwd, path);
    if (isOurs()) return;
    if (chat !== undefined) return session.reread(chat);
    if (this.#live.get(session.id) === session) this.#live.delete(session.id);
    void session.ended();
    throw unknownSession(session.id);
  }

  #decide(session: Session, suppressed: boolean): Loaded {
    const eligibility = session.open(suppressed);
    if ('reason' in eligibility)
      this.#deps.log.debug(`session ${session.id} is not asked again: ${eligibility.reason}`);
    return { session, open: callIdsOf(eligibility) };
  }

  async #withReplay<T>(session: Session, loaded: Loaded, use: (replay: LoadedReplay) => Promise<T>): Promise<T> {
    // Taken in one go: what is on disk, what waits, and what is said but not on disk yet.
    const { path, tail } = session.chat.store;
    const left = { open: loaded.open, waiting: session.waiting() };
    const inFlight = session.inFlight();
    const shown = { ...loaded, left, inFlight, damaged: (damage: Damage) => this.#chats.warn(path, damage) };
    if (tail === null) return await use({ ...shown, file: undefined });
    return await withTranscript(path, tail.size, async (file) => await use({ ...shown, file }));
  }

  #savedPaths(id: string): readonly string[] {
    return allChatsDirs(runtimeDir(this.#deps.env)).map((folder) => join(folder, `${parseSessionId(id)}.jsonl`));
  }
}

function wantedSessionId(text: string): string {
  try {
    return parseSessionId(text);
  } catch {
    throw new SessionFault(
      'invalid_params',
      `A session id must be a UUID, which ${JSON.stringify(text.slice(0, 80))} is not.`,
    );
  }
}

const unknownSession = (id: string) => new SessionFault('unknown_session', `There is no session ${id}.`);

async function exists(path: string): Promise<boolean> {
  return await withTranscript(path, undefined, async (file) => file !== undefined);
}

function ignore(): void {}
