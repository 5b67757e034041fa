import { readConversation } from './conversation.ts';
import { type RecordContext, type RecordDraft, systemRecord } from './records.ts';
import { TranscriptStore } from './store.ts';
import { readSummary } from './summary.ts';
import { SUBTYPE, type TranscriptRecord } from './transcript.ts';
import type { TranscriptFile } from './transcript-file.ts';

/** A session that was copied from another, in the reference's words. */
export interface BranchedSession {
  readonly newSessionId: string;
  readonly title: string;
  readonly displayName: string;
}

export interface BranchRequest {
  readonly file: TranscriptFile;
  /** The name that is asked for. */
  readonly name: string | undefined;
  /** The titles that are taken. */
  readonly titles: readonly string[];
  /** Of the new session. */
  readonly context: RecordContext;
  readonly path: string;
}

/** Records that are written at once. */
const SLICE = 500;
const HEAD_BYTES = 8_192;

/** Writes the conversation of a transcript into a new one, its records linked in one line, and names it. */
export async function branchTranscript({ file, name, titles, context, path }: BranchRequest): Promise<BranchedSession> {
  const store = new TranscriptStore(path, null);
  const conversation = await readConversation(file);
  let slice: RecordDraft[] = [];
  for await (const record of conversation.records()) {
    slice.push(copied(record, context.sessionId));
    if (slice.length < SLICE) continue;
    await store.append(slice, { durable: false });
    slice = [];
  }
  const title = freeTitle(name ?? (await titleOf(file)) ?? 'Branch', titles);
  const named = systemRecord(context, SUBTYPE.customTitle, { customTitle: title, titleSource: 'auto' });
  await store.append([...slice, named], { durable: true });
  return { newSessionId: context.sessionId, title, displayName: title };
}

function copied({ parentUuid: _, ...record }: TranscriptRecord, sessionId: string): RecordDraft {
  return { ...record, sessionId };
}

/** `name(n)` with the smallest n that no session has. */
function freeTitle(name: string, taken: readonly string[]): string {
  for (let n = 1; ; n++) {
    const title = `${name}(${n})`;
    if (!taken.includes(title)) return title;
  }
}

async function titleOf(file: TranscriptFile): Promise<string | undefined> {
  const head = Buffer.alloc(Math.min(HEAD_BYTES, file.size));
  await file.handle.read(head, 0, head.length, 0);
  const text = head.toString('utf8');
  const sessionId = /"sessionId":"([^"]*)"/.exec(text)?.[1];
  return sessionId === undefined ? undefined : readSummary(sessionId.toLowerCase(), text, '')?.title;
}
