import { readdirSync, readFileSync } from 'node:fs';

/** The ids of the processes that have this entry, such as `HOME=/x`, in their environment. */
export function processesWith(entry: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => environmentOf(pid).split('\0').includes(entry))
    .map(Number);
}

/** Of a process that is there and not a zombie; empty otherwise. */
function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return '';
  }
}
