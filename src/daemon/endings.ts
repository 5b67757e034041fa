import * as methods from '../acp/methods.ts';
import type { Log } from '../log.ts';
import type { Channel } from './channel.ts';
import { isMethodNotFound, toDaemonError } from './child-faults.ts';
import type { SessionEntry } from './entry.ts';
import type { Inbound } from './inbound.ts';
import type { Interactions } from './interactions.ts';
import type { Journal } from './journal.ts';
import type { Registry } from './registry.ts';
import type { ChannelSlot } from './slot.ts';
import type { Turns } from './turns.ts';

export interface EndingsDeps {
  readonly registry: Registry;
  readonly slot: ChannelSlot;
  readonly interactions: Interactions;
  readonly journal: Journal;
  readonly turns: Turns;
  readonly inbound: Inbound;
  readonly log: Log;
}

const CLOSE_DEADLINE_MS = 10_000;
/** How long the child may take to stop a session's work, in milliseconds; our child needs none of it. */
const DRAIN_TIMEOUT_MS = 2_000;
/**
 * How long a shutdown waits for votes on their way to the disk, and again for replies on their way to the child. With the
 * time that a child gets to end, all of it must fit into the five seconds that a stop may take.
 */
const LAST_WORDS_MS = 500;

/** How sessions end: closed by a client or for want of one, with their child, or with the daemon. */
export class Endings {
  readonly #deps: EndingsDeps;
  #shutdown: Promise<void> | undefined;

  constructor(deps: EndingsDeps) {
    this.#deps = deps;
  }

  get shuttingDown(): boolean {
    return this.#shutdown !== undefined;
  }

  /** Throws `DaemonError` when the child does not end the session; then it lives on. */
  async close(entry: SessionEntry, reason: string, closedBy?: string): Promise<void> {
    // Of two at once the second has nothing to do, unless the first has failed.
    while (entry.closing !== undefined) await entry.closing;
    if (this.#deps.registry.find(entry.sessionId) !== entry) return;
    const closing = this.#close(entry, reason, closedBy);
    entry.closing = closing
      .catch(() => {})
      .finally(() => {
        entry.closing = undefined;
      });
    await closing;
  }

  async #close(entry: SessionEntry, reason: string, closedBy: string | undefined): Promise<void> {
    const { registry, turns } = this.#deps;
    const { sessionId } = entry;
    try {
      await this.#closeInChild(entry, reason !== 'client_close');
    } catch (error) {
      throw toDaemonError(error, sessionId);
    }
    registry.remove(entry);
    turns.abandon(entry, 'the session was closed before the prompt completed', 'session_closed');
    entry.publish('session_closed', { sessionId, reason, ...(closedBy !== undefined && { closedBy }) });
    entry.events.end();
    await entry.settled;
  }

  /** Ends a session that nobody is attached to, once nothing runs in it. */
  closeIfUnused(entry: SessionEntry): void {
    if (entry.clients.size > 0 || !entry.isIdle || entry.closing || this.shuttingDown) return;
    this.close(entry, 'last_client_detached').catch((error: unknown) =>
      this.#deps.log.warn(`session ${entry.sessionId}: could not be closed`, error),
    );
  }

  /** What the dead child's sessions waited for will never come. */
  childGone(channel: Channel, reason: string): void {
    const { registry, slot, log } = this.#deps;
    slot.forget(channel);
    if (this.shuttingDown) return;
    const entries = registry.of(channel);
    if (entries.length > 0) log.warn(`the agent process is gone with ${entries.length} session(s): ${reason}`);
    for (const entry of entries) {
      registry.remove(entry);
      void this.#died(entry);
    }
  }

  shutdown(): Promise<void> {
    this.#shutdown ??= this.#shutDown();
    return this.#shutdown;
  }

  async #shutDown(): Promise<void> {
    const { registry, slot, interactions, inbound, journal, turns } = this.#deps;
    turns.close();
    const entries = [...registry.live()];
    const resolved = Promise.all(
      entries.map(({ sessionId }) => interactions.resolveSession(sessionId, 'session_closed')),
    );
    await within(LAST_WORDS_MS, resolved);
    for (const entry of entries) {
      const { sessionId } = entry;
      turns.abandon(entry, 'the daemon shut down before the prompt completed', 'daemon_shutdown');
      entry.publish('session_died', { sessionId, reason: 'daemon_shutdown' });
      entry.events.end();
    }
    await within(LAST_WORDS_MS, inbound.replied());
    await slot.close();
    await within(
      LAST_WORDS_MS,
      Promise.all(entries.map(({ settled }) => settled)).then(() => journal.close()),
    );
  }

  async #died(entry: SessionEntry): Promise<void> {
    const { interactions, turns } = this.#deps;
    const { sessionId } = entry;
    await interactions.withdrawSession(sessionId);
    turns.abandon(entry, `the agent process ended before the prompt completed (session ${sessionId})`);
    entry.publish('session_died', { sessionId, reason: 'agent_channel_closed' });
    entry.events.end();
  }

  async #closeInChild(entry: SessionEntry, onlyIfUnheld: boolean): Promise<void> {
    const { sessionId, channel } = entry;
    const { connection } = channel;
    // The child is told before it gets the replies that follow from it, so that it knows why nobody answered.
    const closed = connection.request(
      methods.controlCloseSession,
      { sessionId, drainTimeoutMs: DRAIN_TIMEOUT_MS, ...(onlyIfUnheld && { onlyIfUnheld }) },
      { deadlineMs: CLOSE_DEADLINE_MS },
    );
    const resolved = this.#deps.interactions.resolveSession(sessionId, 'session_closed');
    try {
      await closed;
    } catch (error) {
      if (!isMethodNotFound(error)) throw error;
      await connection.notify(methods.cancel, { sessionId });
    } finally {
      await resolved;
    }
  }
}

async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([work, expired]);
  clearTimeout(timer);
}
