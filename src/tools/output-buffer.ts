/** In UTF-16 units: what is kept of a long output, from its start and from its end. */
const HEAD = 8 * 1024;
const TAIL = 22 * 1024;

/** Keeps the start and the end of a text of any length, and tells what is missing between them. */
export class OutputBuffer {
  #head = '';
  #tail = '';
  #dropped = 0;

  push(text: string): void {
    const room = HEAD - this.#head.length;
    if (room > 0) this.#head += text.slice(0, room);
    this.#tail += text.slice(Math.max(room, 0));
    // Cut rarely: each cut copies what stays.
    if (this.#tail.length > 2 * TAIL) this.#cut();
  }

  get truncated(): boolean {
    return this.#dropped > 0 || this.#tail.length > TAIL;
  }

  text(): string {
    if (this.#tail.length > TAIL) this.#cut();
    if (this.#dropped === 0) return this.#head + this.#tail;
    return `${this.#head}\n[… ${this.#dropped} characters left out …]\n${this.#tail}`;
  }

  #cut(): void {
    const excess = this.#tail.length - TAIL;
    this.#tail = this.#tail.slice(excess);
    this.#dropped += excess;
  }
}
