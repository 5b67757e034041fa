import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Conversation, readConversation } from '../../src/session/conversation.ts';
import { readLastEntry, readTail } from '../../src/session/tail.ts';
import { openTranscript, type TranscriptFile } from '../../src/session/transcript-file.ts';
import type { TranscriptRecord } from '../../src/session/transcript.ts';
import { tempFolder } from '../support/temp.ts';
import { NOTHING, recordsOf, replayedUpdates, Writer } from '../support/transcripts.ts';

const WIRE = join(import.meta.dirname, '../fixtures/wire/transcripts');
const fixture = (name: string) => readFileSync(join(WIRE, name));

/** Opens each of many contents of one file in turn. */
function reader() {
  const path = join(tempFolder(), 'session.jsonl');
  return async <T>(bytes: string | Uint8Array, use: (file: TranscriptFile) => Promise<T>): Promise<T> => {
    writeFileSync(path, bytes);
    return opened(path, use);
  };
}

async function opened<T>(path: string, use: (file: TranscriptFile) => Promise<T>): Promise<T> {
  const file = openTranscript(path);
  try {
    return await use(file!);
  } finally {
    await file!.handle.close();
  }
}

/** Whatever the file holds: slices say what parsing says, and the end says what the whole says. */
async function checkAgreement(file: TranscriptFile): Promise<Conversation> {
  const conversation = await readConversation(file);
  const parsed = await replayedUpdates(conversation, NOTHING, { rawResults: false });
  expect(await replayedUpdates(conversation, NOTHING, { rawResults: true })).toEqual(parsed);
  const lastEntry = (await readLastEntry(conversation))?.content ?? undefined;
  for (const wanted of [1, 3, 100]) {
    const tail = await readTail(file, { records: wanted, firstSpan: 300 });
    expect(tail.lastEntry).toEqual(lastEntry);
    expect(tail.lastUuid).toBe(conversation.last?.uuid ?? null);
    expect(tail.hasMore).toBe(conversation.length > wanted);
    const newest: TranscriptRecord[] = [];
    const from = Math.max(0, conversation.length - wanted);
    for await (const record of conversation.records({ from })) newest.push(record);
    expect(tail.records).toEqual(newest);
  }
  return conversation;
}

test('[TR-4] a file cut at any byte holds the records that are whole', async () => {
  const bytes = fixture('b0.dangling.jsonl');
  const path = join(tempFolder({}), 'session.jsonl');
  writeFileSync(path, bytes);
  const ends: number[] = [];
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) ends.push(at);
  const ids = ends.map((_, i) => JSON.parse(bytes.subarray(i === 0 ? 0 : ends[i - 1]! + 1, ends[i]).toString()).uuid);
  for (let size = bytes.length; size >= 0; size--) {
    truncateSync(path, size);
    const whole = ends.filter((end) => end <= size).length;
    await opened(path, async (file) => {
      const conversation = await readConversation(file);
      expect([size, conversation.length, conversation.last?.uuid]).toEqual([size, whole, ids[whole - 1]]);
      expect(conversation.damage).toEqual({ corruptLines: 0, gaps: 0 });
    });
  }
});

describe('[TR-4, EL-3, PF-2] damage anywhere neither stops a reader nor divides readers', () => {
  const damage = (length: number) =>
    fc.array(
      fc.record({
        at: fc.nat(length - 1),
        kind: fc.constantFrom('set', 'insert', 'delete', 'copy'),
        byte: fc.oneof(fc.constantFrom(...Buffer.from('"\\{}[],:\n\r\0ux\x01\x80\xff', 'latin1')), fc.nat(255)),
        run: fc.integer({ min: 1, max: 400 }),
      }),
      { minLength: 1, maxLength: 4 },
    );

  test.each([
    'e2-two-load-answer-both.jsonl',
    'r1-parts.dangling.jsonl',
    'd1c-restore-then-ordinary-while-pending.jsonl',
  ])('%s', async (name) => {
    const original = fixture(name);
    const read = reader();
    await fc.assert(
      fc.asyncProperty(damage(original.length), async (wounds) => {
        let bytes: Buffer = Buffer.from(original);
        for (const { at, kind, byte, run } of wounds) {
          const before = bytes.subarray(0, at);
          const after = bytes.subarray(at);
          if (kind === 'set') bytes[Math.min(at, bytes.length - 1)] = byte;
          else if (kind === 'insert') bytes = Buffer.concat([before, Buffer.of(byte), after]);
          else if (kind === 'delete') bytes = Buffer.concat([before, after.subarray(run)]);
          else bytes = Buffer.concat([before, bytes.subarray(Math.max(0, at - run), at), after]);
        }
        await read(bytes, checkAgreement);
      }),
      { numRuns: 80 },
    );
  });
});

