import * as methods from '../acp/methods.ts';
import type { Log } from '../log.ts';
import { newSessionRequestMeta } from '../meta/daemon.ts';
import type { Channel } from './channel.ts';
import { toDaemonError } from './child-faults.ts';
import { SessionEntry } from './entry.ts';
import { type Attached, type Caller, DaemonError } from './ports.ts';
import type { Registry } from './registry.ts';
import type { Restores } from './restores.ts';
import type { ChannelSlot } from './slot.ts';

export interface CreationsDeps {
  readonly registry: Registry;
  readonly slot: ChannelSlot;
  readonly restores: Restores;
  readonly log: Log;
}

export type Created = Attached & { readonly hasRunningBackgroundTasks?: boolean; readonly hasActivePrompt?: boolean };

/** How long the child may take for a new session, in milliseconds. */
const NEW_SESSION_DEADLINE_MS = 10_000;

/** New sessions: on their own, shared by those who ask for no other, or branched off another. */
export class Creations {
  readonly #cwd: string;
  readonly #deps: CreationsDeps;
  /** The session that those get who ask for no other. */
  #shared: Promise<SessionEntry> | undefined;

  constructor(cwd: string, deps: CreationsDeps) {
    this.#cwd = cwd;
    this.#deps = deps;
  }

  async create(
    request: { readonly sessionId?: string; readonly sessionScope?: 'thread' | 'shared' },
    { clientId }: Caller,
  ): Promise<Created> {
    const isLive = (entry: SessionEntry) => this.#deps.registry.find(entry.sessionId) === entry;
    const live = request.sessionId === undefined ? undefined : this.#deps.registry.find(request.sessionId);
    await live?.closing;
    if (live && isLive(live)) return attached(live, clientId);
    if (request.sessionId !== undefined || request.sessionScope === 'thread') {
      return fresh(await this.#create(request.sessionId), clientId);
    }
    for (;;) {
      const current = this.#shared;
      if (current === undefined) return fresh(await this.#createShared(), clientId);
      const shared = await current.catch(() => undefined);
      await shared?.closing;
      if (shared && isLive(shared)) return attached(shared, clientId);
      if (this.#shared === current) this.#shared = undefined;
    }
  }

  /** Copies a session into a new one. Throws `DaemonError` 409 while a prompt runs or waits. */
  async branch(parent: SessionEntry, name: string | undefined): Promise<Record<string, unknown>> {
    const { sessionId, cwd } = parent;
    if (!parent.queue.isIdle) {
      throw new DaemonError(409, `Session ${sessionId} cannot be branched while a prompt runs in it`, {
        code: 'branch_while_prompt_active',
        details: { sessionId },
      });
    }
    const { newSessionId, displayName } = await this.#copy(parent, {
      sessionId,
      cwd,
      ...(name !== undefined && { name }),
    });
    const { entry, response } = await this.#deps.restores.fork(newSessionId);
    entry.displayName = displayName;
    const forkedFrom = { sessionId, displayName: parent.displayName ?? sessionId.slice(0, 8) };
    return { ...response, displayName, forkedFrom };
  }

  /** Noted before anything is awaited, so that whoever asks meanwhile gets the same session. */
  #createShared(): Promise<SessionEntry> {
    const creating = this.#create(undefined);
    creating.catch(() => {});
    this.#shared = creating;
    return creating;
  }

  async #create(sessionId: string | undefined): Promise<SessionEntry> {
    const { registry, slot } = this.#deps;
    try {
      return await registry.create(async () => this.#createIn(await slot.get(), sessionId));
    } catch (error) {
      throw toDaemonError(error);
    }
  }

  async #createIn(channel: Channel, wanted: string | undefined): Promise<SessionEntry> {
    const _meta = newSessionRequestMeta({
      deadlineMs: Date.now() + NEW_SESSION_DEADLINE_MS,
      ...(wanted !== undefined && { sessionId: wanted }),
    });
    const { sessionId, ...state } = await channel.connection.request(
      methods.newSession,
      { cwd: this.#cwd, mcpServers: [], _meta },
      { deadlineMs: NEW_SESSION_DEADLINE_MS },
    );
    const entry = new SessionEntry(sessionId, this.#cwd, channel);
    entry.adoptState(state);
    this.#deps.registry.started(entry);
    return entry;
  }

  async #copy(parent: SessionEntry, params: methods.BranchParams): Promise<methods.BranchResult> {
    const { connection } = parent.channel;
    const { sessionId, cwd } = params;
    try {
      const branched = await connection.request(methods.branchSession, params, {
        deadlineMs: NEW_SESSION_DEADLINE_MS,
      });
      const sources = { sessionId, targetSessionId: branched.newSessionId, targetCwd: cwd, attachmentIds: [] };
      await connection
        .request(methods.copySources, sources, { deadlineMs: NEW_SESSION_DEADLINE_MS })
        .catch((error: unknown) => this.#deps.log.warn(`session ${sessionId}: attachments were not copied`, error));
      return branched;
    } catch (error) {
      throw toDaemonError(error, sessionId);
    }
  }
}

function fresh(entry: SessionEntry, said: string | undefined): Created {
  return described(entry, false, said);
}

function attached(entry: SessionEntry, said: string | undefined): Created {
  const { hasRunningBackgroundTasks } = entry;
  return {
    ...described(entry, true, said),
    ...(hasRunningBackgroundTasks !== undefined && { hasRunningBackgroundTasks }),
    hasActivePrompt: !entry.queue.isIdle,
  };
}

function described(entry: SessionEntry, isAttached: boolean, said: string | undefined): Attached {
  return {
    sessionId: entry.sessionId,
    workspaceCwd: entry.cwd,
    attached: isAttached,
    clientId: entry.clients.attach(said),
    createdAt: entry.createdAt,
  };
}
