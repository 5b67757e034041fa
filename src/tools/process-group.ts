import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf } from './file-faults.ts';

/** Between SIGTERM and SIGKILL, in ms. A turn that ends does not wait longer than a second for its tools. */
const GRACE_MS = 300;
/** After SIGKILL: what is gone by then but for its entry in the system's table counts as gone. */
const BURIAL_MS = 300;
const POLL_MS = 20;

const isWindows = process.platform === 'win32';

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
  else if (send(leader, 'SIGTERM') && !(await isGoneWithin(leader, GRACE_MS))) {
    send(leader, 'SIGKILL');
    await isGoneWithin(leader, BURIAL_MS);
  }
  live.delete(leader);
  if (live.size === 0) process.off('exit', killAll);
}

async function isGoneWithin(leader: number, milliseconds: number): Promise<boolean> {
  const end = performance.now() + milliseconds;
  while (send(leader, 0)) {
    if (performance.now() >= end) return false;
    await delay(POLL_MS);
  }
  return true;
}

/** False when nobody is left to get it. */
function send(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-leader, signal);
    return true;
  } catch (error) {
    // Somebody is there who may not be signalled.
    return codeOf(error) === 'EPERM' && signal === 0;
  }
}

function killAll(): void {
  for (const leader of live) send(leader, 'SIGKILL');
}

function killTree(pid: number): Promise<void> {
  return new Promise((resolve) => {
    execFile('taskkill', ['/pid', String(pid), '/T', '/F'], () => resolve());
  });
}
