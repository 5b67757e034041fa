import type { FunctionCall, FunctionResponse, Part } from '@google/genai';
import { type ConversationItem, idOf } from './conversation-item.ts';
import type { EventSource, SessionEvent } from './ports.ts';
import { isObject } from './record-bytes.ts';
import { gapNotice, RecordEvents } from './replay-events.ts';
import { HISTORY_GAP, RESULT_NOT_IN_HISTORY } from './texts.ts';
import { SUBTYPE, type TranscriptRecord } from './transcript.ts';
import { cancelledTurn } from './turn-result.ts';

/** Which calls without a result a replay leaves in progress; all others it closes as failed. */
export interface LeftOpen {
  /** Calls that will be asked again. */
  readonly open: ReadonlySet<string>;
  /** Calls that a turn running in this process waits for. */
  readonly waiting: ReadonlySet<string>;
}

/** The system records that a replay reads; all others it never shows. */
export const REPLAYED_SYSTEM: ReadonlySet<string> = new Set([SUBTYPE.slashCommand, SUBTYPE.turnResult]);

interface PendingCall {
  readonly name: string;
  readonly source: EventSource;
}

/**
 * Turns a conversation, record by record, into what the client saw. Pure: the caller reads the records and sends the
 * events.
 */
export class Replay {
  /** In call order. A later call under the same id takes the earlier one's place: a client cannot tell them apart. */
  readonly #pending = new Map<string, PendingCall>();
  readonly #left: LeftOpen;

  constructor(left: LeftOpen) {
    this.#left = left;
  }

  /** The events of the conversation's next record. */
  next(item: ConversationItem): SessionEvent[] {
    if (item.kind === 'record') return this.#record(item.record, item.gap);
    this.#pending.delete(idOf(item.result));
    return item.gap ? [gapNotice(item.result.source), item.result] : [item.result];
  }

  /** The events behind the last record: the calls that nothing will ever answer. */
  finish(): SessionEvent[] {
    const lost = [...this.#pending].filter(
      ([callId]) => !this.#left.open.has(callId) && !this.#left.waiting.has(callId),
    );
    return lost.map(([callId, { name, source }]) => ({
      kind: 'result',
      callId,
      name,
      ok: false,
      text: RESULT_NOT_IN_HISTORY,
      source,
    }));
  }

  #record(record: TranscriptRecord, gap: boolean): SessionEvent[] {
    const events = new RecordEvents(record);
    if (gap) events.text(HISTORY_GAP, false);
    if (record.type === 'system') replaySystem(record, events);
    else if (record.type === 'assistant') this.#assistant(record, events);
    else if (record.type === 'user' || record.type === 'tool_result') this.#user(record, events);
    return events.list;
  }

  #user(record: TranscriptRecord, events: RecordEvents): void {
    const shown = shownInstead(record);
    for (const part of shown ?? record.message?.parts ?? []) {
      if (part.functionResponse) events.list.push(this.#result(part.functionResponse, record, events.source));
      else if (record.type === 'user') events.userPart(part);
    }
  }

  #assistant(record: TranscriptRecord, events: RecordEvents): void {
    let usage = isObject(record.usageMetadata) ? record.usageMetadata : undefined;
    for (const [index, part] of (record.message?.parts ?? []).entries()) {
      if (part.functionCall) {
        if (usage) events.usage(usage);
        usage = undefined;
        this.#call(part.functionCall, index, events);
      } else if (typeof part.text === 'string') events.text(part.text, part.thought === true);
    }
    if (usage) events.usage(usage);
  }

  #call({ id, name, args }: FunctionCall, index: number, events: RecordEvents): void {
    // A call without an id gets one that every replay of the same file gives it.
    const callId = givenId(id) ?? `qwen-replay-tool:${events.source.recordId}:${index}`;
    const call = { name: typeof name === 'string' ? name : '', source: events.source };
    this.#pending.delete(callId);
    this.#pending.set(callId, call);
    events.call(callId, call.name, isObject(args) ? args : {});
  }

  #result({ id, name, response }: FunctionResponse, record: TranscriptRecord, source: EventSource): SessionEvent {
    const result = isObject(record.toolCallResult) ? record.toolCallResult : undefined;
    const callId = givenId(id) ?? this.#idlessCall(name) ?? givenId(result?.callId) ?? '';
    const failed = isObject(response) && response['error'] !== undefined;
    const ok = !failed && (result === undefined || result.status === 'success');
    const toolName = name || (this.#pending.get(callId)?.name ?? '');
    this.#pending.delete(callId);
    const display = result?.resultDisplay;
    return {
      kind: 'result',
      callId,
      name: toolName,
      ok,
      text: responseText(response),
      ...(display === undefined ? {} : { display }),
      source,
    };
  }

  #idlessCall(name: string | undefined): string | undefined {
    for (const [callId, call] of this.#pending) {
      if (callId.startsWith('qwen-replay-tool:') && call.name === name) return callId;
    }
    return undefined;
  }
}

/** A file can hold anything; a client refuses an update whose ids are no text. */
const givenId = (id: unknown): string | undefined => (typeof id === 'string' && id !== '' ? id : undefined);

/** What a command of the client's own printed was never in a message, nor that a person ended a turn. */
function replaySystem({ subtype, systemPayload }: TranscriptRecord, events: RecordEvents): void {
  const turn = subtype === SUBTYPE.turnResult ? cancelledTurn(systemPayload) : undefined;
  if (turn) events.cancelled(turn);
  if (subtype !== SUBTYPE.slashCommand || !isObject(systemPayload) || systemPayload['phase'] !== 'result') return;
  const items: unknown = systemPayload['outputHistoryItems'];
  if (!Array.isArray(items)) return;
  for (const item of items) {
    if (!isObject(item) || typeof item['text'] !== 'string') continue;
    const { contextCompression } = item;
    events.text(item['text'], false, isObject(contextCompression) ? { contextCompression } : {});
  }
}

/** The parts of a user record that a person did not type are shown as its display text, or not at all. */
function shownInstead({ type, subtype, systemPayload, message }: TranscriptRecord): readonly Part[] | undefined {
  if (type !== 'user') return undefined;
  const displayText = isObject(systemPayload) ? systemPayload['displayText'] : undefined;
  switch (subtype) {
    case 'notification':
    case 'cron':
    case 'mid_turn_user_message':
      if (typeof displayText === 'string') return [{ text: displayText }];
      return subtype === 'mid_turn_user_message' ? message?.parts : [];
    case 'goal_runtime':
      return [];
  }
  return undefined;
}

function responseText(response: unknown): string {
  if (!isObject(response)) return '';
  const { output, error } = response;
  if (typeof output === 'string') return output;
  if (typeof error === 'string') return error;
  return JSON.stringify(response);
}
