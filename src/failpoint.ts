import { existsSync, writeFileSync } from 'node:fs';
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

const reached = new Map<Moment, number>();

/**
 * Stops the whole process at the n-th time of the moment that `QWEN_ACP_FAILPOINT` names (`moment:n`), saying so with a file
 * of its name in `QWEN_ACP_FAILPOINT_DIR`; removing the file lets it go on.
 */
export function failpoint(moment: Moment): void {
  if (typeof FAILPOINTS === 'undefined' || !FAILPOINTS) return;
  const dir = process.env['QWEN_ACP_FAILPOINT_DIR'];
  const times = (reached.get(moment) ?? 0) + 1;
  reached.set(moment, times);
  if (dir === undefined || process.env['QWEN_ACP_FAILPOINT'] !== `${moment}:${times}`) return;
  const file = join(dir, moment);
  writeFileSync(file, String(process.pid), { flag: 'wx' });
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (existsSync(file)) Atomics.wait(pause, 0, 0, 5);
}
