import type { Part } from '@google/genai';
import { failpoint } from '../failpoint.ts';
import type { DanglingCall } from './dangling.ts';
import { ProviderFault } from './faults.ts';
import { ModelTurn } from './model-turn.ts';
import type { ModelFinish, SessionEvent, UsageMetadata } from './ports.ts';
import { ASK_USER_QUESTION_DECLARATION, systemInstruction } from './question-tool.ts';
import { apiResponseRecord, assistantRecord } from './records.ts';
import { contextEvent } from './room.ts';
import * as texts from './texts.ts';
import { closedCard, endsProcess, stopKindOf, type TurnHost } from './turn-host.ts';

/** One answer of the model, on disk. */
export interface ModelAnswer {
  readonly calls: readonly DanglingCall[];
  readonly finish: ModelFinish;
  readonly recordId: string;
}

/** Streams one answer of the model to the client and records it; `stopped` when the turn was told to stop meanwhile. */
export async function askModel(host: TurnHost): Promise<ModelAnswer | 'stopped'> {
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
    const [contents, offered] = await Promise.all([chat.contentsForModel(host.takeNotices()), host.tools()]);
    signal.throwIfAborted();
    failpoint('model_called');
    const instruction = systemInstruction(chat.cwd, offered.length > 0, host.mode());
    const tools = [ASK_USER_QUESTION_DECLARATION, ...offered.map(({ declaration }) => declaration)];
    const request = { contents, systemInstruction: instruction, tools, signal };
    for await (const events of model.stream(request)) {
      for (const event of events) {
        if (event.kind === 'usage') heard.usage = event.usage;
        else if (event.kind === 'finish') {
          heard.finish = event.reason;
          heard.responseId = event.responseId ?? '';
        } else {
          heard.firstMs ??= host.now() - started;
          const told = host.say(() => {
            const call = answer.add(event.part);
            return heardEvent(call ? { functionCall: call } : event.part);
          });
          if (told !== undefined) await told;
          signal.throwIfAborted();
        }
      }
    }
    signal.throwIfAborted();
  } catch (error) {
    const closed = closeUnrun(host, answer.calls);
    try {
      if (signal.aborted) await recordInterrupted(host, answer);
    } finally {
      await closed;
    }
    if (!signal.aborted) throw error;
    return 'stopped';
  }
  try {
    const recordId = await recordAnswer(host, answer, { ...heard, durationMs: host.now() - started });
    return { calls: answer.calls, finish: heard.finish, recordId };
  } catch (error) {
    if (host.inFlight !== undefined) await closeUnrun(host, answer.calls);
    throw error;
  }
}

/** Closes the cards of calls that were shown and that are not recorded. */
async function closeUnrun(host: TurnHost, calls: readonly DanglingCall[]): Promise<void> {
  const text = host.signal.aborted ? texts.CANCELLED_BEFORE_RUN : texts.ANSWER_BROKE_OFF;
  // All at once: a load that begins later shows no such card.
  await Promise.all(calls.map((call) => host.say(() => closedCard(call, text))));
}

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
  const context = contextEvent(usage, model.contextWindow);
  if (context !== undefined) await host.emit(context);
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
