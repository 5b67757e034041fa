import { execFileSync } from 'node:child_process';

/** Makes a FIFO, for which Node has no call of its own. */
export function makeFifo(path: string): void {
  execFileSync('sh', ['-c', 'mkfifo "$0"', path]);
}
