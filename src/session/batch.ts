import { type CallResult, cancelled, done, failure, type Step } from './call-result.ts';
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

/**
 * How a batch of calls ended. `settled`: every call has a result, in call order; `stop` when a person declined or the
 * client failed, so that the model is not called. `unattended`: nobody decided; `results` are those that came before.
 */
export type BatchEnd =
  | {
      readonly kind: 'settled';
      readonly results: readonly CallResult[];
      /** The last of them: those that were not saved on the way. */
      readonly unsaved: readonly CallResult[];
      readonly next: 'model' | 'stop';
    }
  | {
      readonly kind: 'unattended';
      readonly reason: UnattendedReason;
      readonly results: readonly CallResult[];
      readonly unsaved: readonly CallResult[];
      /** The call that was waiting and those that were not begun any more. */
      readonly left: readonly DanglingCall[];
      readonly waitedMs: number;
      /** False for a batch of questions alone, which can be asked again as a whole. */
      readonly mixed: boolean;
    };

export interface BatchHost {
  ask(call: DanglingCall, questions: readonly Question[]): Promise<QuestionReply>;
  /** Runs a call of another tool. It awaits `save` before it waits for a person and before it changes anything. */
  run(call: DanglingCall, save: () => Promise<void>): Promise<Step>;
  /** Writes results, which then survive whatever happens to the rest of the batch. */
  save(results: readonly CallResult[]): Promise<void>;
  /** Called with each result but the last, as soon as it is there; `saved` when it is written already. */
  finished(result: CallResult, saved: boolean): Promise<void> | undefined;
  /** Milliseconds, monotonic. */
  now(): number;
  readonly signal: AbortSignal;
}

/**
 * Runs the calls of one model turn in order, one at a time. First-asked and re-asked questions are the same. Of questions
 * alone nothing is saved on the way: all are asked again, or none. Where tools ran, what is done must never be done again.
 */
export async function runBatch(calls: readonly DanglingCall[], host: BatchHost): Promise<BatchEnd> {
  const mixed = calls.some(({ name }) => name !== ASK_USER_QUESTION);
  const results: CallResult[] = [];
  let saved = 0;
  let stopped = false;
  const save = async () => {
    const unsaved = results.slice(saved);
    if (!mixed || unsaved.length === 0) return;
    await host.save(unsaved);
    saved = results.length;
  };
  for (const [index, call] of calls.entries()) {
    const started = host.now();
    const step: Step = stopped ? skipped(call) : await runCall(call, host, save, started);
    if (step.kind === 'unattended') {
      const waitedMs = host.now() - started;
      const left = calls.slice(index);
      return { kind: 'unattended', reason: step.reason, results, unsaved: results.slice(saved), left, waitedMs, mixed };
    }
    stopped ||= step.stops;
    results.push(step.result);
    if (index === calls.length - 1) break;
    if (step.changed) await save();
    await host.finished(step.result, saved === results.length);
  }
  return { kind: 'settled', results, unsaved: results.slice(saved), next: stopped ? 'stop' : 'model' };
}

async function runCall(call: DanglingCall, host: BatchHost, save: () => Promise<void>, started: number): Promise<Step> {
  if (host.signal.aborted) return { kind: 'unattended', reason: 'abort' };
  if (call.name !== ASK_USER_QUESTION) return await host.run(call, save);
  const parsed = parseAskUserQuestionParams(call.args);
  if (!parsed.ok) return done(failure(call, parsed.error, 'invalid_tool_params'), false);
  const { questions } = parsed.params;
  await save();
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

const skipped = (call: DanglingCall): Step =>
  done(failure(call, texts.SKIPPED_AFTER_DECLINE, 'execution_denied'), true);

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
