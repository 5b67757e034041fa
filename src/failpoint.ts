import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** True in the bundle that the crash tests run, false in the one that is shipped, where nothing of this is left. */
declare const FAILPOINTS: boolean | undefined;

/** Moments in the life of a question, in the daemon and in the child, at which everything may end. */
export type Moment =
  | 'question_created'
  | 'request_event_sent'
  | 'vote_received'
  | 'journal_written'
  | 'reply_sent'
  | 'response_persisted'
  | 'model_called'
  | 'turn_ended';

let counted = { wanted: '', times: 0 };

/**
 * Holds the whole process at the n-th time of the moment that the file `wanted` in `QWEN_ACP_FAILPOINTS` names
 * (`moment:n`), once: `wanted` is gone then, and a file `held` is there until the process may go on.
 */
export function failpoint(moment: Moment): void {
  if (typeof FAILPOINTS === 'undefined' || !FAILPOINTS) return;
  const dir = process.env['QWEN_ACP_FAILPOINTS'];
  if (dir === undefined) return;
  const [wantedFile, held] = [join(dir, 'wanted'), join(dir, 'held')];
  const wanted = read(wantedFile);
  if (wanted.split(':')[0] !== moment) return;
  if (counted.wanted !== wanted) counted = { wanted, times: 0 };
  counted.times += 1;
  if (counted.times !== Number(wanted.split(':')[1])) return;
  writeFileSync(held, String(process.pid));
  rmSync(wantedFile, { force: true });
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (existsSync(held)) Atomics.wait(pause, 0, 0, 5);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
