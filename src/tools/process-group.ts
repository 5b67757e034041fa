import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { errorCode } from '../error-code.ts';

/** Between SIGTERM and SIGKILL, in ms. A turn that ends does not wait longer than a second for its tools. */
const GRACE_MS = 300;
/** After SIGKILL: what is gone by then but for its entry in the system's table counts as gone. */
const BURIAL_MS = 300;
const POLL_MS = 20;

const isWindows = process.platform === 'win32';

/** For `spawn`: makes the process the leader of a group of its own, where there are groups. */
export const LEADS_GROUP = { detached: !isWindows, windowsHide: true } as const;

/** The groups whose leaders were started and not ended yet. */
const live = new Set<number>();

/** To be told of a group as soon as its leader has started: whatever way this process exits, the group does not outlive it. */
export function adoptGroup(leader: number): void {
  if (live.size === 0) process.on('exit', killAll);
  live.add(leader);
}

/** Ends what is left of a group: SIGTERM, and SIGKILL for what does not heed it. Never rejects. */
export async function endGroup(leader: number): Promise<void> {
  if (isWindows) await killTree(leader);
  else if (signalGroup(leader, 'SIGTERM') && !(await isGoneWithin(leader, GRACE_MS))) {
    signalGroup(leader, 'SIGKILL');
    await isGoneWithin(leader, BURIAL_MS);
  }
  forget(leader);
}

/** Kills what is left of a group whose leader is gone. */
export function buryGroup(leader: number): void {
  signalGroup(leader, 'SIGKILL');
  forget(leader);
}

/** False when nobody is left to get it. Without groups the leader alone gets it. */
export function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(isWindows ? leader : -leader, signal);
    return true;
  } catch (error) {
    // Somebody is there who may not be signalled.
    return errorCode(error) === 'EPERM' && signal === 0;
  }
}

function forget(leader: number): void {
  live.delete(leader);
  if (live.size === 0) process.off('exit', killAll);
}

async function isGoneWithin(leader: number, milliseconds: number): Promise<boolean> {
  const end = performance.now() + milliseconds;
  while (signalGroup(leader, 0)) {
    if (performance.now() >= end) return false;
    await delay(POLL_MS);
  }
  return true;
}

function killAll(): void {
  for (const leader of live) signalGroup(leader, 'SIGKILL');
}

function killTree(pid: number): Promise<void> {
  return new Promise((resolve) => {
    execFile('taskkill', ['/pid', String(pid), '/T', '/F'], () => resolve());
  });
}
