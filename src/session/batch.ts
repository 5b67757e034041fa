import type { DanglingCall } from './dangling.ts';
import type { Question, QuestionReply, UnattendedReason } from './ports.ts';
import {
  ASK_USER_QUESTION,
  answersDisplay,
  answersText,
  outcomeOf,
  parseAskUserQuestionParams,
  type QuestionOutcome,
} from './question.ts';
import * as texts from './texts.ts';

/** How one call ended: what the transcript keeps, the model gets and the client is shown. */
export interface CallResult {
  readonly call: DanglingCall;
  readonly status: 'success' | 'cancelled' | 'error';
  readonly response: { readonly output: string } | { readonly error: string };
  readonly display?: unknown;
  readonly errorType?: string;
  readonly durationMs: number;
}

/**
 * How a batch of calls ended. `settled`: every call has a result, in call order; `stop` when a person declined or the
 * client failed, so that the model is not called. `unattended`: nobody decided; `results` are those that came before.
 */
export type BatchEnd =
  | { readonly kind: 'settled'; readonly results: readonly CallResult[]; readonly next: 'model' | 'stop' }
  | {
      readonly kind: 'unattended';
      readonly reason: UnattendedReason;
      readonly results: readonly CallResult[];
      /** The call that was waiting and those that were not asked any more. */
      readonly left: readonly DanglingCall[];
      readonly waitedMs: number;
    };

export interface BatchHost {
  ask(call: DanglingCall, questions: readonly Question[]): Promise<QuestionReply>;
  /** Called with each result but the last, as soon as it is there. */
  finished(result: CallResult): Promise<void> | undefined;
  /** Milliseconds, monotonic. */
  now(): number;
  readonly signal: AbortSignal;
}

/** Runs the calls of one model turn in order, asking one question at a time. First-asked and re-asked are the same. */
export async function runBatch(calls: readonly DanglingCall[], host: BatchHost): Promise<BatchEnd> {
  const results: CallResult[] = [];
  let stopped = false;
  for (const [index, call] of calls.entries()) {
    const started = host.now();
    const step: Step = stopped ? skipped(call) : await runCall(call, host, started);
    if (step.kind === 'unattended') {
      const waitedMs = host.now() - started;
      return { kind: 'unattended', reason: step.reason, results, left: calls.slice(index), waitedMs };
    }
    stopped ||= step.stops;
    results.push(step.result);
    if (index < calls.length - 1) await host.finished(step.result);
  }
  return { kind: 'settled', results, next: stopped ? 'stop' : 'model' };
}

type Step =
  | { readonly kind: 'done'; readonly result: CallResult; readonly stops: boolean }
  | { readonly kind: 'unattended'; readonly reason: UnattendedReason };

async function runCall(call: DanglingCall, host: BatchHost, started: number): Promise<Step> {
  if (host.signal.aborted) return { kind: 'unattended', reason: 'abort' };
  if (call.name !== ASK_USER_QUESTION)
    return done(failure(call, texts.unknownTool(call.name), 'tool_not_registered'), false);
  const parsed = parseAskUserQuestionParams(call.args);
  if (!parsed.ok) return done(failure(call, parsed.error, 'invalid_tool_params'), false);
  const { questions } = parsed.params;
  const outcome = outcomeOf(questions, await host.ask(call, questions));
  return outcome.kind === 'unattended' ? outcome : settle(call, outcome, host.now() - started);
}

function settle(
  call: DanglingCall,
  outcome: Exclude<QuestionOutcome, { kind: 'unattended' }>,
  durationMs: number,
): Step {
  switch (outcome.kind) {
    case 'declined':
      return done(cancelled(call, texts.declinedByPerson(call.name), durationMs), true);
    case 'failed':
      return done(
        failure(call, texts.permissionFailed(call.name, outcome.message), 'unhandled_exception', durationMs),
        true,
      );
    case 'answered': {
      if (outcome.answers.length === 0)
        return done(failure(call, texts.NO_ANSWER_GIVEN, 'no_answer', durationMs), false);
      const output = answersText(outcome.answers);
      const display = answersDisplay(outcome.answers, output);
      return done({ call, status: 'success', response: { output }, display, durationMs }, false);
    }
  }
}

const done = (result: CallResult, stops: boolean): Step => ({ kind: 'done', result, stops });
const skipped = (call: DanglingCall): Step =>
  done(failure(call, texts.SKIPPED_AFTER_DECLINE, 'execution_denied'), true);

/** A call that ended in an error; the text is for the model and the client alike. */
export const failure = (call: DanglingCall, error: string, errorType: string, durationMs = 0): CallResult => ({
  call,
  status: 'error',
  response: { error },
  errorType,
  durationMs,
});

/** A call that a person declined or cancelled. */
export const cancelled = (call: DanglingCall, error: string, durationMs = 0): CallResult => ({
  call,
  status: 'cancelled',
  response: { error },
  durationMs,
});

/** Why a turn was told to stop. */
export type StopKind = 'cancel' | 'superseded' | 'close' | 'shutdown' | 'hangup';

/** What an unattended batch leaves on disk. */
export type UnattendedFate = 'leave_open' | 'persist_cancelled' | 'persist_declined';

/**
 * With the switch on nothing is written for a batch that nobody decided, so that the next load asks again; a person's own
 * cancel or next prompt closes a first-asked question. With it off, what the reference was seen to write. A hangup
 * (SIGHUP) never writes.
 */
export function fateOfUnattended(batch: {
  readonly restored: boolean;
  readonly switchedOn: boolean;
  readonly reason: UnattendedReason;
  readonly stop: StopKind | undefined;
}): UnattendedFate {
  if (batch.restored || batch.stop === 'hangup') return 'leave_open';
  if (batch.reason !== 'abort') return batch.switchedOn ? 'leave_open' : 'persist_declined';
  const byPerson = batch.stop === 'cancel' || batch.stop === 'superseded';
  return byPerson || !batch.switchedOn ? 'persist_cancelled' : 'leave_open';
}
