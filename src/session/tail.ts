import type { Content } from '@google/genai';
import { TAIL_BYTES } from './append.ts';
import { type Conversation, type Damage, readConversationFrom } from './conversation.ts';
import { type LastEntry, lastEntryIn } from './history.ts';
import { readBytes } from './lines.ts';
import { ASSISTANT, USER } from './record-bytes.ts';
import type { TailState } from './store.ts';
import type { TranscriptFile } from './transcript-file.ts';
import type { TranscriptRecord } from './transcript.ts';

const FIRST_SPAN = 64 << 10;
const GROWTH = 4;

/** What the end of a transcript says: enough to decide a restore and to append, without the rest of the file. */
export interface Tail extends TailState {
  /** The newest records of the conversation, at least as many as asked for if there are so many, in order. */
  readonly records: readonly TranscriptRecord[];
  /** Whether the conversation begins before `records`. */
  readonly hasMore: boolean;
  /** The last entry of the API history, a batch's results one entry each; undefined where the history is empty. */
  readonly lastEntry: Content | undefined;
  /** As far as the file was read. */
  readonly damage: Damage;
}

/**
 * Reads the end of a transcript; the cost is that of the records asked for, not of the file. `firstSpan` is how many bytes
 * are tried first.
 */
export async function readTail(
  file: TranscriptFile,
  wanted: { readonly records: number; readonly firstSpan?: number },
): Promise<Tail> {
  const { conversation, lastEntry } = await readTailConversation(file, wanted.records, wanted.firstSpan);
  const from = Math.max(0, conversation.length - wanted.records);
  const records: TranscriptRecord[] = [];
  for await (const record of conversation.records({ from })) records.push(record);
  return {
    ...(await readTailState(file, conversation)),
    records,
    hasMore: from > 0 || !conversation.complete,
    lastEntry,
    damage: conversation.damage,
  };
}

/** What an append needs to know of the file that `conversation` was read from. */
export async function readTailState(file: TranscriptFile, conversation: Conversation): Promise<TailState> {
  const tailBytes = Buffer.alloc(Math.min(file.size, TAIL_BYTES));
  const read = await readBytes(file, tailBytes, file.size - tailBytes.length, tailBytes.length);
  return {
    ino: file.ino,
    size: file.size,
    tailBytes: tailBytes.subarray(0, read),
    endsWithNewline: read > 0 && tailBytes[read - 1] === 0x0a,
    lastUuid: conversation.last?.uuid ?? null,
  };
}

export interface TailConversation {
  readonly conversation: Conversation;
  readonly lastEntry: Content | undefined;
  /** The record that decided it; undefined where the history has none. */
  readonly lastRecord: TranscriptRecord | undefined;
}

/**
 * A conversation of which the newest `records` are read, as many before them again (a page may begin there), and enough
 * to know the last entry of its history.
 */
export async function readTailConversation(
  file: TranscriptFile,
  records: number,
  firstSpan = FIRST_SPAN,
): Promise<TailConversation> {
  for (let span = firstSpan; ; span *= GROWTH) {
    const conversation = await readConversationFrom(file, file.size - span);
    if (!conversation || (conversation.length < 2 * records && !conversation.complete)) continue;
    const last = await readLastEntry(conversation);
    if (last === undefined && !conversation.complete) continue;
    return { conversation, lastEntry: last?.content ?? undefined, lastRecord: last?.record };
  }
}

/** The last entry of the API history; undefined where none has been read. */
export async function readLastEntry(conversation: Conversation): Promise<LastEntry | undefined> {
  // What follows a message that cannot be read: it may belong to the one before that. The newest first.
  let loose: TranscriptRecord[][] = [];
  for (let to = conversation.length; to > 0; ) {
    // A stretch begins with a message that results can belong to, so those beside the chain come out with it.
    let from = to - 1;
    while (from > 0 && !isMessage(conversation.typeAt(from))) from--;
    if (!conversation.complete && !isMessage(conversation.typeAt(from))) return undefined;
    const records: TranscriptRecord[] = [];
    for await (const record of conversation.records({ from, to })) records.push(record);
    loose.push(records);
    to = from;
    if (from > 0 && !records.some(({ type }) => type === 'user' || type === 'assistant')) continue;
    const entry = lastEntryIn(loose.toReversed().flat());
    if (entry !== undefined) return entry;
    loose = [];
  }
  return undefined;
}

function isMessage(type: number): boolean {
  return type === USER || type === ASSISTANT;
}
