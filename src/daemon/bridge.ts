import type * as acp from '@agentclientprotocol/sdk';
import * as methods from '../acp/methods.ts';
import type { Log } from '../log.ts';
import { externalMeta } from '../meta/daemon.ts';
import { capabilities, daemonStatus, strategyOf } from './about.ts';
import { Announcer } from './announcer.ts';
import { Channel } from './channel.ts';
import { isMethodNotFound, toDaemonError } from './child-faults.ts';
import { type ChildDeps, channelOptions } from './child-options.ts';
import { Creations } from './creations.ts';
import { Endings } from './endings.ts';
import type { SessionEntry } from './entry.ts';
import { daemonEvent } from './events.ts';
import { Inbound } from './inbound.ts';
import { Interactions } from './interactions.ts';
import { Journal, journalDir } from './journal.ts';
import type { AdmittedPrompt, Attached, Bridge, Caller, ServeOptions, Subscription, Vote } from './ports.ts';
import { DaemonError, shuttingDown } from './ports.ts';
import { Registry } from './registry.ts';
import { requestEvent } from './replies.ts';
import { Restores } from './restores.ts';
import { ChannelSlot } from './slot.ts';
import { savedSessions } from './saved.ts';
import { savedStatus, sessionStatus, snapshotEvent, titled } from './status.ts';
import { Turns } from './turns.ts';
import { demandWorkspace } from './workspace.ts';

export interface BridgeDeps extends ChildDeps {
  readonly log: Log;
}

/** Enough for every session that a daemon may hold. */
const MAX_PENDING_INTERACTIONS = 20_000;
const MAX_PENDING_PER_SESSION = 64;
const CONTROL_DEADLINE_MS = 10_000;

type Json = Record<string, unknown>;

/** The daemon without HTTP: the workspace's sessions, and the child they live in. */
export class DaemonBridge implements Bridge {
  readonly #options: ServeOptions;
  readonly #deps: BridgeDeps;
  readonly #registry: Registry;
  readonly #journal: Journal;
  readonly #interactions: Interactions;
  readonly #slot: ChannelSlot;
  readonly #turns: Turns;
  readonly #restores: Restores;
  readonly #creations: Creations;
  readonly #endings: Endings;
  readonly #announcer: Announcer;

  constructor(options: ServeOptions, deps: BridgeDeps) {
    const { log } = deps;
    this.#options = options;
    this.#deps = deps;
    this.#registry = new Registry(options.maxSessions);
    this.#journal = new Journal(journalDir(), log);
    this.#announcer = new Announcer(this.#registry);
    this.#interactions = new Interactions(
      {
        strategy: strategyOf(options),
        consensusQuorum: options.consensusQuorum,
        timeoutMs: options.permissionResponseTimeoutMs,
        maxPending: MAX_PENDING_INTERACTIONS,
        maxPendingPerSession: MAX_PENDING_PER_SESSION,
        log,
        publish: (event) => this.#announcer.publish(event),
      },
      this.#journal,
    );
    const inbound = new Inbound(this.#registry, this.#interactions, (channel, reason) =>
      this.#endings.childGone(channel, reason),
    );
    this.#slot = new ChannelSlot((signal) => Channel.open(channelOptions(options, deps), inbound, log, signal));
    this.#turns = new Turns(this.#interactions, log, (entry) => this.#endings.closeIfUnused(entry));
    const shared = { registry: this.#registry, slot: this.#slot, interactions: this.#interactions, log };
    const turns = this.#turns;
    const { cwd, restoreAskUserQuestion } = options;
    this.#restores = new Restores({ cwd, switchedOn: restoreAskUserQuestion }, { ...shared, turns });
    this.#creations = new Creations(cwd, { ...shared, restores: this.#restores });
    this.#endings = new Endings({ ...shared, turns, inbound, journal: this.#journal });
  }

