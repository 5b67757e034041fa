const NEWLINE = 0x0a;
const SPACE = 0x20;
const BYTE_ORDER_MARK = 0xfeff;

export type Line = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'too_long' };

/**
 * Cuts a stream of bytes into lines, UTF-8 characters split between chunks included. Blank lines are left out, a byte
 * order mark on the first line is dropped. Holds at most `limit` bytes of a line: one that is longer is reported at once
 * and skipped up to its newline.
 */
export class LineSplitter {
  readonly #limit: number;
  #chunk: Buffer = Buffer.alloc(0);
  #offset = 0;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #skipping = false;
  #first = true;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The chunk before must have been taken: `next()` returned undefined. */
  push(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#offset = 0;
  }

  /** The next line; undefined when more bytes are needed. */
  next(): Line | undefined {
    while (this.#offset < this.#chunk.length) {
      const newline = this.#chunk.indexOf(NEWLINE, this.#offset);
      const piece = this.#chunk.subarray(this.#offset, newline === -1 ? undefined : newline);
      this.#offset = newline === -1 ? this.#chunk.length : newline + 1;
      const line = newline === -1 ? this.#hold(piece) : this.#complete(piece);
      if (line) return line;
    }
    return undefined;
  }

  /** What is left when the stream has ended: a last line without its newline. */
  end(): Line | undefined {
    return this.#complete(Buffer.alloc(0));
  }

  #hold(piece: Buffer): Line | undefined {
    if (this.#skipping) return undefined;
    if (this.#heldBytes + piece.length > this.#limit) {
      this.#skipping = true;
      this.#take();
      return { kind: 'too_long' };
    }
    this.#held.push(piece);
    this.#heldBytes += piece.length;
    return undefined;
  }

  #complete(piece: Buffer): Line | undefined {
    if (this.#skipping) {
      this.#skipping = false;
      return undefined;
    }
    const tooLong = this.#heldBytes + piece.length > this.#limit;
    const held = this.#take();
    if (tooLong) return { kind: 'too_long' };
    return this.#decode(held.length === 0 ? piece : Buffer.concat([...held, piece]));
  }

  #decode(bytes: Buffer): Line | undefined {
    let text = bytes.toString('utf8');
    if (this.#first && text.charCodeAt(0) === BYTE_ORDER_MARK) text = text.slice(1);
    this.#first = false;
    if (text === '' || (text.charCodeAt(0) <= SPACE && /^[ \t\r]*$/.test(text))) return undefined;
    return { kind: 'text', text };
  }

  #take(): readonly Buffer[] {
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    return held;
  }
}
