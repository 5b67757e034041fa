import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  type Stats,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { errorCode } from '../error-code.ts';
import { SessionFault } from './faults.ts';
import { notAFile } from './storage-fault.ts';

/** What is remembered of a file's end to see that it is still the same. */
export interface FileTail {
  readonly ino: number;
  /** Bytes. */
  readonly size: number;
  /** The last bytes of the file, `TAIL_BYTES` or the whole of a shorter one. */
  readonly tailBytes: Uint8Array;
}

export const TAIL_BYTES = 256;

const NEWLINE = 0x0a;
const NO_FOLLOW = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** An append that is in the file but perhaps not yet on the disk. The caller closes `fd`. */
export interface Appended {
  readonly fd: number;
  readonly tail: FileTail;
}

/**
 * Appends whole lines in one write, if the file still ends as `known` says (null: if there is no file yet). The caller
 * holds the session's lock. What cannot be written completely is taken back.
 * Throws `SessionFault` `transcript_changed` or `invalid_params`, and what `node:fs` throws, `ENOENT` among it when the
 * folder of a new file is missing.
 */
export function compareAndAppend(path: string, known: FileTail | null, lines: Buffer): Appended {
  const fd = known === null ? create(path) : openKnown(path);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw notAFile(path, stats);
    const end = known === null ? Buffer.alloc(0) : knownEnd(path, fd, stats, known);
    const bytes = end.length > 0 && end.at(-1) !== NEWLINE ? Buffer.concat([Buffer.of(NEWLINE), lines]) : lines;
    writeWhole(path, fd, bytes, known?.size);
    return {
      fd,
      tail: {
        ino: stats.ino,
        size: stats.size + bytes.length,
        tailBytes: lastBytes(end, bytes),
      },
    };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Throws what {@link compareAndAppend} would if the file no longer ends as `known` says, and writes nothing. */
export function compareTail(path: string, known: FileTail): void {
  const fd = openKnown(path);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw notAFile(path, stats);
    knownEnd(path, fd, stats, known);
  } finally {
    closeSync(fd);
  }
}

function create(path: string): number {
  try {
    return openSync(
      path,
      constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW,
      0o600,
    );
  } catch (error) {
    if (errorCode(error) === 'EEXIST') throw refusal(path);
    throw error;
  }
}

function openKnown(path: string): number {
  try {
    return openSync(path, constants.O_RDWR | constants.O_APPEND | NO_FOLLOW);
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'EISDIR', 'ENXIO'].includes(errorCode(error) ?? '')) throw refusal(path);
    throw error;
  }
}

/** What is to be said of a path that holds something else than the file that we know. */
function refusal(path: string): SessionFault {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats === undefined || stats.isFile() ? transcriptChanged(path) : notAFile(path, stats);
}

/** The file is not the one that was read. */
export function transcriptChanged(path: string): SessionFault {
  return new SessionFault(
    'transcript_changed',
    `The transcript ${path} was changed by something else since it was read; nothing was written. Load the session again.`,
  );
}

function knownEnd(path: string, fd: number, stats: Stats, known: FileTail): Buffer {
  const end = readEnd(fd, stats.size);
  if (!isSame(known, stats, end)) throw transcriptChanged(path);
  return end;
}

function readEnd(fd: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.min(size, TAIL_BYTES));
  const length = readSync(fd, bytes, 0, bytes.length, size - bytes.length);
  return bytes.subarray(0, length);
}

/** Pure: whether the file is the one that is known. */
function isSame(known: FileTail, stats: Stats, end: Uint8Array): boolean {
  return stats.ino === known.ino && stats.size === known.size && Buffer.compare(end, known.tailBytes) === 0;
}

function lastBytes(end: Uint8Array, appended: Uint8Array): Uint8Array {
  const missing = TAIL_BYTES - appended.length;
  // A copy in any case: a view would keep the whole append in memory.
  return missing <= 0
    ? Buffer.from(appended.subarray(-TAIL_BYTES))
    : Buffer.concat([end.subarray(Math.max(0, end.length - missing)), appended]);
}

function writeWhole(path: string, fd: number, bytes: Buffer, sizeBefore: number | undefined): void {
  try {
    const written = writeSync(fd, bytes);
    // A disk that fills up shows first as a short write; the next one would bring the error's name.
    if (written < bytes.length) writeSync(fd, bytes, written);
    else return;
  } catch (error) {
    takeBack(path, fd, sizeBefore);
    throw error;
  }
}

function takeBack(path: string, fd: number, sizeBefore: number | undefined): void {
  if (sizeBefore === undefined) unlinkSync(path);
  else ftruncateSync(fd, sizeBefore);
}
