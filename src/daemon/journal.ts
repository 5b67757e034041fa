import { createHash, randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { errorCode } from '../error-code.ts';
import type { Log } from '../log.ts';
import { own } from '../meta/meta.ts';
import type { Vote } from './ports.ts';
import { questionsOf } from './votes.ts';

/** After this long nobody waits for what the answer was given to. */
const KEPT_FOR_MS = 30 * 24 * 60 * 60 * 1000;

/** The call that a vote was for: the same again when it is asked again. */
export interface JournalKey {
  readonly sessionId: string;
  readonly callId: string;
  /** A hash of what was asked. */
  readonly questions: string;
}

/** Undefined for a request that asks no questions: no other is ever asked again. */
export function journalKey(request: RequestPermissionRequest): JournalKey | undefined {
  const questions = questionsOf(request);
  if (!questions) return undefined;
  const { sessionId, toolCall } = request;
  const asked = createHash('sha256').update(JSON.stringify(questions)).digest('hex');
  return { sessionId, callId: toolCall.toolCallId, questions: asked };
}

/** The journal's folder, beside the sessions': `QWEN_RUNTIME_DIR`, else `QWEN_HOME`, else `~/.qwen`. */
export function journalDir(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const home = env['HOME'] || homedir();
  const configured = env['QWEN_RUNTIME_DIR'] || env['QWEN_HOME'];
  const base = configured ? resolve(configured.replace(/^~(?=\/|$)/, home)) : join(home, '.qwen');
  return join(base, 'qwen-acp', 'votes');
}

/**
 * Votes that were accepted and have not reached a transcript yet. Each is a file of its own, written whole under another
 * name and renamed, so a crash leaves either all of a vote or none, and daemons that run at the same time cannot
 * disturb each other's.
 */
export class Journal {
  readonly #dir: string;
  readonly #log: Log;
  readonly #now: () => number;
  /** Work on each session's files, in order: what is forgotten is what was accepted before. */
  readonly #tails = new Map<string, Promise<void>>();
  /** The names of the files of each session, those of earlier processes included. */
  #names: Promise<Map<string, Set<string>>> | undefined;
  #folder: Promise<FileHandle> | undefined;
  #nextSync: Promise<void> | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(dir: string, log: Log, now: () => number = Date.now) {
    this.#dir = dir;
    this.#log = log;
    this.#now = now;
  }

  /** Resolves once the vote is on disk to stay; rejects when it may not be. */
  record(key: JournalKey, vote: Vote): Promise<void> {
    return this.#inOrder(key.sessionId, async () => {
      const folder = await this.#open();
      const temporary = join(this.#dir, `${randomUUID()}.tmp`);
      const file = await this.#openNew(temporary);
      try {
        await file.writeFile(`${JSON.stringify({ v: 1, ...key, at: new Date(this.#now()).toISOString(), vote })}\n`);
        await file.datasync();
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      } finally {
        await file.close();
      }
      await this.#noteName(key);
      await rename(temporary, this.#path(key));
      await this.#synced(folder);
    });
  }

  /** The vote that was accepted for this call, unless it is too old or cannot be read. */
  async find(key: JournalKey): Promise<Vote | undefined> {
    await this.#tails.get(sessionPrefix(key.sessionId));
    try {
      const line = await readFile(this.#path(key), 'utf8');
      // Another daemon may have accepted it since this one read the folder.
      await this.#noteName(key);
      return this.#voteIn(line, key);
    } catch (error) {
      // What the parser says quotes the file, and an answer has no place in a log.
      const cause = error instanceof SyntaxError ? 'a file is damaged' : error;
      if (errorCode(error) !== 'ENOENT') this.#log.warn('the journal of votes cannot be read', cause);
      return undefined;
    }
  }

  /** Forgets what was accepted for a session so far: it was answered for good, or a person cancelled it. */
  forgetSession(sessionId: string): Promise<void> {
    return this.#inOrder(sessionId, async () => {
      const prefix = sessionPrefix(sessionId);
      const kept = await this.#kept();
      const names = kept.get(prefix);
      if (!names) return;
      kept.delete(prefix);
      await Promise.all(Array.from(names, (name) => rm(join(this.#dir, name), { force: true })));
      await this.#synced(await this.#open());
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#tails.values());
    await this.#nextSync?.catch(() => {});
    await this.#running;
    await this.#closeFolder();
  }

  async #closeFolder(): Promise<void> {
    const folder = this.#folder;
    this.#folder = undefined;
    await (await folder?.catch(() => undefined))?.close();
  }

  #path(key: JournalKey): string {
    return join(this.#dir, fileName(key));
  }

  #voteIn(line: string, key: JournalKey): Vote | undefined {
    const entry: unknown = JSON.parse(line);
    if (own(entry, 'v') !== 1) return undefined;
    const isSame = (['sessionId', 'callId', 'questions'] as const).every((name) => own(entry, name) === key[name]);
    const isFresh = this.#now() - Date.parse(String(own(entry, 'at'))) < KEPT_FOR_MS;
    const vote = own(entry, 'vote');
    return isSame && isFresh && isVote(vote) ? vote : undefined;
  }

  async #inOrder(sessionId: string, work: () => Promise<void>): Promise<void> {
    const prefix = sessionPrefix(sessionId);
    const done = (this.#tails.get(prefix) ?? Promise.resolve()).then(work);
    const tail = done.catch(() => {});
    this.#tails.set(prefix, tail);
    try {
      await done;
    } finally {
      if (this.#tails.get(prefix) === tail) this.#tails.delete(prefix);
    }
  }

  async #openNew(path: string): Promise<FileHandle> {
    try {
      return await open(path, 'wx', 0o600);
    } catch (error) {
      // Somebody removed the folder: the next vote makes it anew.
      if (errorCode(error) === 'ENOENT') await this.#closeFolder();
      throw error;
    }
  }

  async #noteName(key: JournalKey): Promise<void> {
    const kept = await this.#kept();
    const prefix = sessionPrefix(key.sessionId);
    const names = kept.get(prefix);
    if (names) names.add(fileName(key));
    else kept.set(prefix, new Set([fileName(key)]));
  }

  #kept(): Promise<Map<string, Set<string>>> {
    this.#names ??= readNames(this.#dir);
    return this.#names;
  }

  #open(): Promise<FileHandle> {
    this.#folder ??= this.#create().catch((error: unknown) => {
      this.#folder = undefined;
      throw error;
    });
    return this.#folder;
  }

  async #create(): Promise<FileHandle> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    // The folder's own name must last, too, and its parent's.
    for (const parent of [join(this.#dir, '..', '..'), join(this.#dir, '..')]) await syncFolder(parent);
    const folder = await open(this.#dir, 'r');
    await this.#sweep().catch((error: unknown) => this.#log.warn('old votes could not be removed', error));
    return folder;
  }

  /** Removes what is too old, and what a crash left half written. */
  async #sweep(): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      const path = join(this.#dir, name);
      const found = await stat(path).catch(() => undefined);
      const limit = name.endsWith('.tmp') ? 60 * 60 * 1000 : KEPT_FOR_MS;
      if (found && this.#now() - found.mtimeMs > limit) await rm(path, { force: true });
    }
  }

  /** Makes the folder's names durable, once for all who ask while a sync is under way. */
  #synced(folder: FileHandle): Promise<void> {
    this.#nextSync ??= this.#startSync(folder);
    return this.#nextSync;
  }

  async #startSync(folder: FileHandle): Promise<void> {
    await this.#running;
    this.#nextSync = undefined;
    const sync = folder.sync();
    this.#running = sync.catch(() => {});
    await sync;
  }
}

async function readNames(dir: string): Promise<Map<string, Set<string>>> {
  const names = await readdir(dir).catch(() => []);
  const kept = new Map<string, Set<string>>();
  for (const name of names) {
    const prefix = name.slice(0, name.indexOf('.') + 1);
    kept.set(prefix, (kept.get(prefix) ?? new Set()).add(name));
  }
  return kept;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
/** Ids come from other programs, so they are hashed before they name a file. */
const sessionPrefix = (sessionId: string): string => `${hash(sessionId).slice(0, 32)}.`;
const fileName = ({ sessionId, callId, questions }: JournalKey): string =>
  `${sessionPrefix(sessionId)}${hash(JSON.stringify([callId, questions])).slice(0, 32)}.json`;

function isVote(value: unknown): value is Vote {
  const kind = own(value, 'kind');
  return kind === 'cancelled' || (kind === 'selected' && typeof own(value, 'optionId') === 'string');
}
