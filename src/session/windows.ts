import type { Links } from './links.ts';
import { readBytes } from './lines.ts';
import type { TranscriptFile } from './transcript-file.ts';

const WINDOW = 1 << 20;

/** A stretch of the file that holds whole records: those at `from` to `to` (exclusive) of the list that was asked for. */
export interface Window {
  readonly buffer: Buffer;
  /** Position in the file of the buffer's first byte. */
  readonly offset: number;
  /** Bytes of the buffer that count. */
  readonly length: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Reads records, given by ascending index, in windows of about a megabyte, one window ahead. A window's buffer is used
 * again for the second one after it.
 */
export async function* readWindows(file: TranscriptFile, links: Links, records: Int32Array): AsyncGenerator<Window> {
  const buffers: [Buffer, Buffer] = [Buffer.alloc(0), Buffer.alloc(0)];
  let turn = 0;
  const start = (from: number): Promise<Window> | undefined => {
    if (from >= records.length) return undefined;
    const { to, offset, length } = windowFrom(links, records, from);
    const at = turn++ % 2;
    // The only window of a short list takes no more than it holds.
    const room = from === 0 && to === records.length ? length : Math.max(length, WINDOW);
    if (buffers[at]!.length < length) buffers[at] = Buffer.allocUnsafe(room);
    const buffer = buffers[at]!;
    const window = readBytes(file, buffer, offset, length).then((read) => ({ buffer, offset, length: read, from, to }));
    // It is awaited below; a reader that stops early leaves it unawaited.
    window.catch(() => {});
    return window;
  };
  for (let ahead = start(0); ahead; ) {
    const window = await ahead;
    ahead = start(window.to);
    yield window;
  }
}

function windowFrom(links: Links, records: Int32Array, from: number): { to: number; offset: number; length: number } {
  const offset = links.offsets[records[from]!]!;
  let to = from;
  let end = offset;
  do {
    const at = records[to++]!;
    end = links.offsets[at]! + links.lengths[at]!;
  } while (to < records.length && links.offsets[records[to]!]! + links.lengths[records[to]!]! - offset <= WINDOW);
  return { to, offset, length: end - offset };
}
