/** The most that a search may take; what it has found until then counts. */
export class Deadline {
  readonly #timer: AbortController = new AbortController();
  readonly #handle: NodeJS.Timeout;
  readonly #outer: AbortSignal;
  readonly #signal: AbortSignal;

  constructor(milliseconds: number, outer: AbortSignal) {
    this.#outer = outer;
    this.#handle = setTimeout(() => this.#timer.abort(), milliseconds);
    this.#signal = AbortSignal.any([outer, this.#timer.signal]);
  }

  /** What `work` gives, or false when it ran out of time. Throws the outer signal's reason on abort. */
  async within(work: (signal: AbortSignal) => Promise<boolean>): Promise<boolean> {
    try {
      return await work(this.#signal);
    } catch (error) {
      this.#outer.throwIfAborted();
      if (this.#timer.signal.aborted) return false;
      throw error;
    }
  }

  end(): void {
    clearTimeout(this.#handle);
  }
}
