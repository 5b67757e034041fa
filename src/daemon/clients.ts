import { randomUUID } from 'node:crypto';

/** A client that goes away without a word leaves its id behind; beyond this many the one unseen for longest is let go. */
const MAX_CLIENTS = 256;

/** The clients that are attached to one session, and when each was last heard of, in milliseconds since the epoch. */
export class Clients {
  /** The one that was heard of longest ago comes first. */
  readonly #lastSeen = new Map<string, number>();

  get size(): number {
    return this.#lastSeen.size;
  }

  ids(): ReadonlySet<string> {
    return new Set(this.#lastSeen.keys());
  }

  has(clientId: string): boolean {
    return this.#lastSeen.has(clientId);
  }

  /** The id under which a client is attached: the one it says where that is attached already, else a new one. */
  attach(said: string | undefined): string {
    const clientId = said !== undefined && this.has(said) ? said : `client_${randomUUID()}`;
    this.seen(clientId);
    const [oldest] = this.#lastSeen.keys();
    if (this.size > MAX_CLIENTS && oldest !== undefined) this.#lastSeen.delete(oldest);
    return clientId;
  }

  /** Answers the time that is now noted. */
  seen(clientId: string): number {
    const now = Date.now();
    this.#lastSeen.delete(clientId);
    this.#lastSeen.set(clientId, now);
    return now;
  }

  detach(clientId: string): boolean {
    return this.#lastSeen.delete(clientId);
  }
}
