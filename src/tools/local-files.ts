import { randomUUID } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { access, type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode, isMissing } from '../error-code.ts';
import { ToolFault } from '../session/faults.ts';
import type { FileAccess } from '../session/ports.ts';
import { faultOf, requireFile } from './file-faults.ts';
import { realPlace } from './workspace.ts';

/** Of a text that is read or written as a whole. */
export const MAX_TEXT_BYTES = 10 * 1024 * 1024;

const CHUNK_BYTES = 256 * 1024;

/**
 * The disk. Text is UTF-8 and comes and goes as it is, byte order mark and line ends included. Where a path may lie is the
 * tools' business.
 */
export function localFiles(): FileAccess {
  return {
    async readText(path, signal) {
      try {
        return decode(await readWhole(path, signal), path);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw faultOf(error, path);
      }
    },
    async writeText(path, text, signal) {
      const bytes = Buffer.from(text);
      if (bytes.length > MAX_TEXT_BYTES) throw tooLarge(path);
      try {
        await replace(await realPlace(path), bytes, signal);
      } catch (error) {
        throw faultOf(error, path);
      }
    },
  };
}

/** Opens a regular file for reading; what it is is looked at before, as opening a pipe or device may block or do something. */
export async function openFile(path: string): Promise<{ readonly handle: FileHandle; readonly stats: Stats }> {
  requireFile(await stat(path), path);
  const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = await handle.stat();
    requireFile(stats, path);
    return { handle, stats };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** All of a file of at most `limit` bytes. Throws `ToolFault`, or the file call's error. */
export async function readWhole(path: string, signal: AbortSignal, limit = MAX_TEXT_BYTES): Promise<Buffer> {
  signal.throwIfAborted();
  const { handle, stats } = await openFile(path);
  try {
    if (stats.size > limit) throw tooLarge(path, limit);
    const chunks: Buffer[] = [];
    let length = 0;
    // To the end, not to the size that it had: it may be growing, and the system's own files say 0.
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, length);
      signal.throwIfAborted();
      if (bytesRead === 0) return Buffer.concat(chunks, length);
      length += bytesRead;
      if (length > limit) throw tooLarge(path, limit);
      chunks.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}

function decode(bytes: Buffer, path: string): string {
  if (bytes.includes(0)) throw new ToolFault('binary_file', `${path} is a binary file, not text.`);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolFault('binary_file', `${path} is not UTF-8 text.`);
  }
}

/** The new text appears at once and whole, in a file of the same mode; `path` has no link in it. */
async function replace(path: string, bytes: Buffer, signal: AbortSignal): Promise<void> {
  const before = await stat(path).catch((error) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (before !== undefined) {
    requireFile(before, path);
    // A rename asks the folder, not the file, whether it may be changed.
    await access(path, constants.W_OK);
  }
  signal.throwIfAborted();
  await mkdir(dirname(path), { recursive: true });
  if (before !== undefined && isShared(before)) return overwrite(path, bytes);
  const temporary = join(dirname(path), `.qwen-acp-${randomUUID()}.tmp`);
  try {
    const handle = await open(temporary, 'wx');
    try {
      await handle.writeFile(bytes);
      if (before !== undefined) await handle.chmod(before.mode & 0o7777);
    } finally {
      await handle.close();
    }
    signal.throwIfAborted();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Another name of the file, or another owner, would be lost with a new file in its place. */
function isShared({ nlink, uid }: Stats): boolean {
  return nlink > 1 || (process.getuid !== undefined && uid !== process.getuid());
}

async function overwrite(path: string, bytes: Buffer): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    requireFile(await handle.stat(), path);
    await handle.truncate(0);
    await handle.writeFile(bytes);
  } finally {
    await handle.close();
  }
}

function tooLarge(path: string, limit = MAX_TEXT_BYTES): ToolFault {
  return new ToolFault('file_too_large', `${path} is larger than ${limit / 1024 / 1024} MiB.`);
}