const TYPES = ['user', 'assistant', 'tool_result', 'system', 'telemetry', 'compression'] as const;
const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const CALLS = ['x', 'y', 'z'];

const drafts = fc.array(
  fc.record({
    uuid: fc.constantFrom(...IDS, ''),
    parent: fc.oneof({ weight: 3, arbitrary: fc.constant('last') }, fc.constantFrom(...IDS, 'lost', null)),
    type: fc.constantFrom(...TYPES),
    calls: fc.subarray(CALLS),
    pad: fc.nat(300),
  }),
  { maxLength: 14 },
);

function write(list: typeof drafts extends fc.Arbitrary<infer T> ? T : never): Writer {
  const writer = new Writer();
  for (const [index, { uuid, parent, type, calls, pad }] of list.entries()) {
    const id = uuid || `n${index}`;
    const draft = parent === 'last' ? {} : { parentUuid: parent };
    const text = `${index} ${'.'.repeat(pad)}`;
    const compressedHistory = calls.map((call) => ({
      role: 'model',
      parts: [{ functionCall: { id: call, name: 'glob' } }],
    }));
    if (type === 'user') writer.user(id, text, draft);
    else if (type === 'assistant') writer.calls(id, calls, draft);
    else if (type === 'tool_result') writer.result(id, calls[0] ?? 'x', text, draft);
    else if (type === 'compression') writer.system(id, 'chat_compression', { compressedHistory }, draft);
    else writer.system(id, type === 'telemetry' ? 'ui_telemetry' : 'other', { text }, draft);
  }
  return writer;
}

/** TR-2 once more, slowly and by the sentence. */
function expectedIds(records: readonly TranscriptRecord[]): string[] {
  const parentOf = (at: number): number => {
    const { parentUuid } = records[at]!;
    if (parentUuid === null) return -1;
    const found = records.slice(0, at).findLastIndex(({ uuid }) => uuid === parentUuid);
    return found === -1 ? at - 1 : found;
  };
  const chain: number[] = [];
  for (let at = records.length - 1; at >= 0; at = parentOf(at)) chain.unshift(at);
  /** Only results and system records may lie between a result and its call, and no link of them may be lost. */
  const ownerOf = (at: number): number => {
    const { type, parentUuid } = records[at]!;
    if (type === 'assistant') return at;
    if (type === 'user') return -1;
    const parent = records.slice(0, at).findLastIndex(({ uuid }) => uuid === parentUuid);
    return parent === -1 ? -1 : ownerOf(parent);
  };
  const placed: number[] = [];
  let open: { calls: Set<string>; owner: number } | undefined;
  const answer = (at: number) => records[at]!.message?.parts?.[0]?.functionResponse?.id ?? '';
  const flush = () => {
    for (let at = 0; open && at < records.length; at++) {
      if (records[at]!.type !== 'tool_result' || chain.includes(at) || ownerOf(at) !== open.owner) continue;
      if (open.calls.delete(answer(at))) placed.push(at);
    }
    open = undefined;
  };
  for (const at of chain) {
    const { type, message } = records[at]!;
    if (type === 'user' || type === 'assistant') flush();
    placed.push(at);
    if (type === 'assistant') {
      open = { calls: new Set(message!.parts!.map(({ functionCall }) => functionCall!.id!)), owner: at };
    } else if (type === 'tool_result') open?.calls.delete(answer(at));
  }
  flush();
  return placed
    .map((at) => records[at]!)
    .filter(({ subtype }) => subtype !== 'ui_telemetry')
    .map(({ timestamp }) => timestamp);
}

test('[TR-2, TR-9, EL-3] any links lead to the conversation that the rule says', async () => {
  const read = reader();
  await fc.assert(
    fc.asyncProperty(drafts, async (list) => {
      const writer = write(list);
      await read(writer.text(), async (file) => {
        const conversation = await checkAgreement(file);
        const times = (await recordsOf(conversation)).map(({ timestamp }) => timestamp);
        expect(times).toEqual(expectedIds(writer.records));
      });
    }),
    { numRuns: 200 },
  );
});
