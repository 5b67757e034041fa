import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setInterval, setTimeout } from 'node:timers';
import type { Subscription } from './ports.ts';

/** How long a client waits before it connects again, in ms. */
const RETRY = 'retry: 3000\n\n';
/** A comment: keeps what is between from closing an idle connection. */
const KEEP_ALIVE = ': keep-alive\n\n';
const KEEP_ALIVE_MS = 15_000;
/** How long a reader may take nothing of what was written for it, in ms. */
const STALLED_MS = 30_000;

/** The event streams that are open. */
export class EventStreams {
  readonly #open = new Set<ServerResponse>();
  readonly #stalledMs: number;

  /** A reader that takes nothing for `stalledMs` is cut off. */
  constructor(stalledMs: number = STALLED_MS) {
    this.#stalledMs = stalledMs;
  }

  get open(): number {
    return this.#open.size;
  }

  /** Writes the events of a subscription to a client until either ends. A client that leaves decides nothing. */
  start(subscription: Subscription, outgoing: ServerResponse, headers: Readonly<Record<string, string>>): void {
    this.#open.add(outgoing);
    outgoing.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      connection: 'keep-alive',
      'x-accel-buffering': 'no',
    });
    outgoing.write(RETRY);
    // Whatever went wrong with the socket, the client connects again.
    void pump(subscription, outgoing, this.#stalledMs)
      .catch(() => outgoing.destroy())
      .finally(() => {
        subscription.close();
        this.#open.delete(outgoing);
      });
  }
}

async function pump(subscription: Subscription, outgoing: ServerResponse, stalledMs: number): Promise<void> {
  const gone = new AbortController();
  outgoing.once('close', () => gone.abort());
  outgoing.on('error', () => gone.abort());
  const keepAlive = setInterval(() => {
    if (!outgoing.writableNeedDrain) outgoing.write(KEEP_ALIVE);
  }, KEEP_ALIVE_MS);
  try {
    while (!gone.signal.aborted) {
      const blocks = await subscription.next(gone.signal);
      if (blocks === undefined) break;
      if (!outgoing.write(blocks)) await drained(outgoing, gone.signal, stalledMs);
    }
  } finally {
    clearInterval(keepAlive);
    outgoing.end();
  }
}

/** Waits until the socket has taken what was written; rejects when it does not, or is gone. */
async function drained(outgoing: ServerResponse, gone: AbortSignal, stalledMs: number): Promise<void> {
  // Not `AbortSignal.timeout` in an `AbortSignal.any`, which holds it weakly: it may be collected before it aborts.
  const stalled = setTimeout(() => outgoing.destroy(), stalledMs);
  try {
    await once(outgoing, 'drain', { signal: gone });
  } finally {
    clearTimeout(stalled);
  }
}
