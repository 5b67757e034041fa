import type { CancelledTurn } from './ports.ts';
import { isObject } from './record-bytes.ts';
import type { RecordContext, RecordDraft } from './records.ts';
import { systemRecord } from './records.ts';
import { SUBTYPE } from './transcript.ts';

/** How a turn ended, as the record that outlives the process says it. Times are milliseconds since the epoch. */
export interface TurnResult {
  readonly promptId: string;
  readonly end:
    | { readonly state: 'completed'; readonly stopReason: string }
    /** `leftOpen`: its question is asked again, so that a load shows no end. */
    | { readonly state: 'cancelled'; readonly cancelledAt: number; readonly leftOpen?: boolean }
    | { readonly state: 'error'; readonly message: string };
  readonly startedAt: number;
  readonly promptText: string;
  readonly resultText: string;
  readonly originatorClientId?: string | undefined;
}

/** Longer texts make the whole record void for its readers. UTF-16 units. */
const LONGEST_TEXT = 32_768;
const LONGEST_ERROR = 4_096;

/** The end of a turn; `endedAt` is the clock's now. */
export function turnResultRecord(context: RecordContext, result: TurnResult): RecordDraft {
  const { end } = result;
  const prompt = cut(result.promptText, LONGEST_TEXT);
  const answer = cut(result.resultText, LONGEST_TEXT);
  return systemRecord(context, SUBTYPE.turnResult, {
    promptId: result.promptId,
    state: end.state,
    ...(end.state === 'error' ? {} : { stopReason: end.state === 'cancelled' ? 'cancelled' : end.stopReason }),
    ...(end.state === 'error' ? { error: errorOf(end.message) } : {}),
    startedAt: result.startedAt,
    ...(end.state === 'cancelled' ? { cancelledAt: end.cancelledAt } : {}),
    ...(end.state === 'cancelled' && end.leftOpen ? { leftOpen: true } : {}),
    endedAt: context.now().getTime(),
    promptText: prompt.text,
    ...(prompt.truncated ? { promptTextTruncated: true } : {}),
    ...(answer.text === '' ? {} : { resultText: answer.text }),
    ...(answer.truncated ? { resultTruncated: true, resultCode: 'RESULT_TEXT_TRUNCATED' } : {}),
    ...(result.originatorClientId === undefined ? {} : { originatorClientId: result.originatorClientId }),
  });
}

/** What such a record's payload says of a turn that a person ended for good; undefined where it says something else. */
export function cancelledTurn(payload: unknown): CancelledTurn | undefined {
  if (!isObject(payload)) return undefined;
  const { state, promptId, leftOpen, cancelledAt, startedAt = cancelledAt } = payload;
  if (state !== 'cancelled' || leftOpen === true || typeof promptId !== 'string' || promptId === '') return undefined;
  if (!Number.isFinite(cancelledAt) || !Number.isFinite(startedAt)) return undefined;
  const at = cancelledAt as number;
  return { promptId, cancelledAt: at, elapsedMs: Math.max(0, at - (startedAt as number)) };
}

function errorOf(message: string): { message: string; messageTruncated?: true } {
  const { text, truncated } = cut(message === '' ? 'unknown error' : message, LONGEST_ERROR);
  return truncated ? { message: text, messageTruncated: true } : { message: text };
}

function cut(text: string, longest: number): { readonly text: string; readonly truncated: boolean } {
  if (text.length <= longest) return { text, truncated: false };
  const last = text.charCodeAt(longest - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return { text: text.slice(0, splitsPair ? longest - 1 : longest), truncated: true };
}
