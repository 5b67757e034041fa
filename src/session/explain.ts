import type { Content } from '@google/genai';
import { danglingCalls, idCalls } from './dangling.ts';
import { callIdsOf, decideRestore, findRestorableAskUserQuestion, type IneligibleReason } from './eligibility.ts';
import type { SessionHistory } from './history.ts';
import { continuation, type Interruption } from './interruption.ts';
import { ASK_USER_QUESTION, parseAskUserQuestionParams } from './question.ts';

/** A record of the file. */
export interface Place {
  readonly uuid: string;
  /** From 1. */
  readonly line: number;
  /** Its subtype, else its type. */
  readonly type: string;
}

/** What of a file is not as it should be; lists name the first twenty. */
export interface DamageFound {
  /** The last line is the beginning of a record. */
  readonly tornLastLine: boolean;
  /** The last line has no line feed, torn or not. */
  readonly noLastNewline: boolean;
  readonly corruptLines: { readonly count: number; readonly lines: readonly number[] };
  /** Lines over 256 MiB, which no line number counts. */
  readonly oversizedLines: number;
  /** Parents of the conversation that are not in the file. */
  readonly gaps: { readonly count: number; readonly behind: readonly Place[] };
  readonly duplicateUuids: { readonly count: number; readonly lines: readonly number[] };
  readonly cycles: number;
  readonly nulLines: number;
  readonly byteOrderMark: boolean;
  readonly crlfLines: number;
}

export type HistoryEnd = Pick<SessionHistory, 'contents' | 'lastResult' | 'lastTurnState'>;

/** What was read of a transcript. */
export interface Inspected {
  readonly path: string;
  readonly bytes: number;
  /** Undefined where the file holds no record. */
  readonly sessionId?: string;
  readonly cwd?: string | undefined;
  readonly records: number;
  readonly inConversation: number;
  readonly lastEntry: Content | undefined;
  /** The record that `lastEntry` stands in. */
  readonly decidedBy: Place | undefined;
  /** The end of the history, from a model's turn on. */
  readonly end: HistoryEnd;
  readonly compressions: readonly Place[];
  readonly rewinds: readonly Place[];
  readonly abandonedBranches: number;
  readonly damage: DamageFound;
}

export interface Rule {
  readonly id: 'EL-1' | 'EL-2';
  readonly rule: string;
  /** Null: an earlier rule decided already. */
  readonly holds: boolean | null;
}

/** A call of the last model turn that has an id. */
export interface ExplainedCall {
  readonly id: string;
  readonly name: string;
  /** Why its arguments do not parse; of questions only. */
  readonly fault?: string;
}

/** What one request does to the calls that the conversation's end leaves open. */
export interface LoadOutcome {
  readonly request: 'load' | 'resume' | 'loadUpdates';
  readonly switchedOn: boolean;
  readonly suppressed: boolean;
  /** Ids of calls that will be asked again; the response carries the hint when there are any. */
  readonly asksAgain: readonly string[];
  /** Ids of calls whose cards are shown as failed; a resume shows none. */
  readonly showsFailed: readonly string[];
  readonly reason?: IneligibleReason;
}

export interface Continued {
  readonly accepted: boolean;
  readonly interruption: Interruption;
}

/** Version 1 of what `explain --json` prints. */
export interface Explanation {
  readonly v: 1;
  readonly session: Pick<Inspected, 'path' | 'bytes' | 'sessionId' | 'cwd' | 'records' | 'inConversation'>;
  readonly restorable: boolean;
  readonly reason?: IneligibleReason;
  readonly callIds: readonly string[];
  readonly decidedBy: Place | null;
  readonly rules: readonly Rule[];
  readonly calls: readonly ExplainedCall[];
  readonly loads: readonly LoadOutcome[];
  /** Ids of calls for which an ordinary prompt, or a continue, first writes a closing response. */
  readonly promptCloses: readonly string[];
  /** What `continue` says after a load with the switch on, and after one that opened nothing. */
  readonly continue: { readonly opened: Continued; readonly notOpened: Continued };
  readonly history: Pick<Inspected, 'compressions' | 'rewinds' | 'abandonedBranches'>;
  readonly damage: DamageFound;
}

