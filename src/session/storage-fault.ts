import type { Stats } from 'node:fs';
import { errorCode } from '../error-code.ts';
import { SessionFault } from './faults.ts';

/** Something in a transcript's place that is no regular file. */
export function notAFile(path: string, stats: Stats | undefined): SessionFault {
  return new SessionFault('invalid_params', `The transcript ${path} is ${kindOf(stats)}, not a regular file.`);
}

function kindOf(stats: Stats | undefined): string {
  if (stats === undefined) return 'of an unknown kind';
  if (stats.isSymbolicLink()) return 'a symbolic link';
  if (stats.isDirectory()) return 'a directory';
  if (stats.isFIFO()) return 'a FIFO';
  if (stats.isSocket()) return 'a socket';
  return 'a device';
}

/** The disk refused. A `SessionFault` passes as it is. */
export function storageFault(path: string, error: unknown): SessionFault {
  if (error instanceof SessionFault) return error;
  const reason = REASONS[errorCode(error) ?? ''] ?? (error instanceof Error ? error.message : String(error));
  return new SessionFault('storage', `The transcript ${path} could not be written: ${reason}.`, { cause: error });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be larger than is allowed',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  EIO: 'the disk reported an error',
  ENAMETOOLONG: 'the path is too long',
};
