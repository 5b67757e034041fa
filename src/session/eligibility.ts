import type { Content, FunctionCall } from '@google/genai';
import { ASK_USER_QUESTION, parseAskUserQuestionParams } from './question.ts';
import type { TranscriptRecord } from './transcript.ts';

/** Why a trailing batch is not asked again. Reaches the debug log and `explain`, never the wire. */
export type IneligibleReason =
  | 'switched_off'
  | 'suppressed'
  | 'prompt_in_flight'
  | 'no_trailing_model_turn'
  | 'no_question'
  | 'mixed_tools'
  | 'invalid_params';

/** The one decision of a load: the calls that can be asked again, or why there are none. */
export type Eligibility = { readonly calls: readonly QuestionCall[] } | { readonly reason: IneligibleReason };

/** A call of `ask_user_question` that has an id. */
export type QuestionCall = FunctionCall & { readonly id: string };

/**
 * Whether the last entry of the API history is a batch of questions and nothing else. Reads that entry alone and works on
 * the entry itself. Calls without an id count neither way.
 */
export function findRestorableAskUserQuestion(last: Content | undefined): Eligibility {
  if (last?.role !== 'model') return { reason: 'no_trailing_model_turn' };
  const calls = (last.parts ?? []).map((part) => part.functionCall).filter(hasId);
  if (calls.length === 0) return { reason: 'no_question' };
  const others = calls.filter(({ name }) => name !== ASK_USER_QUESTION);
  if (others.length > 0) return { reason: others.length === calls.length ? 'no_question' : 'mixed_tools' };
  if (!calls.every(({ args }) => parseAskUserQuestionParams(args).ok)) return { reason: 'invalid_params' };
  return { calls };
}

const hasId = (call: FunctionCall | undefined): call is QuestionCall => typeof call?.id === 'string' && call.id !== '';

/** The ids of the calls that {@link findRestorableAskUserQuestion} finds. */
export function restorableAskUserQuestionCallIds(last: Content | undefined): ReadonlySet<string> {
  return callIdsOf(findRestorableAskUserQuestion(last));
}

/** The last content of a conversation's records that belongs to the API history. */
export function lastHistoryContentFromRecords(records: readonly TranscriptRecord[]): Content | undefined {
  return records.findLast((record) => record.type !== 'system' && record.message !== undefined)?.message;
}

/** What a load or resume knows around the last entry. */
export interface LoadSituation {
  readonly switchedOn: boolean;
  readonly suppressed: boolean;
  readonly promptInFlight: boolean;
}

/** The decision of a load or resume. The last entry is read only when the situation allows a restore. */
export function decideRestore(situation: LoadSituation, last: () => Content | undefined): Eligibility {
  if (!situation.switchedOn) return { reason: 'switched_off' };
  if (situation.suppressed) return { reason: 'suppressed' };
  if (situation.promptInFlight) return { reason: 'prompt_in_flight' };
  return findRestorableAskUserQuestion(last());
}

/** The set that repair, replay and the hint all take. */
export function callIdsOf(eligibility: Eligibility): ReadonlySet<string> {
  return new Set('calls' in eligibility ? eligibility.calls.map(({ id }) => id) : []);
}
