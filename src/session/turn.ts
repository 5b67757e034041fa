import type { Part } from '@google/genai';
import { type BatchEnd, type CallResult, cancelled, fateOfUnattended, runBatch, type StopKind } from './batch.ts';
import type { Chat } from './chat.ts';
import type { DanglingCall } from './dangling.ts';
import { ProviderFault } from './faults.ts';
import { ModelTurn } from './model-turn.ts';
import type { Model, ModelFinish, Question, QuestionReply, SessionEvent, UsageMetadata } from './ports.ts';
import { ASK_USER_QUESTION_DECLARATION, systemInstruction } from './question-tool.ts';
import {
  apiResponseRecord,
  assistantRecord,
  type RecordDraft,
  responseContent,
  toolCallRecord,
  toolResultRecord,
  userRecord,
} from './records.ts';
import * as texts from './texts.ts';

/** A model that calls tools without end stops here. */
const MAX_MODEL_CALLS = 200;

/** How a turn ended, in ACP's words. */
export type StopReason = 'end_turn' | 'cancelled' | 'max_tokens' | 'refusal' | 'max_turn_requests';

/** Why a turn's signal was aborted. */
export class TurnStopped extends Error {
  readonly kind: StopKind;

  constructor(kind: StopKind) {
    super(`the turn was stopped: ${kind}`);
    this.name = 'TurnStopped';
    this.kind = kind;
  }
}

/** What a turn works on and has shown, but not written yet. */
export interface InFlight {
  readonly calls: readonly DanglingCall[];
  /** What the client was shown, in order. */
  shown(): readonly SessionEvent[];
}

/** What a running turn needs from its session. */
export interface TurnHost {
  readonly chat: Chat;
  readonly model: Model;
  readonly signal: AbortSignal;
  /** The switch of the process. */
  readonly restoreAskUserQuestion: boolean;
  /** The id of this prompt in records. */
  readonly promptId: string;
  emit(event: SessionEvent): Promise<void>;
  /** Runs `speak` and emits what it gives in one go, so that a load meanwhile shows both or neither. */
  say(speak: () => SessionEvent | undefined): Promise<void>;
  ask(call: DanglingCall, questions: readonly Question[]): Promise<QuestionReply>;
  drainQueue(): Promise<readonly string[]>;
  /** What the model is to be told once beside the next function responses. */
  takeNotices(): readonly string[];
  /** Those that were taken have reached the model. */
  noticesLanded(): void;
  /** For whoever loads the session meanwhile; undefined when all that was shown is on disk. */
  inFlight: InFlight | undefined;
  /** Milliseconds, monotonic. */
  now(): number;
}

/** What the model said last in the turn, where it ended with the model's word. */
export interface TurnOutcome {
  readonly stopReason: StopReason;
  /** The last assistant record; undefined when the turn did not end with one. */
  readonly assistantRecord?: string;
  /** True when nobody decided a question of the turn. */
  readonly unattended?: boolean;
}

