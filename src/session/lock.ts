import { closeSync, constants, fstatSync, linkSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from '../error-code.ts';
import { SessionFault } from './faults.ts';
import { describeOwner, isGone, type LockOwner, parseOwner, thisProcess } from './lock-owner.ts';

/** How long a live owner is waited for. It holds the lock for one append, so this is long already. */
const PATIENCE_MS = 2_000;
const LONGEST_PAUSE_MS = 50;
/** A take-over of a take-over's lock needs a crash in each; more than this many in a row is no accident. */
const DEEPEST_TAKEOVER = 3;
/** What an owner can need, with room for a long host name. */
const OWNER_BYTES = 1_024;

type Attempt = { readonly held: true } | { readonly held: false; readonly owner: LockOwner | undefined };

/**
 * Runs `critical` while this process owns the lock file at `path`. `critical` is synchronous: the lock is never held
 * over an await. A dead owner's lock is taken over.
 * Throws `SessionFault` `transcript_busy` when a live owner keeps it for `patienceMs`, and what `node:fs` throws.
 */
export async function withLock<T>(path: string, critical: () => T, patienceMs: number = PATIENCE_MS): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (let pause = 1; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const attempt = tryAcquire(path, 0);
    if (attempt.held) {
      try {
        return critical();
      } finally {
        remove(path);
      }
    }
    if (performance.now() >= deadline) throw busy(path, attempt.owner);
    // The random part keeps two waiting processes from meeting again at every retry.
    await sleep(pause * (0.5 + Math.random()));
  }
}

function busy(path: string, owner: LockOwner | undefined): SessionFault {
  const who = owner === undefined ? 'another process' : describeOwner(owner);
  return new SessionFault('transcript_busy', `The session is being written by ${who} (lock file ${path}). Try again.`);
}

function tryAcquire(path: string, depth: number): Attempt {
  if (publish(path)) return { held: true };
  const found = inspect(path);
  if (found.state === 'live') return { held: false, owner: found.owner };
  if (found.state === 'dead') {
    const blocked = removeDead(path, depth);
    if (blocked !== undefined) return blocked;
  }
  return publish(path) ? { held: true } : { held: false, owner: undefined };
}

/**
 * A dead lock is removed under a lock of its own and judged again there: of two processes that saw it dead, the slower
 * one would otherwise remove the lock that the faster one has taken meanwhile.
 */
function removeDead(path: string, depth: number): Attempt | undefined {
  if (depth >= DEEPEST_TAKEOVER) return { held: false, owner: undefined };
  const breaker = `${path}.break`;
  const attempt = tryAcquire(breaker, depth + 1);
  if (!attempt.held) return attempt;
  try {
    if (inspect(path).state === 'dead') remove(path);
  } finally {
    remove(breaker);
  }
  return undefined;
}

/** Creates the lock with its owner in it in one step, by a link: nobody ever sees an empty lock of a live owner. */
function publish(path: string): boolean {
  const draft = `${path}.${crypto.randomUUID()}`;
  const fd = openSync(draft, 'wx', 0o600);
  try {
    try {
      writeSync(fd, JSON.stringify(thisProcess()));
    } finally {
      closeSync(fd);
    }
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    unlinkSync(draft);
  }
}

type Found =
  | { readonly state: 'absent' }
  | { readonly state: 'dead' }
  | { readonly state: 'live'; readonly owner: LockOwner };

function inspect(path: string): Found {
  const lock = readLock(path);
  if (lock === undefined) return { state: 'absent' };
  // Locks appear with their content, so one without an owner is what a crash of the machine left.
  const owner = parseOwner(lock.text);
  return owner === undefined || isGone(owner, lock.ageMs) ? { state: 'dead' } : { state: 'live', owner };
}

function readLock(path: string): { readonly text: string; readonly ageMs: number } | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (errorCode(error) === 'ELOOP') return { text: '', ageMs: 0 };
    throw error;
  }
  try {
    const bytes = Buffer.alloc(OWNER_BYTES);
    const length = readSync(fd, bytes, 0, bytes.length, 0);
    return { text: bytes.toString('utf8', 0, length), ageMs: Date.now() - fstatSync(fd).mtimeMs };
  } finally {
    closeSync(fd);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}
