import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { errorCode } from '../error-code.ts';

/** Who holds a lock: enough to tell a process from a later one with the same number. */
export interface LockOwner {
  readonly pid: number;
  /** Clock ticks since boot, as /proc has it; null where there is no /proc. */
  readonly startTime: string | null;
  readonly host: string;
  /** Containers can share a host name but not process numbers; null where there is no /proc. */
  readonly namespace: string | null;
}

/** An owner that we cannot look up is given up when its lock is this old; a lock is held for one append. */
const FOREIGN_LOCK_MS = 30_000;

let self: LockOwner | undefined;

/** This process as a lock's owner. Read on first use, not on import. */
export function thisProcess(): LockOwner {
  self ??= {
    pid: process.pid,
    startTime: lookUp(process.pid).startTime,
    host: hostname(),
    namespace: pidNamespace(),
  };
  return self;
}

/** The owner in a lock file's text; undefined for an empty, cut or foreign text. */
export function parseOwner(text: string): LockOwner | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { pid, startTime, host, namespace } = value as Readonly<Record<string, unknown>>;
  // 0 and negative numbers name process groups: asking after them would ask about ourselves.
  if (typeof pid !== 'number' || !Number.isInteger(pid) || pid <= 0 || typeof host !== 'string') return undefined;
  return {
    pid,
    host,
    startTime: typeof startTime === 'string' ? startTime : null,
    namespace: typeof namespace === 'string' ? namespace : null,
  };
}

/** True when the owner of a lock of this age will never release it. */
export function isGone(owner: LockOwner, ageMs: number): boolean {
  const here = thisProcess();
  if (owner.host !== here.host || owner.namespace !== here.namespace) return ageMs > FOREIGN_LOCK_MS;
  const found = lookUp(owner.pid);
  if (!found.running) return true;
  return owner.startTime !== null && found.startTime !== null && owner.startTime !== found.startTime;
}

/** For an error message. */
export function describeOwner(owner: LockOwner): string {
  return `process ${owner.pid} on ${owner.host}`;
}

interface FoundProcess {
  readonly running: boolean;
  readonly startTime: string | null;
}

function lookUp(pid: number): FoundProcess {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field, the program's name, is in parentheses and may hold any character.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    // A zombie has a number until its parent collects it, which in a container may be never.
    return { running: state !== 'Z' && state !== 'X', startTime: fields[19] ?? null };
  } catch {
    return { running: signalReaches(pid), startTime: null };
  }
}

function signalReaches(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: there is such a process, and it is somebody else's.
    return errorCode(error) === 'EPERM';
  }
}

function pidNamespace(): string | null {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return null;
  }
}
