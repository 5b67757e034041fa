import type { TranscriptFile } from './transcript-file.ts';

const CHUNK = 1 << 20;
const FIRST_HEADROOM = 64 << 10;
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
  let headroom = FIRST_HEADROOM;
  let current: Buffer = Buffer.allocUnsafe(headroom + CHUNK);
  let other: Buffer | undefined;
  let oversized = 0;
  let skipping = false;
  let position = start;
  let carried = 0;
  let read = await readAt(file, current, headroom, position);
  while (read > 0) {
    const target: Buffer = other ?? Buffer.allocUnsafe(headroom + CHUNK);
    const ahead = readAt(file, target, headroom, position + read);
    // The rejection is reported where `ahead` is awaited; a throwing callback must not leave it unhandled.
    ahead.catch(() => {});
    const end = headroom + read;
    const bufferStart = position - headroom;
    let from = headroom - carried;
    let scan = headroom;
    for (;;) {
      const lf = current.indexOf(LF, scan);
      if (lf === -1 || lf >= end) break;
      if (skipping) skipping = false;
      else onLine(current, from, lf, bufferStart + from, true);
      from = lf + 1;
      scan = from;
    }
    position += read;
    let rest = skipping ? 0 : end - from;
    if (rest > MAX_LINE) {
      oversized++;
      skipping = true;
      rest = 0;
    }
    read = await ahead;
    if (read === 0) {
      if (rest > 0) onLine(current, from, end, bufferStart + from, false);
      break;
    }
    const grown = rest > headroom ? rest * 2 : headroom;
    const next = grown === headroom ? target : Buffer.allocUnsafe(grown + CHUNK);
    if (next !== target) target.copy(next, grown, headroom, headroom + read);
    current.copy(next, grown - rest, from, from + rest);
    other = grown === headroom ? current : undefined;
    current = next;
    headroom = grown;
    carried = rest;
  }
  return oversized;
}

async function readAt(file: TranscriptFile, buffer: Buffer, at: number, position: number): Promise<number> {
  const length = Math.min(CHUNK, file.size - position);
  if (length <= 0) return 0;
  return (await file.handle.read(buffer, at, length, position)).bytesRead;
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
