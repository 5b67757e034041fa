/** Holds live updates back while a session's replays are shown; replays follow each other. */
export class ReplayGate {
  /** Replays that are being shown or wait for their turn. */
  #replays = 0;
  /** Settled when the last of them has been shown. */
  #shown: Promise<void> = Promise.resolve();

  get open(): boolean {
    return this.#replays === 0;
  }

  /** Resolves when nothing is being replayed. */
  async opened(): Promise<void> {
    while (this.#replays > 0) await this.#shown;
  }

  /**
   * Runs `show` while live updates wait, until what `delivered` then gives has settled. `delivered` is called only when
   * `show` has succeeded, before this resolves.
   */
  async showing<T>(show: () => Promise<T>, delivered: () => Promise<void>): Promise<T> {
    this.#replays++;
    const shown = this.#shown.then(show);
    this.#shown = shown.then(delivered, ignore).finally(() => {
      this.#replays--;
    });
    return await shown;
  }
}

function ignore(): void {}
