import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** The ids of all processes that this one started, and that those started, nearest first. */
export async function descendants(pid: number): Promise<number[]> {
  const parents = await parentsOfAll();
  const found: number[] = [];
  for (let of = [pid]; of.length > 0; ) {
    of = [...parents].flatMap(([child, parent]) => (of.includes(parent) ? [child] : []));
    found.push(...of);
  }
  return found;
}

/** Ends processes at once; those that are gone already are no error. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended meanwhile.
    }
  }
}

/** Whether a process has not ended. One that ended and that nobody has asked for its exit code yet does not count. */
export async function isRunning(pid: number): Promise<boolean> {
  if (process.platform === 'linux') return (await parentOf(String(pid))) !== undefined;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function parentsOfAll(): Promise<Map<number, number>> {
  if (process.platform === 'linux') {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(pids.map(async (pid) => [Number(pid), await parentOf(pid)] as const));
    return new Map(found.flatMap(([pid, parent]) => (parent === undefined ? [] : [[pid, parent] as const])));
  }
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=']);
  return new Map([...stdout.matchAll(/(\d+) +(\d+)/g)].map(([, pid, parent]) => [Number(pid), Number(parent)]));
}

/** Undefined for one that ended; a zombie counts as ended. */
async function parentOf(pid: string): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [, state, parent] = /^.*\) (\S) (\d+)/s.exec(stat) ?? [];
  return state === undefined || state === 'Z' ? undefined : Number(parent);
}
