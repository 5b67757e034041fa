import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync, unlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorCode } from '../error-code.ts';
import { isStoredSessionId } from './ids.ts';
import { withLock } from './lock.ts';
import { notAFile, storageFault } from './storage-fault.ts';
import { lockPath } from './store.ts';
import { readSummary } from './summary.ts';

/** A saved session, as its file's head and tail show it. */
export interface SavedSession {
  readonly sessionId: string;
  readonly path: string;
  /** The working directory in its first record; two directories can share a folder of transcripts. */
  readonly cwd: string;
  /** What it was named, else how its first prompt begins. */
  readonly title?: string;
  /** ISO 8601, of the first record. */
  readonly createdAt?: string;
  /** ISO 8601, of the last write. */
  readonly updatedAt: string;
}

const SUFFIX = '.jsonl';
const HEAD_BYTES = 8_192;
const TAIL_BYTES = 8_192;
/** Files read between two looks at the event loop; a few milliseconds. */
const SLICE = 64;

/** A place in the list: behind this session. Sessions that are written later come before it. */
export interface ListPosition {
  /** Of the session's last write; milliseconds since the epoch. */
  readonly time: number;
  /** Orders sessions of one time. */
  readonly key: string;
}

export interface ListWanted {
  /** Sessions of this working directory only. */
  readonly cwd?: string | undefined;
  readonly after?: ListPosition | undefined;
  /** Default: all. */
  readonly limit?: number;
}

export interface SessionPage {
  readonly sessions: readonly SavedSession[];
  /** Where the next page begins; undefined behind the last. */
  readonly next: ListPosition | undefined;
}

/**
 * The sessions whose transcripts are in these folders, the newest write first. Reads a few kilobytes of each that it
 * lists; what is no transcript is left out, a missing folder is empty.
 */
export async function listSessions(chatsDirs: readonly string[], wanted: ListWanted = {}): Promise<SessionPage> {
  const { cwd, after, limit = Number.POSITIVE_INFINITY } = wanted;
  const candidates = chatsDirs.flatMap(candidatesIn);
  const ordered = candidates.sort(newestFirst).filter((place) => after === undefined || newestFirst(after, place) < 0);
  const sessions: SavedSession[] = [];
  let last: ListPosition | undefined;
  for (const [index, candidate] of ordered.entries()) {
    if (index % SLICE === SLICE - 1) await nextTurn();
    const session = readSaved(candidate);
    if (session === undefined || (cwd !== undefined && session.cwd !== cwd)) continue;
    if (sessions.length === limit) return { sessions, next: last };
    sessions.push(session);
    last = { time: candidate.time, key: candidate.key };
  }
  return { sessions, next: undefined };
}

interface Candidate extends ListPosition {
  readonly sessionId: string;
  readonly path: string;
}

function candidatesIn(chatsDir: string): Candidate[] {
  const folder = basename(dirname(chatsDir));
  return namesIn(chatsDir).flatMap((name) => {
    const sessionId = name.slice(0, -SUFFIX.length);
    if (!name.endsWith(SUFFIX) || !isStoredSessionId(sessionId)) return [];
    const path = join(chatsDir, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (!stats?.isFile()) return [];
    return [{ sessionId, path, time: stats.mtimeMs, key: `${sessionId} ${folder}` }];
  });
}

function newestFirst(a: ListPosition, b: ListPosition): number {
  return b.time - a.time || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}

function readSaved({ sessionId, path, time }: Candidate): SavedSession | undefined {
  const ends = readEnds(path);
  const summary = ends && readSummary(sessionId, ends.head, ends.tail);
  return summary && { sessionId, path, ...summary, updatedAt: new Date(time).toISOString() };
}

/** The `chats` folders of all working directories under a runtime folder. */
export function allChatsDirs(runtimeDir: string): string[] {
  const projects = join(runtimeDir, 'projects');
  return namesIn(projects).map((name) => join(projects, name, 'chats'));
}

/**
 * Removes a transcript and the files beside it. False when there is none.
 * Throws `SessionFault` `invalid_params` for what is no regular file, `transcript_busy`, `storage`.
 */
export async function deleteSession(path: string): Promise<boolean> {
  try {
    if (!isTranscript(path)) return false;
    // Under the lock, so that a process in the middle of an append does not write into a file without a name.
    return await withLock(lockPath(path), () => {
      if (!isTranscript(path)) return false;
      for (const beside of filesBeside(path)) unlinkIfThere(beside);
      unlinkIfThere(path);
      return true;
    });
  } catch (error) {
    throw storageFault(path, error);
  }
}

function isTranscript(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && !stats.isFile()) throw notAFile(path, stats);
  return stats !== undefined;
}

/** The daemon's ledger, and what a crash left of somebody's lock; not the lock itself, which is ours now. */
function filesBeside(path: string): string[] {
  const folder = dirname(path);
  const ledger = `${basename(path, SUFFIX)}.ledger${SUFFIX}`;
  const locks = `${basename(lockPath(path))}.`;
  return namesIn(folder)
    .filter((name) => name === ledger || name.startsWith(locks))
    .map((name) => join(folder, name));
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return [];
    throw storageFault(folder, error);
  }
}

interface Ends {
  readonly head: string;
  readonly tail: string;
}

/** Undefined for what is no regular file or cannot be read: one bad file does not hide the others. */
function readEnds(path: string): Ends | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size === 0) return undefined;
    return {
      head: readAt(fd, 0, HEAD_BYTES),
      tail: readAt(fd, Math.max(0, stats.size - TAIL_BYTES), TAIL_BYTES),
    };
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function readAt(fd: number, position: number, length: number): string {
  const bytes = Buffer.allocUnsafe(length);
  return bytes.toString('utf8', 0, readSync(fd, bytes, 0, length, position));
}
