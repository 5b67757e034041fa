import type * as acp from '@agentclientprotocol/sdk';
import type { Log } from '../log.ts';
import { joins, restoreRefusal } from './admission.ts';
import { sessionNotFound, toDaemonError } from './child-faults.ts';
import { type Asked, ChildLoads, type LoadOptions } from './child-loads.ts';
import { SessionEntry } from './entry.ts';
import type { Interactions } from './interactions.ts';
import { loadAnswer, type Restored, taken } from './load-answer.ts';
import { DaemonError } from './ports.ts';
import type { Registry } from './registry.ts';
import { replayEvents } from './replay.ts';
import type { ChannelSlot } from './slot.ts';
import type { Turns } from './turns.ts';

export interface RestoresDeps {
  readonly registry: Registry;
  readonly slot: ChannelSlot;
  readonly interactions: Interactions;
  readonly turns: Turns;
  readonly log: Log;
}

interface Running {
  readonly asked: Asked;
  readonly done: Promise<Restored>;
}

type Json = Record<string, unknown>;

/** How long a load waits for another one of its session, in milliseconds. */
const WAIT_FOR_OTHER_MS = 10_000;

/**
 * Loads and resumes: brings a session back, or attaches to it where it is live, and asks an open question again where
 * somebody is there to answer it. One call a session is under way at a time.
 */
export class Restores {
  readonly #options: LoadOptions;
  readonly #loads: ChildLoads;
  readonly #deps: RestoresDeps;
  readonly #running = new Map<string, Running>();

  constructor(options: LoadOptions, deps: RestoresDeps) {
    this.#options = options;
    this.#loads = new ChildLoads(options);
    this.#deps = deps;
  }

  /** Throws `DaemonError` 404 for an unknown session, 409 while a different call for it takes too long. */
  async run(
    action: 'load' | 'resume',
    sessionId: string,
    caller: { readonly clientId: string | undefined; readonly pageSize: number | undefined },
  ): Promise<Json> {
    const { clientId, pageSize } = caller;
    const asked: Asked = { action, hasClient: clientId !== undefined, pageSize, clientId, branch: false };
    for (;;) {
      const running = this.#running.get(sessionId);
      if (running === undefined) return loadAnswer(await this.#start(sessionId, asked), action);
      if (joins(running.asked, asked)) {
        const restored = await running.done;
        const own = restored.entry.clients.attach(clientId);
        return loadAnswer({ ...restored, attached: true, clientId: own }, action);
      }
      await this.#waitFor(sessionId, running, asked);
    }
  }

  /** Loads the session that a branch has made: nothing is asked again in it. */
  async fork(sessionId: string): Promise<{ readonly entry: SessionEntry; readonly response: Json }> {
    const asked: Asked = { action: 'load', hasClient: true, pageSize: undefined, clientId: undefined, branch: true };
    const restored = await this.#start(sessionId, asked);
    return { entry: restored.entry, response: loadAnswer(restored, 'load') };
  }

  #start(sessionId: string, asked: Asked): Promise<Restored> {
    const entry = this.#deps.registry.find(sessionId);
    const done = (entry ? this.#attach(entry, asked) : this.#bringBack(sessionId, asked)).finally(() =>
      this.#running.delete(sessionId),
    );
    // Whoever waits without joining does not care how it went.
    done.catch(() => {});
    this.#running.set(sessionId, { asked, done });
    return done;
  }

  async #bringBack(sessionId: string, asked: Asked): Promise<Restored> {
    const { registry, slot } = this.#deps;
    let entry: SessionEntry | undefined;
    try {
      const channel = await slot.get();
      entry = new SessionEntry(sessionId, this.#options.cwd, channel);
      entry.holdUpdates();
      registry.start(entry);
      const response = await this.#loads.call(channel, sessionId, asked);
      return this.#brought(entry, asked, response);
    } catch (error) {
      if (entry) registry.remove(entry);
      throw toDaemonError(error, sessionId);
    }
  }

  /** Without an await: whether the session is idle is decided for the moment of the response. */
  #brought(entry: SessionEntry, asked: Asked, response: acp.LoadSessionResponse): Restored {
    const { hint, state, replay } = taken(response);
    const { sessionId, events } = entry;
    entry.adoptState(state);
    const updates = replay?.updates ?? [];
    const firstId = events.reserve(updates.length);
    const journalFrom = events.lastEventId + 1;
    for (const update of entry.takeHeldUpdates()) entry.update(update);
    this.#deps.registry.started(entry);
    const clientId = entry.clients.attach(asked.clientId);
    this.#askAgain(entry, asked, hint, clientId);
    return {
      entry,
      replay: { compactedReplay: replayEvents(sessionId, updates, Date.now(), firstId), ...replay?.page },
      liveJournal: events.since(journalFrom),
      lastEventId: events.lastEventId,
      attached: false,
      clientId,
    };
  }

  async #attach(entry: SessionEntry, asked: Asked): Promise<Restored> {
    const { registry } = this.#deps;
    const { sessionId } = entry;
    await entry.closing;
    if (registry.find(sessionId) !== entry) return await this.#bringBack(sessionId, asked);
    try {
      const shown = await this.#loads.show(entry, asked);
      // It may have ended meanwhile.
      if (registry.get(sessionId) !== entry) throw sessionNotFound(sessionId);
      const clientId = entry.clients.attach(asked.clientId);
      if (shown.hint !== undefined) this.#askAgain(entry, asked, shown.hint, clientId);
      return { ...shown, entry, lastEventId: entry.events.lastEventId, attached: true, clientId };
    } catch (error) {
      throw toDaemonError(error, sessionId);
    }
  }

  /** A restore prompt is best effort: the load has succeeded whatever becomes of it. */
  #askAgain(entry: SessionEntry, asked: Asked, hint: boolean, originatorClientId: string): void {
    const { interactions, turns, log } = this.#deps;
    const { switchedOn } = this.#options;
    const { clientId, branch } = asked;
    const refusal = restoreRefusal({
      switchedOn,
      clientId,
      branch,
      hint,
      promptActive: entry.activeTurn !== undefined,
      pendingPromptCount: entry.queue.waiting.length,
      goalTurnActive: Boolean(entry.holds),
    });
    const { sessionId } = entry;
    if (refusal === 'nothing_open' && entry.isIdle) entry.settled = interactions.forgetAnswers(sessionId);
    if (refusal !== undefined) {
      log.debug(`session ${sessionId}: nothing is asked again (${refusal})`);
      return;
    }
    try {
      turns.admit(entry, { kind: 'restore', prompt: [], meta: {}, originatorClientId });
    } catch (error) {
      log.warn(`session ${sessionId}: its question could not be asked again`, error);
    }
  }

  /** Waits for another call of the same session. Throws `DaemonError` 409 when that takes too long. */
  async #waitFor(sessionId: string, running: Running, asked: Asked): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), WAIT_FOR_OTHER_MS);
    });
    const ended = running.done.then(
      () => 'ended' as const,
      () => 'ended' as const,
    );
    const outcome = await Promise.race([ended, late]);
    clearTimeout(timer);
    if (outcome === 'ended') return;
    throw new DaemonError(409, `Session ${sessionId} is being brought back by another request`, {
      code: 'restore_in_progress',
      details: { sessionId, activeAction: running.asked.action, requestedAction: asked.action },
      retryAfter: 5,
    });
  }
}
