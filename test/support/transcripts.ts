import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { FrameBatch, UpdateFrames } from '../../src/acp/frames.ts';
import { type Conversation, type Range, readConversation } from '../../src/session/conversation.ts';
import type { SessionEvent } from '../../src/session/ports.ts';
import { type LeftOpen, REPLAYED_SYSTEM, Replay } from '../../src/session/replay.ts';
import { openTranscript, type TranscriptFile } from '../../src/session/transcript-file.ts';
import type { TranscriptRecord } from '../../src/session/transcript.ts';
import { tempFolder } from './temp.ts';

export const NOTHING: LeftOpen = { open: new Set(), waiting: new Set() };
export const SESSION = '6f1f7cbb-1c2d-4a51-9a35-1f0f4c3b7e10';
export const CWD = '/srv/project';

/** A transcript with these bytes, opened; closed and removed when the test ends. */
export async function transcriptOf(bytes: string | Uint8Array): Promise<TranscriptFile> {
  const path = join(tempFolder(), 'session.jsonl');
  writeFileSync(path, bytes);
  const file = openTranscript(path);
  if (!file) throw new Error(`${path} was not found`);
  onTestFinished(() => file.handle.close());
  return file;
}

interface Options extends Range {
  readonly rawResults?: boolean;
}

/** What a load shows of a conversation. */
export async function* replay(
  conversation: Conversation,
  left: LeftOpen,
  { rawResults = true, ...range }: Options = {},
): AsyncGenerator<SessionEvent> {
  const play = new Replay(left);
  for await (const items of conversation.batches({ rawResults, system: REPLAYED_SYSTEM }, range)) {
    for (const item of items) yield* play.next(item);
  }
  yield* play.finish();
}

/** The `session/update`s, parsed from their encoded lines, that a load sends. */
export async function replayedUpdates(
  conversation: Conversation,
  left: LeftOpen = NOTHING,
  options: Options = {},
  cwd = CWD,
): Promise<unknown[]> {
  const frames = new UpdateFrames(SESSION, cwd);
  const batch = new FrameBatch();
  for await (const event of replay(conversation, left, options)) frames.append(event, batch);
  const lines = batch.take().toString().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line).params.update);
}

export async function updatesOf(bytes: string | Uint8Array, left: LeftOpen = NOTHING): Promise<unknown[]> {
  return replayedUpdates(await readConversation(await transcriptOf(bytes)), left);
}

export async function recordsOf(conversation: Conversation): Promise<TranscriptRecord[]> {
  const records: TranscriptRecord[] = [];
  for await (const record of conversation.records()) records.push(record);
  return records;
}

type Draft = Partial<Omit<TranscriptRecord, 'uuid' | 'type'>>;

/** Writes records in the recorded key order; each follows the one before it unless it says otherwise. */
export class Writer {
  readonly records: TranscriptRecord[] = [];
  #last: string | null = null;

  add(uuid: string, type: TranscriptRecord['type'], draft: Draft = {}): this {
    const { parentUuid = this.#last, ...rest } = draft;
    const time = new Date(Date.UTC(2026, 0, 1, 0, 0, this.records.length)).toISOString();
    const common = { sessionId: SESSION, timestamp: time, type, provenance: type, cwd: CWD, version: '0.24.4' };
    this.records.push({ uuid, parentUuid, ...common, ...rest } as TranscriptRecord);
    this.#last = uuid;
    return this;
  }

  user(uuid: string, text: string, draft: Draft = {}): this {
    return this.add(uuid, 'user', { message: { role: 'user', parts: [{ text }] }, ...draft });
  }

  says(uuid: string, text: string, draft: Draft = {}): this {
    return this.add(uuid, 'assistant', { model: 'm', message: { role: 'model', parts: [{ text }] }, ...draft });
  }

  calls(uuid: string, ids: readonly string[], draft: Draft = {}): this {
    const parts = ids.map((id) => ({ functionCall: { ...(id ? { id } : {}), name: 'glob', args: { pattern: id } } }));
    return this.add(uuid, 'assistant', { model: 'm', message: { role: 'model', parts }, ...draft });
  }

  result(uuid: string, id: string, output: string, draft: Draft = {}): this {
    return this.add(uuid, 'tool_result', {
      message: { role: 'user', parts: [{ functionResponse: { id, name: 'glob', response: { output } } }] },
      toolCallResult: { callId: id, status: 'success', executionStatus: 'success', resultDisplay: output },
      ...draft,
    });
  }

  system(uuid: string, subtype: string, systemPayload: unknown = {}, draft: Draft = {}): this {
    return this.add(uuid, 'system', { subtype, systemPayload, ...draft });
  }

  lines(): string[] {
    return this.records.map((record) => JSON.stringify(record));
  }

  text(): string {
    return this.lines()
      .map((line) => `${line}\n`)
      .join('');
  }
}
