/** In UTF-16 units. */
const MAX_LINE = 2000;
const MAX_WINDOW = 64 * 1024;

/** Takes some lines out of a text that comes in pieces, holding no more than these. Line ends may be LF or CRLF. */
export class LineWindow {
  readonly #first: number;
  readonly #last: number;
  readonly #lines: string[] = [];
  #length = 0;
  /** The line that has begun. */
  #line = '';
  #lineLength = 0;
  #index = 0;
  #isFull = false;
  #cutLines = 0;

  /** `first` counts from 0. */
  constructor(first: number, count: number) {
    this.#first = first;
    this.#last = first + count - 1;
  }

  push(text: string): void {
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      this.#extend(text, from, end);
      this.#endLine();
      from = end + 1;
    }
    this.#extend(text, from, text.length);
  }

  /** The text has ended. */
  end(): void {
    if (this.#lineLength > 0) this.#endLine();
  }

  /** Nothing that comes can belong to it. */
  get isFull(): boolean {
    return this.#isFull || this.#index > this.#last;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** How many lines the text had so far. */
  get count(): number {
    return this.#index;
  }

  /** How many of its lines are not whole. */
  get cutLines(): number {
    return this.#cutLines;
  }

  #extend(text: string, from: number, to: number): void {
    this.#lineLength += to - from;
    const room = MAX_LINE + 1 - this.#line.length;
    if (this.#index >= this.#first && !this.isFull && room > 0)
      this.#line += text.slice(from, Math.min(to, from + room));
  }

  #endLine(): void {
    if (this.#index >= this.#first && !this.isFull) this.#keep(this.#line.replace(/\r$/, ''));
    this.#index += 1;
    this.#line = '';
    this.#lineLength = 0;
  }

  #keep(line: string): void {
    const cut = line.length > MAX_LINE;
    const shown = cut
      ? `${line.slice(0, MAX_LINE)}… [${this.#lineLength - MAX_LINE} more characters in this line]`
      : line;
    if (this.#length + shown.length > MAX_WINDOW) {
      this.#isFull = true;
      return;
    }
    this.#length += shown.length + 1;
    this.#lines.push(shown);
    if (cut) this.#cutLines += 1;
  }
}
