/** A prompt that a session's queue knows: it runs, or waits for its turn. */
export interface Queued<T> {
  readonly promptId: string;
  readonly prompt: T;
}

export type Placed = 'started' | 'queued' | 'full';

/** One prompt runs, the others wait in the order of their arrival, up to a cap. Decides only; its owner runs them. */
export class PromptQueue<T> {
  readonly #cap: number;
  readonly #waiting: Queued<T>[] = [];
  #active: Queued<T> | undefined;

  /** `cap` counts the one that runs, too. */
  constructor(cap: number) {
    this.#cap = cap;
  }

  get active(): Queued<T> | undefined {
    return this.#active;
  }

  get waiting(): readonly Queued<T>[] {
    return this.#waiting;
  }

  get isIdle(): boolean {
    return this.#active === undefined && this.#waiting.length === 0;
  }

  place(queued: Queued<T>): Placed {
    if (this.isIdle) {
      this.#active = queued;
      return 'started';
    }
    const held = this.#waiting.length + (this.#active === undefined ? 0 : 1);
    if (held >= this.#cap) return 'full';
    this.#waiting.push(queued);
    return 'queued';
  }

  /** Ends the active one and makes the next one active, which it answers. */
  advance(): Queued<T> | undefined {
    this.#active = this.#waiting.shift();
    return this.#active;
  }

  /** Empties the queue and answers all that was in it, the active one first. */
  clear(): readonly Queued<T>[] {
    const all = [...(this.#active ? [this.#active] : []), ...this.#waiting.splice(0)];
    this.#active = undefined;
    return all;
  }
}
