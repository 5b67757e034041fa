import { closeSync, constants, fstatSync, lstatSync, openSync, read } from 'node:fs';
import { errorCode } from '../error-code.ts';
import { SessionFault } from './faults.ts';
import { notAFile } from './storage-fault.ts';

/** The reading end of a file. On callbacks, since loading `node:fs/promises` takes longer than reading a short transcript. */
export class ReadHandle {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Reads at most `length` bytes from `position` of the file to `offset` of `buffer`; 0 are read behind its end. */
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }> {
    return new Promise((resolve, reject) => {
      read(this.#fd, buffer, offset, length, position, (error, bytesRead) => {
        if (error) reject(error);
        else resolve({ bytesRead });
      });
    });
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** A transcript opened for reading. `size` is fixed at opening: what is appended later is not read. */
export interface TranscriptFile {
  readonly path: string;
  readonly handle: ReadHandle;
  /** Bytes. */
  readonly size: number;
  readonly ino: number;
  /** Milliseconds since the epoch. */
  readonly mtimeMs: number;
}

/**
 * Opens a transcript without following a link and without waiting for a FIFO's writer; undefined where there is no such
 * file. The caller closes `handle`.
 * Throws `SessionFault` `invalid_params` for what is no regular file, `storage` for what cannot be opened.
 */
export function openTranscript(path: string): TranscriptFile | undefined {
  const fd = openWithoutFollowing(path);
  if (fd === undefined) return undefined;
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw notAFile(path, stats);
    return { path, handle: new ReadHandle(fd), size: stats.size, ino: stats.ino, mtimeMs: stats.mtimeMs };
  } catch (error) {
    closeSync(fd);
    throw unreadable(path, error);
  }
}

/** Opens a transcript for as long as `use` runs, at most to byte `limit`. Throws as `openTranscript` does, and what `use` throws. */
export async function withTranscript<T>(
  path: string,
  limit: number | undefined,
  use: (file: TranscriptFile | undefined) => Promise<T>,
): Promise<T> {
  const file = openTranscript(path);
  try {
    return await use(file && limit !== undefined && limit < file.size ? { ...file, size: limit } : file);
  } finally {
    file?.handle.close();
  }
}

function openWithoutFollowing(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'ELOOP' || code === 'ENXIO') throw notAFile(path, lstatSync(path));
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): SessionFault {
  if (error instanceof SessionFault) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new SessionFault('storage', `The transcript ${path} could not be read: ${reason}.`, { cause: error });
}
