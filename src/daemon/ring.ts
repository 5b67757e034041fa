/** An event's encoded block of server-sent events. */
export type Block = Uint8Array;

export interface RingLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

/**
 * The last blocks of a numbered stream, bounded in count and bytes. Numbers go up by one; those before `firstId` are
 * forgotten.
 */
export class Ring {
  readonly #limits: RingLimits;
  #blocks: (Block | undefined)[] = [];
  /** Index in `#blocks` of the oldest kept one; what stands before it is cleared and cut off now and then. */
  #head = 0;
  #bytes = 0;
  #nextId = 1;
  #batch: { readonly from: number; readonly until: number; readonly next: number; readonly bytes: Block } | undefined;

  constructor(limits: RingLimits) {
    this.#limits = limits;
  }

  /** The number of the last block; 0 before the first. */
  get lastId(): number {
    return this.#nextId - 1;
  }

  /** The number of the oldest block that is kept; one more than the last when none is. */
  get firstId(): number {
    return this.#nextId - (this.#blocks.length - this.#head);
  }

  push(block: Block): void {
    this.#blocks.push(block);
    this.#bytes += block.byteLength;
    this.#nextId += 1;
    // The newest is always kept, whatever its size.
    while (this.lastId > this.firstId && this.#isOverfull()) this.#drop();
  }

  /** Uses numbers up without blocks for them, and forgets what was before. */
  skip(count: number): void {
    if (count === 0) return;
    this.#blocks = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#nextId += count;
  }

  /**
   * Blocks from number `from` to `until` as one, of about `maxBytes`, and the number after them. `from` must be kept, and
   * `until` not before it.
   */
  read(from: number, maxBytes: number, until = this.lastId): { readonly bytes: Block; readonly next: number } {
    const known = this.#batch;
    // Whoever reads at the same pace gets the same bytes.
    if (known?.from === from && known.until === until) return known;
    const parts: Block[] = [];
    let size = 0;
    let next = from;
    while (next <= until && (size === 0 || size < maxBytes)) {
      const block = this.#blocks[this.#head + (next - this.firstId)] as Block;
      parts.push(block);
      size += block.byteLength;
      next += 1;
    }
    const [first] = parts;
    const bytes = parts.length === 1 && first ? first : Buffer.concat(parts, size);
    this.#batch = { from, until, next, bytes };
    return this.#batch;
  }

  #isOverfull(): boolean {
    return this.#blocks.length - this.#head > this.#limits.maxEvents || this.#bytes > this.#limits.maxBytes;
  }

  #drop(): void {
    this.#bytes -= this.#blocks[this.#head]?.byteLength ?? 0;
    this.#blocks[this.#head] = undefined;
    this.#head += 1;
    if (this.#head > 1024 && this.#head * 2 > this.#blocks.length) {
      this.#blocks = this.#blocks.slice(this.#head);
      this.#head = 0;
    }
  }
}
