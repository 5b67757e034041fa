import { constants, promises } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { SessionFault } from './faults.ts';
import { errorCode, notAFile } from './storage-fault.ts';

/** A transcript opened for reading. `size` is fixed at opening: what is appended later is not read. */
export interface TranscriptFile {
  readonly path: string;
  readonly handle: FileHandle;
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
export async function openTranscript(path: string): Promise<TranscriptFile | undefined> {
  const handle = await openWithoutFollowing(path);
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw notAFile(path, stats);
    return { path, handle, size: stats.size, ino: stats.ino, mtimeMs: stats.mtimeMs };
  } catch (error) {
    await handle.close();
    throw unreadable(path, error);
  }
}

/** Opens a transcript for as long as `use` runs, at most to byte `limit`. Throws as `openTranscript` does, and what `use` throws. */
export async function withTranscript<T>(
  path: string,
  limit: number | undefined,
  use: (file: TranscriptFile | undefined) => Promise<T>,
): Promise<T> {
  const file = await openTranscript(path);
  try {
    return await use(file && limit !== undefined && limit < file.size ? { ...file, size: limit } : file);
  } finally {
    await file?.handle.close();
  }
}

async function openWithoutFollowing(path: string): Promise<FileHandle | undefined> {
  try {
    return await promises.open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'ELOOP' || code === 'ENXIO') throw notAFile(path, await promises.lstat(path));
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): SessionFault {
  if (error instanceof SessionFault) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new SessionFault('storage', `The transcript ${path} could not be read: ${reason}.`, { cause: error });
}
