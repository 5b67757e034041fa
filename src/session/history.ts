import type { Content, Part } from '@google/genai';
import { isObject } from './record-bytes.ts';
import { SUBTYPE, type ToolCallResult, type TranscriptRecord } from './transcript.ts';

/** What a session that goes on has to know of its records. */
export interface SessionHistory {
  /** The API history. */
  readonly contents: readonly Content[];
  /** The provider's own call ids, by the ids in `contents`, where they differ; null where the provider gave none. */
  readonly providerCallIds: ReadonlyMap<string, string | null>;
  /** Every call id that the records hold, those before a compression included: a new one must be none of them. */
  readonly usedCallIds: ReadonlySet<string>;
  /** How many messages of a person there are. */
  readonly userTurns: number;
  /** The highest turn number in the prompt ids of the file-history snapshots; 0 where there is none. */
  readonly lastPromptTurn: number;
  /** How the last tool result ended, if nothing but system records follows it. */
  readonly lastResult: ToolCallResult | undefined;
  /** `state` of a `turn_result` behind the last message: how the turn ended. */
  readonly lastTurnState: string | undefined;
  /** Tokens of the prompt of the last model answer; undefined when unknown. */
  readonly lastPromptTokens: number | undefined;
  /** Where the last record was written. */
  readonly cwd: string | undefined;
  readonly gitBranch: string | undefined;
}

/** Folds a conversation's records, in order, into what a session goes on with. Pure. */
export function foldHistory(records: Iterable<TranscriptRecord>): SessionHistory {
  const fold = new HistoryFold();
  for (const record of records) fold.add(record);
  return fold.finish();
}

/** {@link foldHistory} for records that come one by one. */
export class HistoryFold {
  #contents: Content[] = [];
  /** The user record that ends the history, and what was known before it: a command turns out to be none by its output. */
  #lastUser: { readonly record: TranscriptRecord; readonly before: Ending } | undefined;
  /** The parts of the content that the tool results of the running batch are collected in. */
  #batch: Part[] | undefined;
  readonly #providerCallIds = new Map<string, string | null>();
  readonly #usedCallIds = new Set<string>();
  #userTurns = 0;
  #lastPromptTurn = 0;
  #lastResult: ToolCallResult | undefined;
  #lastTurnState: string | undefined;
  #lastPromptTokens: number | undefined;
  #cwd: string | undefined;
  #gitBranch: string | undefined;

  add(record: TranscriptRecord): void {
    this.#cwd = record.cwd ?? this.#cwd;
    this.#gitBranch = record.gitBranch;
    if (!isMessageRecord(record)) this.#addSystem(record);
    else if (record.message) this.#addMessage(record, record.message);
  }

  finish(): SessionHistory {
    return {
      contents: this.#contents,
      providerCallIds: this.#providerCallIds,
      usedCallIds: this.#usedCallIds,
      userTurns: this.#userTurns,
      lastPromptTurn: this.#lastPromptTurn,
      lastResult: this.#lastResult,
      lastTurnState: this.#lastTurnState,
      lastPromptTokens: this.#lastPromptTokens,
      cwd: this.#cwd,
      gitBranch: this.#gitBranch,
    };
  }

  #addSystem(record: TranscriptRecord): void {
    const compressed = compressedHistory(record);
    if (compressed) {
      this.#contents = [...compressed];
      this.#batch = undefined;
      this.#lastUser = undefined;
      this.#lastPromptTokens = undefined;
      return;
    }
    if (this.#lastUser && isCommandResult(record, this.#lastUser.record)) this.#takeBack(this.#lastUser.before);
    const payload = isObject(record.systemPayload) ? record.systemPayload : {};
    if (record.subtype === SUBTYPE.turnResult && typeof payload['state'] === 'string') {
      this.#lastTurnState = payload['state'];
    }
    if (record.subtype === SUBTYPE.fileHistorySnapshot) {
      this.#lastPromptTurn = Math.max(this.#lastPromptTurn, promptTurnOf(payload['snapshots']));
    }
  }

