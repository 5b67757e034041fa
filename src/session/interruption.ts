import type { Content } from '@google/genai';
import { danglingCalls } from './dangling.ts';
import type { SessionHistory } from './history.ts';

/** What `continue` says of the end of a session, in the reference's words. */
export type Interruption = 'none' | 'interrupted_turn' | 'interrupted_prompt';

/** Error types of a call after which the turn ends without the model: the client failed, or an earlier call was declined. */
const TURN_ENDING_ERRORS = ['unhandled_exception', 'execution_denied'];

type TurnEnd = Pick<SessionHistory, 'lastResult' | 'lastTurnState'>;

/** Whether the records say that the turn is over although its history does not end in the model's text. */
function isOver({ lastResult, lastTurnState }: TurnEnd): boolean {
  if (lastTurnState === 'cancelled' || lastTurnState === 'completed') return true;
  // A call that was stopped while it ran was not declined: what stopped the turn says whether it is over.
  const declined = lastResult?.status === 'cancelled' && lastResult.executionStatus !== 'error';
  return declined || TURN_ENDING_ERRORS.includes(lastResult?.errorType ?? '');
}

/** Whether the last turn stopped before its end. */
export function classifyInterruption(history: TurnEnd & Pick<SessionHistory, 'contents'>): Interruption {
  const last: Content | undefined = history.contents.at(-1);
  if (last === undefined || isOver(history)) return 'none';
  if (danglingCalls(history.contents).length > 0) return 'interrupted_turn';
  if (last.role === 'model') return 'none';
  return last.parts?.some(({ functionResponse }) => functionResponse) ? 'interrupted_turn' : 'interrupted_prompt';
}

/** Whether a turn can be gone on with. `asked`: its question is open, and asking again is how it goes on. */
export function continuation(
  asked: boolean,
  history: TurnEnd & Pick<SessionHistory, 'contents'>,
): { readonly accepted: boolean; readonly interruption: Interruption } {
  const interruption = asked ? 'none' : classifyInterruption(history);
  return { accepted: interruption !== 'none', interruption };
}
