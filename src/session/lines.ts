import type { TranscriptFile } from './transcript-file.ts';

const CHUNK = 1 << 20;
/** Room before a chunk for the begin of a line that the chunk before it cut. */
const HEADROOM = 64 << 10;
/** Read at once while a line is longer than that: what is there of it is copied with each chunk. */
const LARGE_CHUNK = 8 << 20;
/** A line that is longer than V8 can hold as one string is damage, whatever it says. */
const MAX_LINE = 256 << 20;
const LF = 10;

/**
 * One line, without its line feed: bytes `from` to `to` of `buffer`, which holds them until the callback returns.
 * `offset` is the position of `from` in the file.
 */
export type OnLine = (buffer: Buffer, from: number, to: number, offset: number, terminated: boolean) => void;

/**
 * Reads `file` from `start` to its size in chunks, one chunk ahead, and hands over each line in order.
 * Answers how many lines were too long to be read.
 */
export async function forEachLine(file: TranscriptFile, start: number, onLine: OnLine): Promise<number> {
  const lines = new Lines(onLine);
  let headroom = HEADROOM;
  // No larger than what there is to read: memory that is touched for the first time costs more than reading into it.
  let current: Buffer = Buffer.allocUnsafeSlow(headroom + Math.min(CHUNK, Math.max(0, file.size - start)));
  let spare: Buffer | undefined;
  let position = start;
  let read = await readChunk(file, current, headroom, position);
  while (read > 0) {
    const end = headroom + read;
    if (position + read >= file.size) {
      lines.take(current, headroom, end, position);
      lines.last(current, end, position + read);
      break;
    }
    const next = spare ?? bufferFor(headroom);
    const ahead = readChunk(file, next, headroom, position + read);
    // It is awaited below; a callback that throws leaves it unawaited.
    ahead.catch(() => {});
    const rest = lines.take(current, headroom, end, position);
    position += read;
    read = await ahead;
    if (read === 0) lines.last(current, end, position);
    const needed = rest > headroom ? rest * 2 : rest <= HEADROOM ? HEADROOM : headroom;
    const target = needed === headroom ? next : moved(next, headroom, read, needed);
    current.copy(target, needed - rest, end - rest, end);
    spare = needed === headroom ? current : undefined;
    current = target;
    headroom = needed;
  }
  return lines.oversized;
}

/** Finds the lines of consecutive chunks, and remembers how much of an unfinished one stands before the next. */
class Lines {
  oversized = 0;
  readonly #onLine: OnLine;
  #carried = 0;
  #skipping = false;

  constructor(onLine: OnLine) {
    this.#onLine = onLine;
  }

  /** Takes the chunk from `start` to `end`, which is at `position` of the file; answers the bytes of its unfinished line. */
  take(buffer: Buffer, start: number, end: number, position: number): number {
    const base = position - start;
    let from = start - this.#carried;
    for (let lf = buffer.indexOf(LF, start); lf !== -1 && lf < end; lf = buffer.indexOf(LF, from)) {
      if (this.#skipping) this.#skipping = false;
      else this.#onLine(buffer, from, lf, base + from, true);
      from = lf + 1;
    }
    this.#carried = this.#skipping ? 0 : end - from;
    if (this.#carried > MAX_LINE) {
      this.oversized++;
      this.#skipping = true;
      this.#carried = 0;
    }
    return this.#carried;
  }

  /** Hands over what stands before `end`, which is the file's, as a line without its line feed. */
  last(buffer: Buffer, end: number, position: number): void {
    if (this.#carried > 0) this.#onLine(buffer, end - this.#carried, end, position - this.#carried, false);
  }
}

function bufferFor(headroom: number): Buffer {
  return Buffer.allocUnsafeSlow(headroom + (headroom > HEADROOM ? LARGE_CHUNK : CHUNK));
}

/** The chunk behind another headroom. */
function moved(chunk: Buffer, headroom: number, length: number, needed: number): Buffer {
  const target = Buffer.allocUnsafeSlow(needed + LARGE_CHUNK);
  chunk.copy(target, needed, headroom, headroom + length);
  return target;
}

async function readChunk(file: TranscriptFile, buffer: Buffer, at: number, position: number): Promise<number> {
  const length = Math.min(buffer.length - at, file.size - position);
  return length <= 0 ? 0 : (await file.handle.read(buffer, at, length, position)).bytesRead;
}

/** Reads `length` bytes from `position` into the start of `buffer`; answers fewer where the file has been cut. */
export async function readBytes(
  file: TranscriptFile,
  buffer: Buffer,
  position: number,
  length: number,
): Promise<number> {
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.handle.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return done;
}