  /** The last user record was no message but a command. */
  #takeBack({ lastResult, lastTurnState }: Ending): void {
    this.#contents.pop();
    this.#userTurns--;
    this.#lastResult = lastResult;
    this.#lastTurnState = lastTurnState;
    this.#lastUser = undefined;
  }

  #addMessage(record: TranscriptRecord, message: Content): void {
    const parts = message.parts ?? [];
    const before = { lastResult: this.#lastResult, lastTurnState: this.#lastTurnState };
    this.#lastUser = record.type === 'user' ? { record, before } : undefined;
    this.#lastTurnState = undefined;
    this.#lastResult = record.type === 'tool_result' ? record.toolCallResult : undefined;
    for (const { functionCall } of parts) if (functionCall?.id) this.#usedCallIds.add(functionCall.id);
    if (record.type === 'tool_result') {
      if (this.#batch) {
        this.#batch.push(...parts);
        return;
      }
      this.#batch = [...parts];
      this.#contents.push({ role: 'user', parts: this.#batch });
      return;
    }
    this.#batch = undefined;
    this.#contents.push(message);
    if (record.type === 'user' && record.subtype === undefined) this.#userTurns++;
    if (record.type === 'assistant') this.#addAnswer(record);
  }

  #addAnswer({ usageMetadata, providerCallIds }: TranscriptRecord): void {
    if (isObject(usageMetadata) && typeof usageMetadata['promptTokenCount'] === 'number') {
      this.#lastPromptTokens = usageMetadata['promptTokenCount'];
    }
    if (!isObject(providerCallIds)) return;
    for (const [id, own] of Object.entries(providerCallIds)) {
      if (own === null || typeof own === 'string') this.#providerCallIds.set(id, own);
    }
  }
}

type Ending = Pick<SessionHistory, 'lastResult' | 'lastTurnState'>;

/**
 * Whether a record holds the output of a command that `previous`, the message before it, gave: then that message is no
 * part of the API history, by the reference's rule.
 */
function isCommandResult({ subtype, systemPayload }: TranscriptRecord, previous: TranscriptRecord): boolean {
  if (subtype !== SUBTYPE.slashCommand || !isObject(systemPayload)) return false;
  const { phase, sentToModel, rawCommand, outputHistoryItems: items } = systemPayload;
  if (phase !== 'result' || sentToModel === true || !Array.isArray(items) || items.length === 0) return false;
  if (!items.every((item) => isObject(item) && item['type'] === 'assistant')) return false;
  if (previous.type !== 'user' || previous.subtype !== undefined || previous.message?.role !== 'user') return false;
  const [part, ...others] = previous.message.parts ?? [];
  return others.length === 0 && part !== undefined && Object.keys(part).join() === 'text' && part.text === rawCommand;
}

/** Whether a record's message belongs to the API history. Types that this program does not know are kept, not sent. */
function isMessageRecord({ type }: TranscriptRecord): boolean {
  return type === 'user' || type === 'assistant' || type === 'tool_result';
}

/** The history that a compression put in the place of everything before it; undefined for any other record. */
export function compressedHistory({ type, subtype, systemPayload }: TranscriptRecord): Content[] | undefined {
  if (type !== 'system' || subtype !== SUBTYPE.chatCompression || !isObject(systemPayload)) return undefined;
  const { compressedHistory: contents } = systemPayload;
  return Array.isArray(contents) ? (contents.filter(isContent) as Content[]) : undefined;
}

function isContent(value: unknown): boolean {
  return isObject(value) && Array.isArray(value['parts']) && value['parts'].every(isObject);
}

/** The last entry of an API history, and the record that it stands in. */
export interface LastEntry {
  /** Null where a compression emptied the history. */
  readonly content: Content | null;
  readonly record: TranscriptRecord;
}

/**
 * The last entry of the API history that the records, in order, lead to; a batch's results are one entry each here.
 * Undefined where the records hold none.
 */
export function lastEntryIn(records: readonly TranscriptRecord[]): LastEntry | undefined {
  let output: TranscriptRecord | undefined;
  for (const record of records.toReversed()) {
    const compressed = compressedHistory(record);
    if (compressed) return { content: compressed.at(-1) ?? null, record };
    if (record.subtype === SUBTYPE.slashCommand) output = record;
    if (!isMessageRecord(record) || !record.message) continue;
    if (output === undefined || !isCommandResult(output, record)) return { content: record.message, record };
    output = undefined;
  }
  return undefined;
}

/** {@link lastEntryIn} without its record: undefined where there is none, null where a compression emptied the history. */
export function lastEntryOf(records: readonly TranscriptRecord[]): Content | null | undefined {
  return lastEntryIn(records)?.content;
}

const PROMPT_TURN = /########(\d{1,9})$/;

function promptTurnOf(snapshots: unknown): number {
  if (!Array.isArray(snapshots)) return 0;
  const turns = snapshots.map((snapshot: unknown) => {
    const id = isObject(snapshot) ? snapshot['promptId'] : undefined;
    return typeof id === 'string' ? Number(PROMPT_TURN.exec(id)?.[1] ?? 0) : 0;
  });
  return Math.max(0, ...turns);
}
