import { randomUUID } from 'node:crypto';
import type { DaemonEvent, Subscription } from './ports.ts';
import { type Block, Ring, type RingLimits } from './ring.ts';

/** What an event says, and of which prompt and client. */
export interface EventContext {
  readonly promptId?: string | undefined;
  readonly originatorClientId?: string | undefined;
}

export interface SubscribeOptions {
  /** The number of the last event that the subscriber has seen. */
  readonly lastEventId?: number;
  /** Said first, unnumbered. */
  readonly prelude?: readonly DaemonEvent[];
}

/** A burst of a few thousand events must fit, so that only a reader that stands still is ever cut off. */
export const EVENT_RING: RingLimits = { maxEvents: 8_000, maxBytes: 16 * 1024 * 1024 };
const MAX_CHUNK_BYTES = 256 * 1024;

/**
 * A session's events for as long as the daemon knows the session: numbered, each encoded once, the last ones kept. A
 * subscriber is a place in the ring, so it costs nothing while it waits and cannot slow the others; one whose place has
 * been overwritten is cut off.
 */
export class EventLog {
  /** Of this life of the session in this daemon. */
  readonly epoch: string = randomUUID();
  readonly #ring: Ring;
  readonly #readers = new Set<Reader>();
  #ended = false;

  constructor(limits: RingLimits = EVENT_RING) {
    this.#ring = new Ring(limits);
  }

  get lastEventId(): number {
    return this.#ring.lastId;
  }

  get subscribers(): number {
    return this.#readers.size;
  }

  publish(type: string, data: unknown, context: EventContext = {}): DaemonEvent {
    const event = daemonEvent(type, data, context, this.#ring.lastId + 1);
    if (this.#ended) return event;
    this.#ring.push(encodeEvent(event));
    for (const reader of this.#readers) reader.wake();
    return event;
  }

  /** Numbers for `count` events that are shown elsewhere; answers the first. */
  reserve(count: number): number {
    const first = this.#ring.lastId + 1;
    this.#ring.skip(count);
    return first;
  }

  /** The events from `firstId` on that are still kept, decoded. */
  since(firstId: number): DaemonEvent[] {
    const events: DaemonEvent[] = [];
    for (let id = Math.max(firstId, this.#ring.firstId); id <= this.#ring.lastId; id++) {
      events.push(decodeBlock(this.#ring.read(id, 1, id).bytes));
    }
    return events;
  }

  subscribe({ lastEventId, prelude = [] }: SubscribeOptions): Subscription {
    const { from, head, tail } = this.#place(lastEventId);
    const until = this.lastEventId;
    const reader = new Reader(
      this.#ring,
      {
        from,
        prelude: [...prelude, ...head].map(encodeEvent),
        replay: tail === undefined ? undefined : { until, end: encodeEvent(tail) },
      },
      () => this.#readers.delete(reader),
    );
    this.#readers.add(reader);
    if (this.#ended) reader.end();
    return reader;
  }

  /** Says no more; subscribers get what was said and are let go. */
  end(): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.end();
  }

  #place(lastEventId: number | undefined): {
    readonly from: number;
    readonly head: readonly DaemonEvent[];
    readonly tail?: DaemonEvent;
  } {
    const { firstId, lastId } = this.#ring;
    if (lastEventId === undefined) return { from: lastId + 1, head: [] };
    // A number that was never given comes from the session's life before a restart.
    const foreign = lastEventId > lastId;
    const lost = foreign || lastEventId + 1 < firstId;
    const from = lost ? firstId : lastEventId + 1;
    const resync = {
      reason: foreign ? 'epoch_reset' : 'ring_evicted',
      lastDeliveredId: lastEventId,
      earliestAvailableId: firstId,
      eventEpoch: this.epoch,
    };
    return {
      from,
      head: lost ? [daemonEvent('state_resync_required', resync)] : [],
      tail: daemonEvent('replay_complete', {
        lastReplayedEventId: lastId,
        lastEventId: lastId,
        replayedCount: lastId + 1 - from,
      }),
    };
  }
}

interface Start {
  readonly from: number;
  readonly prelude: readonly Block[];
  /** What was asked for again ends after number `until`, with this block. */
  readonly replay: { readonly until: number; readonly end: Block } | undefined;
}

class Reader implements Subscription {
  readonly #ring: Ring;
  readonly #leave: () => void;
  #prelude: readonly Block[];
  #replay: Start['replay'];
  #next: number;
  #state: 'open' | 'ended' | 'closed' = 'open';
  #resume: (() => void) | undefined;
  #signal: AbortSignal | undefined;

  constructor(ring: Ring, start: Start, leave: () => void) {
    this.#ring = ring;
    this.#leave = leave;
    this.#prelude = start.prelude;
    this.#replay = start.replay;
    this.#next = start.from;
  }

  async next(signal: AbortSignal): Promise<Uint8Array | undefined> {
    if (this.#prelude.length > 0) return this.#takePrelude();
    this.#watch(signal);
    while (this.#state !== 'closed' && !signal.aborted && this.#next >= this.#ring.firstId) {
      const replay = this.#replay;
      if (replay && this.#next > replay.until) {
        this.#replay = undefined;
        return replay.end;
      }
      if (this.#next <= this.#ring.lastId) return this.#read(replay?.until);
      if (this.#state === 'ended') break;
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
    }
    this.close();
    return undefined;
  }

  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#leave();
    this.wake();
  }

  /** There is something new, or nothing will come any more. */
  wake(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  end(): void {
    if (this.#state === 'open') this.#state = 'ended';
    this.wake();
  }

  #takePrelude(): Uint8Array {
    const bytes = Buffer.concat(this.#prelude);
    this.#prelude = [];
    return bytes;
  }

  #read(until: number | undefined): Uint8Array {
    const { bytes, next } = this.#ring.read(this.#next, MAX_CHUNK_BYTES, until);
    this.#next = next;
    return bytes;
  }

  /** A listener for each wait would cost more than the event. */
  #watch(signal: AbortSignal): void {
    if (signal === this.#signal) return;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.wake(), { once: true });
  }
}

export function daemonEvent(type: string, data: unknown, context: EventContext = {}, id?: number): DaemonEvent {
  const { promptId, originatorClientId } = context;
  return {
    ...(id !== undefined && { id }),
    v: 1,
    type,
    ...(promptId !== undefined && { promptId }),
    data,
    ...(originatorClientId !== undefined && { originatorClientId }),
    _meta: { serverTimestamp: Date.now() },
  };
}

export function encodeEvent(event: DaemonEvent): Block {
  const id = event.id === undefined ? '' : `id: ${event.id}\n`;
  return Buffer.from(`${id}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

function decodeBlock(block: Block): DaemonEvent {
  const text = Buffer.from(block.buffer, block.byteOffset, block.byteLength).toString();
  return JSON.parse(text.slice(text.indexOf('\ndata: ') + 7)) as DaemonEvent;
}