  /** Starts the child in the background, so that the first call finds it there. */
  warmUp(): void {
    this.#slot.get().catch((error: unknown) => {
      if (!this.#endings.shuttingDown) this.#deps.log.warn('the agent process could not be started', error);
    });
  }

  async createSession(
    request: { readonly cwd?: string; readonly sessionId?: string; readonly sessionScope?: 'thread' | 'shared' },
    caller: Caller,
  ): Promise<Attached & { readonly hasActivePrompt?: boolean }> {
    this.#demandOpen();
    demandWorkspace(this.#options.cwd, request.cwd);
    return await this.#creations.create(request, caller);
  }

  async load(
    sessionId: string,
    request: { readonly cwd?: string; readonly historyPageSize?: number },
    { clientId }: Caller,
  ): Promise<Json> {
    this.#demandOpen();
    demandWorkspace(this.#options.cwd, request.cwd);
    return await this.#restores.run('load', sessionId, { clientId, pageSize: request.historyPageSize });
  }

  async resume(sessionId: string, request: { readonly cwd?: string }, { clientId }: Caller): Promise<Json> {
    this.#demandOpen();
    demandWorkspace(this.#options.cwd, request.cwd);
    return await this.#restores.run('resume', sessionId, { clientId, pageSize: undefined });
  }

  async prompt(
    sessionId: string,
    prompt: readonly acp.ContentBlock[],
    meta: unknown,
    caller: Caller,
  ): Promise<AdmittedPrompt> {
    const entry = this.#entryFor(sessionId, caller);
    return this.#turns.admit(entry, {
      kind: 'ordinary',
      prompt,
      meta: externalMeta(meta),
      originatorClientId: caller.clientId,
    });
  }

  async cancel(sessionId: string, caller: Caller): Promise<void> {
    const entry = this.#entryFor(sessionId, caller);
    const turn = entry.activeTurn;
    const { connection } = entry.channel;
    if (!turn) return await this.#tellCancel(entry);
    if (!turn.cancelled) entry.publish('prompt_cancelled', { sessionId }, turn);
    turn.cancelled = true;
    // The child must know of the cancel before it gets the replies that follow from it.
    const told = connection.request(methods.cancelPendingPrompt, { sessionId }, { deadlineMs: CONTROL_DEADLINE_MS });
    const resolved = this.#interactions.resolveSession(sessionId, 'session_closed');
    try {
      await told;
    } catch (error) {
      if (!isMethodNotFound(error)) throw toDaemonError(error, sessionId);
      await this.#tellCancel(entry);
    } finally {
      await resolved;
      // Before the answer: a crash after it must not bring back what the person gave up.
      await this.#interactions.forgetAnswers(sessionId);
    }
  }

  async continueSession(sessionId: string, caller: Caller): Promise<Json> {
    const entry = this.#entryFor(sessionId, caller);
    const { accepted, interruption } = await this.#ask(entry, methods.continueSession, { sessionId });
    if (!accepted) return { accepted, interruption };
    const { clientId: originatorClientId } = caller;
    const admitted = this.#turns.admit(entry, { kind: 'continue', prompt: [], meta: {}, originatorClientId });
    return { accepted, interruption, ...admitted };
  }

  async branch(sessionId: string, request: { readonly name?: string }, caller: Caller): Promise<Json> {
    return await this.#creations.branch(this.#entryFor(sessionId, caller), request.name);
  }

  async detach(sessionId: string, { clientId }: Caller): Promise<void> {
    const entry = this.#registry.get(sessionId);
    if (clientId === undefined || !entry.clients.detach(clientId)) return;
    if (entry.events.subscribers === 0) this.#endings.closeIfUnused(entry);
  }

  async heartbeat(sessionId: string, caller: Caller): Promise<Json> {
    this.#entryFor(sessionId, caller);
    const { clientId } = caller;
    return { sessionId, ...(clientId !== undefined && { clientId }), lastSeenAt: Date.now() };
  }

  async close(sessionId: string, caller: Caller): Promise<void> {
    await this.#endings.close(this.#entryFor(sessionId, caller), 'client_close', caller.clientId);
  }

  async status(sessionId: string): Promise<Json> {
    return this.#statusOf(this.#registry.get(sessionId));
  }

  async transcript(sessionId: string): Promise<Json> {
    this.#demandOpen();
    try {
      const { connection } = await this.#slot.get();
      const params = { sessionId, cwd: this.#options.cwd };
      return await connection.request(methods.sessionTranscript, params, { deadlineMs: CONTROL_DEADLINE_MS });
    } catch (error) {
      throw toDaemonError(error, sessionId);
    }
  }

  async sessions(cwd: string): Promise<Json> {
    this.#demandOpen();
    demandWorkspace(this.#options.cwd, cwd);
    const saved = await this.#savedSessions();
    const titles = new Map(saved.map(({ sessionId, title }) => [sessionId, title]));
    const live = Array.from(this.#registry.live(), (entry) =>
      titled(this.#statusOf(entry), titles.get(entry.sessionId)),
    );
    const rest = saved.filter(({ sessionId }) => this.#registry.find(sessionId) === undefined);
    return { sessions: [...live, ...rest.map((session) => savedStatus({ ...session }))] };
  }

  async vote(sessionId: string | undefined, requestId: string, vote: Vote, caller: Caller): Promise<void> {
    const named = sessionId ?? this.#announcer.sessionOf(requestId);
    if (named !== undefined) this.#entryFor(named, caller);
    await this.#interactions.vote(sessionId, requestId, vote, caller);
  }

  async subscribe(
    sessionId: string,
    { lastEventId, snapshot }: { readonly lastEventId?: number; readonly snapshot: boolean },
  ): Promise<Subscription> {
    const entry = this.#registry.get(sessionId);
    const waiting = lastEventId === undefined ? this.#interactions.pending(sessionId) : [];
    const asked = waiting.map((pending) => {
      const event = requestEvent(pending);
      return daemonEvent(event.type, event.data, event);
    });
    const prelude = [...(snapshot ? [snapshotEvent(entry)] : []), ...asked];
    return entry.events.subscribe({ prelude, ...(lastEventId !== undefined && { lastEventId }) });
  }

  health(): Json {
    return { status: 'ok' };
  }

  capabilities(): Json {
    return capabilities(this.#options, this.#deps.version);
  }

  daemonStatus(): Json {
    const entries = [...this.#registry.live()];
    const sum = (count: (entry: SessionEntry) => number) => entries.reduce((total, entry) => total + count(entry), 0);
    return daemonStatus(this.#options, this.#deps.version, {
      sessions: entries.length,
      startingSessions: this.#registry.starting,
      pendingPermissions: this.#interactions.pendingCount,
      channelLive: this.#slot.live !== undefined,
      activePrompts: sum((entry) => (entry.activeTurn ? 1 : 0)),
      queuedPrompts: sum((entry) => entry.queue.waiting.length),
    });
  }

  async shutdown(): Promise<void> {
    await this.#endings.shutdown();
  }

  async #ask<P, R>(
    entry: SessionEntry,
    method: Parameters<typeof entry.channel.connection.request<P, R>>[0],
    params: P,
  ): Promise<R> {
    try {
      return await entry.channel.connection.request(method, params, { deadlineMs: CONTROL_DEADLINE_MS });
    } catch (error) {
      throw toDaemonError(error, entry.sessionId);
    }
  }

  async #tellCancel({ sessionId, channel }: SessionEntry): Promise<void> {
    try {
      await channel.connection.notify(methods.cancel, { sessionId });
    } catch (error) {
      throw toDaemonError(error, sessionId);
    }
  }

  async #savedSessions(): Promise<acp.ListSessionsResponse['sessions']> {
    try {
      const { connection } = await this.#slot.get();
      return await savedSessions(connection, this.#options.cwd);
    } catch (error) {
      if (isMethodNotFound(error)) return [];
      throw toDaemonError(error);
    }
  }

  #statusOf(entry: SessionEntry): Json {
    return sessionStatus(entry, this.#interactions.pending(entry.sessionId));
  }

  /** A live session, for a caller that is attached to it or says nothing. Throws `DaemonError` 404 and 400. */
  #entryFor(sessionId: string, { clientId }: Caller): SessionEntry {
    const entry = this.#registry.get(sessionId);
    if (clientId === undefined) return entry;
    if (!entry.clients.has(clientId)) {
      throw new DaemonError(400, `Client id "${clientId}" is not registered for session ${sessionId}`, {
        code: 'invalid_client_id',
        details: { sessionId, clientId },
      });
    }
    entry.clients.seen(clientId);
    return entry;
  }

  #demandOpen(): void {
    if (this.#endings.shuttingDown) throw shuttingDown();
  }
}
