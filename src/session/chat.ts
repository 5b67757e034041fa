import type { Content, Part } from '@google/genai';
import { type DanglingCall, danglingCalls, idCalls } from './dangling.ts';
import { HistoryFold, type SessionHistory } from './history.ts';
import { type CallIds, withProviderCallIds } from './model-turn.ts';
import type { Whereabouts } from './notices.ts';
import { pairCalls } from './pairing.ts';
import { closingRecord, type RecordContext, type RecordDraft } from './records.ts';
import type { AppendOptions, TranscriptStore } from './store.ts';
import * as texts from './texts.ts';
import type { TranscriptRecord } from './transcript.ts';

/** What is known of a conversation before its records are read: its end. */
export interface ChatEnd {
  readonly lastEntry: Content | undefined;
  /** Number of the last prompt that a record names. */
  readonly lastPrompt: number;
  readonly whereabouts: Whereabouts;
}

export const EMPTY_END: ChatEnd = {
  lastEntry: undefined,
  lastPrompt: 0,
  whereabouts: { cwd: undefined, gitBranch: undefined },
};

/**
 * A session's conversation: the transcript's writing end, and the API history as a fold over the same records. The history
 * is read from the file when a prompt first needs it; until then its last entry is all that is known.
 */
export class Chat {
  readonly context: RecordContext;
  readonly #store: TranscriptStore;
  readonly #read: () => Promise<HistoryFold>;
  #end: ChatEnd;
  #reading: Promise<HistoryFold> | undefined;
  #fold: HistoryFold | undefined;

  constructor(context: RecordContext, store: TranscriptStore, end: ChatEnd, read: () => Promise<HistoryFold>) {
    this.context = context;
    this.#store = store;
    this.#end = end;
    this.#read = read;
    if (store.tail === null) this.#fold = new HistoryFold();
  }

  get cwd(): string {
    return this.context.cwd;
  }

  get store(): TranscriptStore {
    return this.#store;
  }

  get lastUuid(): string | null {
    return this.#store.tail?.lastUuid ?? null;
  }

  /** Where the conversation was last written. */
  get whereabouts(): Whereabouts {
    return this.#end.whereabouts;
  }

  /** The last entry of the API history, without reading the file. */
  lastEntry(): Content | undefined {
    return this.#fold ? this.#fold.finish().contents.at(-1) : this.#end.lastEntry;
  }

  /** The calls that the conversation's end leaves open, without reading the file. */
  dangling(): readonly DanglingCall[] {
    if (this.#fold) return danglingCalls(this.#fold.finish().contents);
    return this.#end.lastEntry?.role === 'model' ? idCalls(this.#end.lastEntry) : [];
  }

  /** The number of the last prompt, by which the next one is named. */
  lastPrompt(): number {
    const history = this.#fold?.finish();
    return Math.max(this.#end.lastPrompt, history?.lastPromptTurn ?? 0, history?.userTurns ?? 0);
  }

  /** The API history, read from the file on first use. */
  async history(): Promise<SessionHistory> {
    return (await this.#loaded()).finish();
  }

  async callIds(): Promise<CallIds> {
    const { usedCallIds } = await this.history();
    return { isUsed: (id) => usedCallIds.has(id), fresh: () => `call_${crypto.randomUUID()}` };
  }

  /** Appends records and folds them into the history; resolves when they are written, or on disk where durable. */
  async append(drafts: readonly RecordDraft[], options: AppendOptions): Promise<readonly TranscriptRecord[]> {
    // A reader that is at work takes in what it reads, not what is appended behind its back.
    if (this.#fold === undefined) await this.#reading;
    const records = await this.#store.append(drafts, options);
    for (const record of records) {
      if (this.#fold) this.#fold.add(record);
      else if (record.message !== undefined) this.#end = { ...this.#end, lastEntry: record.message };
    }
    const last = records.at(-1);
    if (last) this.#end = { ...this.#end, whereabouts: { cwd: last.cwd, gitBranch: last.gitBranch } };
    return records;
  }

  /** What the model is sent: every call paired with one response, ids as its provider knows them, notices at the end. */
  async contentsForModel(notices: readonly string[]): Promise<readonly Content[]> {
    const history = await this.history();
    const paired = pairCalls(history.contents, texts.CALL_NEVER_FINISHED);
    const named = withProviderCallIds(paired, history.providerCallIds);
    const last = named.at(-1);
    if (notices.length === 0 || last?.role !== 'user') return named;
    const parts: Part[] = [...(last.parts ?? []), ...notices.map((text) => ({ text }))];
    return [...named.slice(0, -1), { ...last, parts }];
  }

  /** Closing responses for what the conversation's end leaves open, to be written before what follows it. */
  async closings(): Promise<readonly RecordDraft[]> {
    await this.#loaded();
    return this.dangling().map((call) => closingRecord(this.context, call, texts.CALL_NEVER_FINISHED));
  }

  async #loaded(): Promise<HistoryFold> {
    if (this.#fold) return this.#fold;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    this.#fold = await this.#reading;
    return this.#fold;
  }
}
