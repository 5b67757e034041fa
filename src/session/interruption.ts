import type { Content } from '@google/genai';
import { danglingCalls } from './dangling.ts';

/** What `continue` says of the end of a session, in the reference's words. */
export type Interruption = 'none' | 'interrupted_turn' | 'interrupted_prompt';

/**
 * Whether the last turn stopped before its end. `turnEnded` is true when the records say that the turn is over although
 * its history does not end in the model's text: a decline, or a turn that a person cancelled.
 */
export function classifyInterruption(history: readonly Content[], turnEnded: boolean): Interruption {
  const last = history.at(-1);
  if (turnEnded || last === undefined) return 'none';
  if (danglingCalls(history).length > 0) return 'interrupted_turn';
  if (last.role === 'model') return 'none';
  return last.parts?.some(({ functionResponse }) => functionResponse) ? 'interrupted_turn' : 'interrupted_prompt';
}