/** Each rule in the order in which it is looked at, and what is said where it decides. */
const RULES = [
  { id: 'EL-1', rule: 'the last entry of the history is a model turn', reasons: ['no_trailing_model_turn'] },
  { id: 'EL-1', rule: 'a call in it that has an id is a question', reasons: ['no_question'] },
  { id: 'EL-1', rule: 'every call in it that has an id is a question', reasons: ['mixed_tools'] },
  { id: 'EL-2', rule: 'the arguments of every question are valid', reasons: ['invalid_params'] },
] as const satisfies readonly { id: Rule['id']; rule: string; reasons: readonly IneligibleReason[] }[];

/** Says what a load, a resume, a prompt and a continue make of a session, by the decisions that they take themselves. */
export function explain(found: Inspected): Explanation {
  const { lastEntry, end } = found;
  const eligibility = findRestorableAskUserQuestion(lastEntry);
  const reason = 'reason' in eligibility ? eligibility.reason : undefined;
  const callIds = [...callIdsOf(eligibility)];
  const dangling = danglingCalls(end.contents).map(({ id }) => id);
  const { path, bytes, sessionId, cwd, records, inConversation, compressions, rewinds, abandonedBranches } = found;
  return {
    v: 1,
    session: { path, bytes, ...(sessionId !== undefined && { sessionId, cwd }), records, inConversation },
    restorable: reason === undefined,
    ...(reason && { reason }),
    callIds,
    decidedBy: found.decidedBy ?? null,
    rules: rulesBy(reason),
    calls: lastEntry?.role === 'model' ? idCalls(lastEntry).map(explainCall) : [],
    loads: loadsOf(lastEntry, dangling),
    promptCloses: dangling,
    continue: { opened: continuation(reason === undefined, end), notOpened: continuation(false, end) },
    history: { compressions, rewinds, abandonedBranches },
    damage: found.damage,
  };
}

function rulesBy(reason: IneligibleReason | undefined): Rule[] {
  const decider = RULES.findIndex(({ reasons }) => reasons.some((one) => one === reason));
  const last = decider === -1 ? RULES.length : decider;
  return RULES.map(({ id, rule }, at) => ({ id, rule, holds: at === last ? false : at < last ? true : null }));
}

function explainCall({ id, name, args }: ReturnType<typeof idCalls>[number]): ExplainedCall {
  if (name !== ASK_USER_QUESTION) return { id, name };
  const parsed = parseAskUserQuestionParams(args);
  return { id, name, ...(!parsed.ok && { fault: parsed.error }) };
}

function loadsOf(lastEntry: Content | undefined, dangling: readonly string[]): LoadOutcome[] {
  const requests = ['load', 'resume'] as const;
  const outcomes = requests.flatMap((request) =>
    SITUATIONS.map((situation): LoadOutcome => {
      const eligibility = decideRestore({ ...situation, promptInFlight: false }, () => lastEntry);
      const open = callIdsOf(eligibility);
      return {
        request,
        ...situation,
        asksAgain: [...open],
        showsFailed: request === 'resume' ? [] : dangling.filter((id) => !open.has(id)),
        ...('reason' in eligibility && { reason: eligibility.reason }),
      };
    }),
  );
  const saved = { request: 'loadUpdates', switchedOn: true, suppressed: false } as const;
  return [...outcomes, { ...saved, asksAgain: [], showsFailed: dangling }];
}

const SITUATIONS = [
  { switchedOn: true, suppressed: false },
  { switchedOn: true, suppressed: true },
  { switchedOn: false, suppressed: false },
] as const;
