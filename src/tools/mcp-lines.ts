const NEWLINE = 0x0a;

/** Cuts a byte stream into lines of UTF-8. Of a line longer than `limit` bytes only the beginning is kept. */
export class LineCutter {
  readonly #limit: number;
  readonly #heard: (line: string, isWhole: boolean) => void;
  #parts: Buffer[] = [];
  #length = 0;
  /** The rest of a line that was too long is being passed over. */
  #skipping = false;

  /** `heard` is told a line that is too long as soon as it is, with `isWhole` false. */
  constructor(limit: number, heard: (line: string, isWhole: boolean) => void) {
    this.#limit = limit;
    this.#heard = heard;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#add(chunk.subarray(start, end));
      this.end();
      start = end + 1;
    }
    this.#add(chunk.subarray(start));
  }

  /** What is left counts as a line. */
  end(): void {
    if (this.#length > 0) this.#tell(true);
    this.#skipping = false;
  }

  #add(part: Buffer): void {
    if (this.#skipping || part.length === 0) return;
    const room = this.#limit - this.#length;
    this.#parts.push(part.subarray(0, room));
    this.#length += Math.min(part.length, room);
    if (part.length <= room) return;
    this.#tell(false);
    this.#skipping = true;
  }

  #tell(isWhole: boolean): void {
    const line = Buffer.concat(this.#parts).toString('utf8');
    this.#parts = [];
    this.#length = 0;
    this.#heard(line, isWhole);
  }
}
