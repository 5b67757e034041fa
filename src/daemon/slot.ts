import { HangUpError } from '../acp/errors.ts';
import type { Channel } from './channel.ts';

/** The workspace's child: started when something needs it, and again after it died. */
export class ChannelSlot {
  readonly #open: (signal: AbortSignal) => Promise<Channel>;
  #current: Promise<Channel> | undefined;
  #live: Channel | undefined;
  readonly #closed = new AbortController();

  /** `open` stops when its signal aborts. */
  constructor(open: (signal: AbortSignal) => Promise<Channel>) {
    this.#open = open;
  }

  get live(): Channel | undefined {
    return this.#live;
  }

  get(): Promise<Channel> {
    if (this.#closed.signal.aborted) return Promise.reject(this.#closed.signal.reason);
    this.#current ??= this.#start();
    return this.#current;
  }

  /** The next call starts another one. */
  forget(channel: Channel): void {
    if (this.#live !== channel) return;
    this.#live = undefined;
    this.#current = undefined;
  }

  /** Ends the child, also one that is just starting; no other is started. */
  async close(): Promise<void> {
    this.#closed.abort(new HangUpError('local', 'the daemon is shutting down'));
    const channel = await this.#current?.catch(() => undefined);
    await channel?.end();
  }

  async #start(): Promise<Channel> {
    try {
      const channel = await this.#open(this.#closed.signal);
      if (!channel.connection.signal.aborted) this.#live = channel;
      else this.#current = undefined;
      return channel;
    } catch (error) {
      this.#current = undefined;
      throw error;
    }
  }
}
