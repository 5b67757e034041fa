import type { Channel } from './channel.ts';
import { sessionNotFound } from './child-faults.ts';
import type { SessionEntry } from './entry.ts';
import { DaemonError } from './ports.ts';

/** The sessions that are live, and those that are being started, which only the child sees yet. */
export class Registry {
  readonly #limit: number;
  readonly #live = new Map<string, SessionEntry>();
  readonly #starting = new Map<string, SessionEntry>();
  /** Sessions that have no id yet. */
  #creating = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#live.size;
  }

  get starting(): number {
    return this.#starting.size + this.#creating;
  }

  live(): IterableIterator<SessionEntry> {
    return this.#live.values();
  }

  find(sessionId: string): SessionEntry | undefined {
    return this.#live.get(sessionId);
  }

  /** Throws `DaemonError` 404. */
  get(sessionId: string): SessionEntry {
    const entry = this.#live.get(sessionId);
    if (!entry) throw sessionNotFound(sessionId);
    return entry;
  }

  /** For what the child says of a session. */
  known(sessionId: string): SessionEntry | undefined {
    return this.#live.get(sessionId) ?? this.#starting.get(sessionId);
  }

  /** Holds a place for a session whose id the child will give. Throws `DaemonError` 503 when there is none. */
  async create<T>(run: () => Promise<T>): Promise<T> {
    this.#demandPlace();
    this.#creating += 1;
    try {
      return await run();
    } finally {
      this.#creating -= 1;
    }
  }

  /** Throws `DaemonError` 503 when there are too many. */
  start(entry: SessionEntry): void {
    this.#demandPlace();
    this.#starting.set(entry.sessionId, entry);
  }

  started(entry: SessionEntry): void {
    this.#starting.delete(entry.sessionId);
    this.#live.set(entry.sessionId, entry);
  }

  remove(entry: SessionEntry): void {
    if (this.#live.get(entry.sessionId) === entry) this.#live.delete(entry.sessionId);
    if (this.#starting.get(entry.sessionId) === entry) this.#starting.delete(entry.sessionId);
  }

  /** Those that live in this child. */
  of(channel: Channel): SessionEntry[] {
    return [...this.#live.values(), ...this.#starting.values()].filter((entry) => entry.channel === channel);
  }

  #demandPlace(): void {
    if (this.#live.size + this.starting < this.#limit) return;
    throw new DaemonError(503, `This daemon holds ${this.#limit} sessions already`, {
      code: 'session_limit_exceeded',
      details: { limit: this.#limit },
      retryAfter: 5,
    });
  }
}
