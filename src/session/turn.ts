import { failpoint } from '../failpoint.ts';
import { askModel } from './ask-model.ts';
import { type BatchEnd, fateOfUnattended, runBatch } from './batch.ts';
import { type CallResult, cancelled, executionStatusOf, resultEvent } from './call-result.ts';
import type { Chat } from './chat.ts';
import type { DanglingCall } from './dangling.ts';
import type { ModelFinish, SessionEvent } from './ports.ts';
import { type RecordDraft, responseContent, toolCallRecord, toolResultRecord, userRecord } from './records.ts';
import { withRoom } from './room.ts';
import * as texts from './texts.ts';
import { runToolCall } from './tool-call.ts';
import { closedCard, endsProcess, type StopReason, stopKindOf, type TurnHost } from './turn-host.ts';

/** A model that calls tools without end stops here. */
const MAX_MODEL_CALLS = 200;

/** What the model said last in the turn, where it ended with the model's word. */
export interface TurnOutcome {
  readonly stopReason: StopReason;
  /** The last assistant record; undefined when the turn did not end with one. */
  readonly assistantRecord?: string;
  /** True when nobody decided a question of the turn. */
  readonly unattended?: boolean;
  /** What a command printed that took the place of the model's turn. */
  readonly commandOutput?: string;
}

/** Asks the model, runs its calls, and goes on until the model calls nothing or somebody stops it. */
export async function runModelLoop(host: TurnHost): Promise<TurnOutcome> {
  const ask = withRoom(askModel);
  for (let round = 0; round < MAX_MODEL_CALLS; round++) {
    const answer = await ask(host);
    if (answer === 'stopped') return { stopReason: 'cancelled' };
    if (answer.calls.length === 0) {
      return { stopReason: stopReasonOf(answer.finish), assistantRecord: answer.recordId };
    }
    const next = await runCalls(host, answer.calls, false);
    if (next !== 'model') return next;
    await recordQueue(host);
  }
  return { stopReason: 'max_turn_requests' };
}

/** Runs a batch and settles it; first-asked and re-asked alike. */
export async function runCalls(
  host: TurnHost,
  calls: readonly DanglingCall[],
  restored: boolean,
): Promise<'model' | TurnOutcome> {
  let finished: SessionEvent[] = [];
  const shown = () => finished;
  host.inFlight = { calls, shown };
  const end = await runBatch(calls, {
    ask: (call, questions) => host.ask(call, questions),
    run: (call, save) => runToolCall(call, host, save),
    async save(results) {
      await recordResults(host, results);
      // What was shown until now is on disk; what follows is not.
      finished = [];
      host.inFlight = { calls, shown };
    },
    finished: (result, saved) =>
      host.say(() => {
        const event = resultEvent(result);
        if (!saved) finished.push(event);
        return event;
      }),
    now: () => host.now(),
    signal: host.signal,
  });
  return end.kind === 'settled' ? settle(host, end) : settleUnattended(host, end, restored);
}

async function settle(host: TurnHost, end: Extract<BatchEnd, { kind: 'settled' }>): Promise<'model' | TurnOutcome> {
  await recordResults(host, end.unsaved);
  const last = end.results.at(-1);
  if (last !== undefined) await host.emit(resultEvent(last));
  return end.next === 'model' ? 'model' : { stopReason: 'end_turn' };
}

async function settleUnattended(
  host: TurnHost,
  end: Extract<BatchEnd, { kind: 'unattended' }>,
  restored: boolean,
): Promise<TurnOutcome> {
  const stop = stopKindOf(host.signal);
  const fate = fateOfUnattended({
    restored,
    switchedOn: host.restoreAskUserQuestion,
    reason: end.reason,
    stop,
  });
  // What ran, and what a person said beside it, stays; a batch of questions alone is asked again as a whole.
  if (end.mixed && end.unsaved.length > 0 && fate === 'leave_open') await recordResults(host, end.unsaved);
  if (fate === 'leave_open') {
    if (!endsProcess(stop)) await host.chat.append(unattendedTelemetry(host, end), { durable: false });
    for (const call of end.left) {
      await host.emit(closedCard(call, end.mixed ? texts.NOBODY_DECIDED : texts.NOBODY_ANSWERED));
    }
  } else {
    const text = fate === 'persist_declined' ? texts.NOBODY_DECIDED : texts.CANCELLED_BEFORE_RUN;
    const closed = end.left.map((call, index) => cancelled(call, text, index === 0 ? end.waitedMs : 0));
    await recordResults(host, [...end.unsaved, ...closed]);
    for (const result of closed) await host.emit(resultEvent(result));
  }
  return { stopReason: end.reason === 'abort' ? 'cancelled' : 'end_turn', unattended: fate === 'leave_open' };
}

async function recordResults(host: TurnHost, results: readonly CallResult[]): Promise<void> {
  const { chat } = host;
  const telemetry = results.map((result) => callTelemetry(host, result));
  const responses = results.map((result) => resultRecord(chat, result));
  try {
    await chat.append([...telemetry, ...responses], { durable: true });
    failpoint('response_persisted');
  } catch (error) {
    // What is not on disk was not decided: no card may wait on, or say that it was.
    for (const { call } of results) await host.emit(closedCard(call, texts.RESULT_NOT_SAVED));
    throw error;
  }
}

function resultRecord(chat: Chat, result: CallResult): RecordDraft {
  const { call, status, response, display, errorType } = result;
  return toolResultRecord(chat.context, responseContent(call, response), {
    callId: call.id,
    status,
    executionStatus: executionStatusOf(result),
    ...(display !== undefined && { resultDisplay: display }),
    ...(errorType !== undefined && { error: {}, errorType }),
  });
}

function callTelemetry(host: TurnHost, ended: Omit<CallResult, 'response'>): RecordDraft {
  const { call, status, durationMs, toolType = 'native' } = ended;
  return toolCallRecord(host.chat.context, {
    callId: call.id,
    name: call.name,
    args: call.args,
    durationMs: Math.round(durationMs),
    status,
    executionStatus: executionStatusOf(ended),
    promptId: host.promptId,
    toolType,
  });
}

function unattendedTelemetry(host: TurnHost, end: Extract<BatchEnd, { kind: 'unattended' }>): readonly RecordDraft[] {
  const waiting = end.left
    .slice(0, 1)
    .map((call) => ({ call, status: 'cancelled' as const, durationMs: end.waitedMs }));
  return [...(end.mixed ? [] : end.results), ...waiting].map((ended) => callTelemetry(host, ended));
}

/** Takes what the person queued during the turn into the conversation, behind the responses of a batch. */
export async function recordQueue(host: TurnHost): Promise<void> {
  const queued = await host.drainQueue();
  if (queued.length === 0) return;
  const parts = queued.map((text) => ({ text }));
  await host.chat.append([userRecord(host.chat.context, { role: 'user', parts })], { durable: false });
  for (const part of parts) await host.emit({ kind: 'user_part', part });
}

function stopReasonOf(finish: ModelFinish): StopReason {
  return finish === 'stop' ? 'end_turn' : finish;
}