/** Asks the model, runs its calls, and goes on until the model calls nothing or somebody stops it. */
export async function runModelLoop(host: TurnHost): Promise<TurnOutcome> {
  for (let round = 0; round < MAX_MODEL_CALLS; round++) {
    const answer = await askModel(host);
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
  const finished: SessionEvent[] = [];
  host.inFlight = { calls, shown: () => finished };
  const end = await runBatch(calls, {
    ask: (call, questions) => host.ask(call, questions),
    finished: (result) =>
      host.say(() => {
        const event = resultEvent(result);
        finished.push(event);
        return event;
      }),
    now: () => host.now(),
    signal: host.signal,
  });
  return end.kind === 'settled' ? settle(host, end) : settleUnattended(host, end, restored);
}

async function settle(host: TurnHost, end: Extract<BatchEnd, { kind: 'settled' }>): Promise<'model' | TurnOutcome> {
  await recordResults(host, end.results);
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
  if (fate === 'leave_open') {
    if (!endsProcess(stop)) await host.chat.append(unattendedTelemetry(host, end), { durable: false });
    for (const call of end.left) await host.emit(closedCard(call, texts.NOBODY_ANSWERED));
  } else {
    const text = (name: string) =>
      fate === 'persist_declined' ? texts.declinedByPerson(name) : texts.CANCELLED_BEFORE_RUN;
    const closed = end.left.map((call, index) => cancelled(call, text(call.name), index === 0 ? end.waitedMs : 0));
    await recordResults(host, [...end.results, ...closed]);
    for (const result of closed) await host.emit(resultEvent(result));
  }
  return { stopReason: end.reason === 'abort' ? 'cancelled' : 'end_turn', unattended: fate === 'leave_open' };
}

/** A stop that takes the process or the session away: its telemetry would be the only thing written. */
const endsProcess = (stop: StopKind | undefined): boolean =>
  stop === 'close' || stop === 'shutdown' || stop === 'hangup';

export function stopKindOf(signal: AbortSignal): StopKind | undefined {
  if (!signal.aborted) return undefined;
  return signal.reason instanceof TurnStopped ? signal.reason.kind : 'shutdown';
}

async function recordResults(host: TurnHost, results: readonly CallResult[]): Promise<void> {
  const { chat } = host;
  const telemetry = results.map((result) => callTelemetry(host, result));
  const responses = results.map((result) => resultRecord(chat, result));
  try {
    await chat.append([...telemetry, ...responses], { durable: true });
  } catch (error) {
    // What is not on disk was not decided: no card may wait on, or say that it was.
    for (const { call } of results) await host.emit(closedCard(call, texts.RESULT_NOT_SAVED));
    throw error;
  }
}

function resultRecord(chat: Chat, { call, status, response, display, errorType }: CallResult): RecordDraft {
  return toolResultRecord(chat.context, responseContent(call, response), {
    callId: call.id,
    status,
    executionStatus: status === 'success' ? 'success' : 'not_started',
    ...(display !== undefined && { resultDisplay: display }),
    ...(errorType !== undefined && { error: {}, errorType }),
  });
}

function callTelemetry(host: TurnHost, { call, status, durationMs }: Omit<CallResult, 'response'>): RecordDraft {
  return toolCallRecord(host.chat.context, {
    callId: call.id,
    name: call.name,
    args: call.args,
    durationMs: Math.round(durationMs),
    status,
    executionStatus: status === 'success' ? 'success' : 'not_started',
    promptId: host.promptId,
    toolType: 'native',
  });
}

function unattendedTelemetry(host: TurnHost, end: Extract<BatchEnd, { kind: 'unattended' }>): readonly RecordDraft[] {
  const waiting = end.left
    .slice(0, 1)
    .map((call) => ({ call, status: 'cancelled' as const, durationMs: end.waitedMs }));
  return [...end.results, ...waiting].map((ended) => callTelemetry(host, ended));
}

function resultEvent({ call, status, response, display }: CallResult): SessionEvent {
  return {
    kind: 'result',
    callId: call.id,
    name: call.name,
    ok: status === 'success',
    text: 'output' in response ? response.output : response.error,
    ...(display !== undefined && { display }),
  };
}

const closedCard = (call: DanglingCall, text: string): SessionEvent => ({
  kind: 'result',
  callId: call.id,
  name: call.name,
  ok: false,
  text,
});

/** Takes what the person queued during the turn into the conversation, behind the responses of a batch. */
export async function recordQueue(host: TurnHost): Promise<void> {
  const queued = await host.drainQueue();
  if (queued.length === 0) return;
  const parts = queued.map((text) => ({ text }));
  await host.chat.append([userRecord(host.chat.context, { role: 'user', parts })], { durable: false });
  for (const part of parts) await host.emit({ kind: 'user_part', part });
}

interface ModelAnswer {
  readonly calls: readonly DanglingCall[];
  readonly finish: ModelFinish;
  readonly recordId: string;
}

async function askModel(host: TurnHost): Promise<ModelAnswer | 'stopped'> {
  const { chat, model, signal } = host;
  const answer = new ModelTurn(await chat.callIds());
  const started = host.now();
  const heard: { usage?: UsageMetadata; finish: ModelFinish; responseId: string; firstMs?: number } = {
    finish: 'stop',
    responseId: '',
  };
  host.inFlight = {
    calls: answer.calls,
    shown: () => (answer.content().parts ?? []).flatMap((part) => heardEvent(part) ?? []),
  };
  try {
    const contents = await chat.contentsForModel(host.takeNotices());
    signal.throwIfAborted();
    const request = { contents, systemInstruction: systemInstruction(chat.cwd), tools: TOOLS, signal };
    for await (const event of model.stream(request)) {
      if (event.kind === 'usage') heard.usage = event.usage;
      else if (event.kind === 'finish') {
        heard.finish = event.reason;
        heard.responseId = event.responseId ?? '';
      } else {
        heard.firstMs ??= host.now() - started;
        await host.say(() => {
          const call = answer.add(event.part);
          return heardEvent(call ? { functionCall: call } : event.part);
        });
      }
    }
    signal.throwIfAborted();
  } catch (error) {
    if (!signal.aborted) throw error;
    await recordInterrupted(host, answer);
    return 'stopped';
  }
  const recordId = await recordAnswer(host, answer, { ...heard, durationMs: host.now() - started });
  return { calls: answer.calls, finish: heard.finish, recordId };
}

const TOOLS = [ASK_USER_QUESTION_DECLARATION];

/** What a client is shown of a part that the model streams. */
function heardEvent({ text, thought, functionCall }: Part): SessionEvent | undefined {
  if (functionCall) {
    const { id, name, args } = functionCall;
    return { kind: 'call', phase: 'preparing', callId: id ?? '', name: name ?? '', args: args ?? {} };
  }
  return text ? { kind: 'text', text, thought: thought === true } : undefined;
}

interface Heard {
  readonly usage?: UsageMetadata;
  readonly responseId: string;
  readonly firstMs?: number;
  readonly durationMs: number;
}

async function recordAnswer(host: TurnHost, answer: ModelTurn, heard: Heard): Promise<string> {
  const { chat, model, promptId } = host;
  const content = answer.content();
  if (content.parts?.length === 0) {
    throw new ProviderFault('empty_reply', `The model ${model.name} answered with nothing. Send the prompt again.`);
  }
  const { usage } = heard;
  const durationMs = Math.round(heard.durationMs);
  const telemetry = apiResponseRecord(chat.context, {
    responseId: heard.responseId,
    model: model.name,
    durationMs,
    ttftMs: Math.round(heard.firstMs ?? heard.durationMs),
    usage: usage ?? {},
    promptId,
    authType: model.authType,
  });
  const record = assistantRecord(chat.context, {
    model: model.name,
    message: content,
    usage,
    contextWindow: model.contextWindow,
    providerCallIds: Object.keys(answer.providerCallIds).length > 0 ? answer.providerCallIds : undefined,
  });
  // The calls are on disk before anything that they lead to leaves the process.
  await chat.append([telemetry, record], { durable: false });
  host.inFlight = undefined;
  host.noticesLanded();
  if (usage !== undefined) await host.emit({ kind: 'usage', usage, durationMs });
  return record.uuid;
}

/** What a person stopped stays as far as it was said; what a stopped process said is said again by the continued turn. */
async function recordInterrupted(host: TurnHost, answer: ModelTurn): Promise<void> {
  const { chat, model } = host;
  const spoken = answer.spoken();
  const stop = stopKindOf(host.signal);
  if (!endsProcess(stop) && (spoken.parts?.length ?? 0) > 0) {
    await chat.append([assistantRecord(chat.context, { model: model.name, message: spoken })], { durable: false });
  }
  host.inFlight = undefined;
}

function stopReasonOf(finish: ModelFinish): StopReason {
  return finish === 'stop' ? 'end_turn' : finish;
}
