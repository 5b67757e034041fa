import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConversation } from '../../src/session/conversation.ts';
import { SessionFault } from '../../src/session/faults.ts';
import { readTail } from '../../src/session/tail.ts';
import { openTranscript, type TranscriptFile } from '../../src/session/transcript-file.ts';
import { makeFifo } from '../support/fifo.ts';
import { tempFolder } from '../support/temp.ts';
import { NOTHING, recordsOf, replayedUpdates, transcriptOf, Writer } from '../support/transcripts.ts';

interface Read {
  readonly records: string;
  readonly gaps?: number;
  readonly corruptLines?: number;
}

/** Reads the bytes whole and from the end, both must say the same; answers the ids of the conversation's records. */
async function check(bytes: string | Uint8Array, { records, gaps = 0, corruptLines = 0 }: Read): Promise<void> {
  const file = await transcriptOf(bytes);
  const conversation = await readConversation(file);
  const ids = (await recordsOf(conversation)).map(({ uuid }) => uuid).join(' ');
  expect({ records: ids, ...conversation.damage }).toEqual({ records, gaps, corruptLines });
  await replayedUpdates(conversation, NOTHING);
  const tail = await readTail(file, { records: 100, firstSpan: 64 });
  expect(tail.records.map(({ uuid }) => uuid).join(' ')).toBe(records);
}

const turn = () => new Writer().user('u1', 'one').says('a1', 'first');

describe('[TR-2] the conversation is the chain from the last record up', () => {
  test.each<[string, Writer, Read]>([
    ['one record after the other', turn().user('u2', 'two'), { records: 'u1 a1 u2' }],
    [
      'an abandoned branch is left out',
      turn().user('x', 'no').says('y', 'no').user('u2', 'two', { parentUuid: 'a1' }),
      { records: 'u1 a1 u2' },
    ],
    [
      'a rewind goes on from where it points',
      turn().user('x', 'no').system('rw', 'rewind', {}, { parentUuid: 'a1' }).user('u2', 'two'),
      { records: 'u1 a1 rw u2' },
    ],
    [
      'a rewind to the very beginning',
      turn().system('rw', 'rewind', {}, { parentUuid: null }).user('u2', 'two'),
      { records: 'rw u2' },
    ],
    [
      'a sibling result belongs to the call',
      new Writer()
        .calls('a1', ['x', 'y'])
        .result('r1', 'x', '1', { parentUuid: 'a1' })
        .result('r2', 'y', '2', { parentUuid: 'a1' })
        .says('a2', 'end'),
      { records: 'a1 r2 r1 a2' },
    ],
    [
      'a sibling result comes before the message that follows',
      new Writer()
        .calls('a1', ['x', 'y'])
        .result('r1', 'x', '1')
        .result('r2', 'y', '2', { parentUuid: 'a1' })
        .system('s', 'x')
        .user('u2', 'two')
        .says('a2', 'end'),
      { records: 'a1 r2 s r1 u2 a2' },
    ],
    [
      'a sibling result at the end comes last',
      new Writer().calls('a1', ['x', 'y']).result('r1', 'x', '1').result('r2', 'y', '2', { parentUuid: 'a1' }),
      { records: 'a1 r2 r1' },
    ],
    [
      'of two results beside the chain the first answers',
      new Writer()
        .calls('a1', ['x', 'y'])
        .result('r0', 'x', '0')
        .result('r1', 'x', '1', { parentUuid: 'a1' })
        .result('r2', 'y', '2', { parentUuid: 'a1' }),
      { records: 'a1 r2 r0' },
    ],
    [
      'a call that is answered on the chain takes no other result',
      new Writer().calls('a1', ['x']).result('r1', 'x', '1').result('r2', 'x', '2', { parentUuid: 'a1' }),
      { records: 'a1 r2' },
    ],
    [
      'a result beside the chain is found behind telemetry',
      new Writer()
        .calls('a1', ['x'])
        .system('s', 'whatever')
        .result('r1', 'x', '1')
        .user('u2', 'two', { parentUuid: 'a1' }),
      { records: 'a1 r1 u2' },
    ],
    [
      'a result of an abandoned call with the same id stays out',
      turn().calls('b', ['x']).result('rb', 'x', 'no').calls('a2', ['x'], { parentUuid: 'a1' }).user('u2', 'two'),
      { records: 'u1 a1 a2 u2' },
    ],
    [
      'a result that a message parts from its call stays out',
      new Writer().calls('a1', ['x']).user('u1', 'no').result('r1', 'x', '1').user('u2', 'two', { parentUuid: 'a1' }),
      { records: 'a1 u2' },
    ],
    [
      'a result beside the chain whose parent is lost stays out',
      new Writer()
        .calls('a1', ['x'])
        .result('r0', 'x', '0', { parentUuid: null })
        .result('r1', 'x', '1', { parentUuid: 'lost' })
        .user('u2', 'two', { parentUuid: 'a1' }),
      { records: 'a1 u2' },
    ],
    [
      'a missing parent is bridged to the nearest earlier record',
      turn().user('u2', 'two', { parentUuid: 'lost' }).says('a2', 'end'),
      { records: 'u1 a1 u2 a2', gaps: 1 },
    ],
    [
      'a missing parent of the first record ends the chain',
      new Writer().user('u1', 'one', { parentUuid: 'lost' }).says('a1', 'end'),
      { records: 'u1 a1', gaps: 1 },
    ],
    [
      'a record that is its own parent',
      turn().user('u2', 'two', { parentUuid: 'u2' }),
      { records: 'u1 a1 u2', gaps: 1 },
    ],
    [
      'parents that form a cycle',
      new Writer()
        .user('u1', 'one', { parentUuid: 'a1' })
        .says('a1', 'x', { parentUuid: 'u2' })
        .user('u2', 'two', { parentUuid: 'a1' }),
      { records: 'u1 a1 u2', gaps: 2 },
    ],
    [
      'of duplicate ids the nearest earlier is the parent',
      turn().says('a1', 'again', { parentUuid: 'u1' }).user('u2', 'two'),
      { records: 'u1 a1 u2' },
    ],
    [
      'telemetry is passed over, unknown system records are not',
      turn().system('t', 'ui_telemetry').system('n', 'of_the_future'),
      { records: 'u1 a1 n' },
    ],
  ])('%s', async (_, writer, expected) => check(writer.text(), expected));

  test('of duplicate ids the text of the later one is read', async () => {
    const file = await transcriptOf(turn().says('a1', 'again', { parentUuid: 'u1' }).user('u2', 'two').text());
    const [, answer] = await recordsOf(await readConversation(file));
    expect(answer?.message?.parts).toEqual([{ text: 'again' }]);
  });

  test.each([
    ['where it is', turn().user('u2', 'two', { parentUuid: 'lost' })],
    ['behind telemetry', turn().system('t', 'ui_telemetry', {}, { parentUuid: 'lost' }).user('u2', 'two')],
  ])('a gap is shown %s', async (_, writer) => {
    const file = await transcriptOf(writer.text());
    const updates = await replayedUpdates(await readConversation(file));
    expect(updates).toHaveLength(4);
    expect(updates[2]).toMatchObject({
      sessionUpdate: 'agent_message_chunk',
      content: { text: expect.stringContaining('missing') },
      _meta: { qwenTranscript: { sourceRecordIds: ['u2'] } },
    });
  });
});

describe('[TR-4, K058, K060, K062] what is damaged is passed over, never glued and never fatal', () => {
  const three = turn().user('u2', 'two');
  const [one, two, last] = three.lines() as [string, string, string];
  const reordered = (line: string) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse()));
  const long = 'é'.repeat(3 << 20);
  const followers = new Writer().user('u3', 'x', { parentUuid: 'a2' }).says('a3', 'x').user('u4', 'x');
  test.each<[string, string | Uint8Array, Read]>([
    ['an empty file', '', { records: '' }],
    ['a file of line feeds', '\n\n\n', { records: '' }],
    ['a file of junk', 'junk\n{]\n"text"\n[1]\nnull\n{"uuid":1,"type":"user"}\n', { records: '', corruptLines: 6 }],
    [
      'random bytes',
      Uint8Array.from({ length: 4096 }, (_, i) => (i * 7919 + (i >> 3)) % 256 || 1),
      { records: '', corruptLines: expect.any(Number) as number },
    ],
    ['NUL bytes only', new Uint8Array(10_000), { records: '' }],
    ['a torn last line', `${one}\n${two}\n${last.slice(0, -1)}`, { records: 'u1 a1' }],
    ['a torn last line of one byte', `${one}\n${two}\n{`, { records: 'u1 a1' }],
    ['a whole last line without its line feed', `${one}\n${two}\n${last}`, { records: 'u1 a1 u2' }],
    [
      'a torn line that was closed by a line feed',
      `${one}\n${two.slice(0, 50)}\n${two}\n${last}\n`,
      { records: 'u1 a1 u2', corruptLines: 1 },
    ],
    [
      'a torn last record that was closed by a line feed',
      `${one}\n${two}\n${last.slice(0, -9)}\n`,
      { records: 'u1 a1', corruptLines: 1 },
    ],
    [
      'a record glued to a torn one, its head cut',
      `${one}\n${two.slice(0, 6)}${two}\n${last}\n`,
      { records: 'u1 a1 u2', corruptLines: 1 },
    ],
    [
      'a record glued to a torn one with a whole head',
      `${one}\n${last.slice(0, -4)}${two}\n${last}\n`,
      { records: 'u1 a1 u2', corruptLines: 1 },
    ],
    [
      'a record glued at the end, without a line feed',
      `${one}\n${two}\n${two.slice(0, -4)}${last}`,
      { records: 'u1 a1 u2' },
    ],
    ['two whole records on one line', `${one}${two}\n${last}\n`, { records: 'u1 a1 u2' }],
    [
      'a whole record and a torn one on one line',
      `${one}\n${two}${last.slice(0, 40)}\n${last}\n`,
      { records: 'u1 a1 u2', corruptLines: 1 },
    ],
    [
      'a whole record with the begin of another behind it',
      `${one}\n${two}{"uu\n${last}\n`,
      { records: 'u1 a1 u2', corruptLines: 1 },
    ],
    ['a whole record with a torn one behind it at the end', `${one}\n${two}${last.slice(0, 40)}`, { records: 'u1 a1' }],
    ['every record on one line', `${one}${two}${last}\n`, { records: 'u1 a1 u2' }],
    [
      'a broken record that later ones follow',
      `${one}\n${two}\n${last}\n{"uuid":"a2","parent\n${followers.lines().join('\n')}\n`,
      { records: 'u1 a1 u2 u3 a3 u4', gaps: 1, corruptLines: 1 },
    ],
    [
      'an object with an id inside a record is no glued record',
      `${one}\n${two.replace('"message"', '"extra":{"uuid":"x","type":"user"},"message"')}\n${last}\n`,
      { records: 'u1 a1 u2' },
    ],
    ['a corrupt line in the middle', `${one}\nno\n${two}\n${last}\n`, { records: 'u1 a1 u2', corruptLines: 1 }],
    [
      'a record in the middle whose body is corrupt',
      `${one}\n${two.replace('"parts"', 'parts')}\n${last}\n`,
      { records: 'u1 u2', corruptLines: 1 },
    ],
    ['CRLF', `${one}\r\n${two}\r\n${last}\r\n`, { records: 'u1 a1 u2' }],
    ['a byte order mark', `\ufeff${three.text()}`, { records: 'u1 a1 u2' }],
    ['a byte order mark in the middle', `${one}\n\ufeff${two}\n${last}\n`, { records: 'u1 a1 u2', corruptLines: 1 }],
    ['NUL bytes before a record', `${one}\n${'\0'.repeat(4096)}${two}\n${last}\n`, { records: 'u1 a1 u2' }],
    ['NUL bytes at the end', `${three.text()}${'\0'.repeat(4096)}`, { records: 'u1 a1 u2' }],
    ['blank lines', `\n${one}\n  \n\t\n${two}\n\n${last}\n\n`, { records: 'u1 a1 u2' }],
    [
      'keys in another order',
      three
        .lines()
        .map((line) => `${reordered(line)}\n`)
        .join(''),
      { records: 'u1 a1 u2' },
    ],
    [
      'white space between tokens',
      three.records.map((record) => `${JSON.stringify(record, null, 1).replaceAll('\n', ' ')}\n`).join(''),
      { records: 'u1 a1 u2' },
    ],
    ['escaped ids', three.text().replaceAll('"a1"', '"\\u0061\\u0031"'), { records: 'u1 a1 u2' }],
    ['ids outside ASCII', three.text().replaceAll('"a1"', '"ä1"'), { records: 'u1 ä1 u2' }],
    [
      'lines longer than any buffer',
      new Writer().user('u1', long).says('a1', long).user('u2', 'two').text(),
      { records: 'u1 a1 u2' },
    ],
    [
      'a type that nobody knows',
      `${one}\n${two.replaceAll('"assistant"', '"of_the_future"')}\n${last}\n`,
      { records: 'u1 a1 u2' },
    ],
    [
      'messages that are none',
      `${one}\n${two.replace(/"message":\{.*\}(?=\})/, '"message":7')}\n${last.replace('[{"text":"two"}]', '[null,7,{"functionCall":7},{"functionResponse":null}]')}\n`,
      { records: 'u1 a1 u2' },
    ],
  ])('%s', async (_, bytes, expected) => check(bytes, expected));
});

describe('[EL-3, LS-3] the end of the file tells the last entry of the API history', () => {
  const asked = () => turn().calls('q', ['x', 'y']);
  const compressed = (last: string) => ({
    compressedHistory: [
      { role: 'user', parts: [{ text: 'summary' }] },
      { role: 'model', parts: [{ text: last }] },
    ],
  });
  test.each<[string, Writer, string]>([
    ['calls', asked(), 'model calls x y'],
    ['calls behind telemetry', asked().system('t', 'ui_telemetry').system('s', 'turn_result'), 'model calls x y'],
    ['a rewound question', asked().system('rw', 'rewind', {}, { parentUuid: 'a1' }), 'model first'],
    ['a question on an abandoned branch', asked().user('u2', 'two', { parentUuid: 'a1' }), 'user two'],
    [
      'a rewind back to the question',
      asked().user('u2', 'two').system('rw', 'rewind', {}, { parentUuid: 'q' }),
      'model calls x y',
    ],
    ['a compression after the question', asked().system('c', 'chat_compression', compressed('done')), 'model done'],
    [
      'a question after the compression',
      turn().system('c', 'chat_compression', compressed('done')).calls('q', ['x']),
      'model calls x',
    ],
    ['a compression to nothing', asked().system('c', 'chat_compression', { compressedHistory: [] }), 'none'],
    ['a compression that is none', asked().system('c', 'chat_compression', {}), 'model calls x y'],
    ['a batch that is partly answered', asked().result('r', 'x', '1'), 'user answers x'],
    [
      'an answer beside the chain',
      asked().result('r', 'x', '1').system('s', 'turn_result', {}, { parentUuid: 'q' }),
      'user answers x',
    ],
    ['nothing but system records', new Writer().system('s', 'turn_result'), 'none'],
    ['nothing', new Writer(), 'none'],
  ])('%s', async (_, writer, expected) => {
    const file = await transcriptOf(writer.text());
    for (const firstSpan of [1, 200, 1 << 20]) {
      const { lastEntry, ...tail } = await readTail(file, { records: 1, firstSpan });
      const parts = (lastEntry?.parts ?? []).map(({ text, functionCall, functionResponse }) => {
        return text ?? functionCall?.id ?? functionResponse?.id;
      });
      const kind = lastEntry?.parts?.[0]?.functionCall
        ? ['calls']
        : lastEntry?.parts?.[0]?.functionResponse
          ? ['answers']
          : [];
      expect(lastEntry ? [lastEntry.role, ...kind, ...parts].join(' ') : 'none').toBe(expected);
      const size = Buffer.byteLength(writer.text());
      const tailBytes = Buffer.from(writer.text()).subarray(-256);
      expect(tail).toMatchObject({
        size,
        tailBytes,
        endsWithNewline: size > 0,
        lastUuid: writer.records.at(-1)?.uuid ?? null,
      });
    }
  });
});

describe('[TR-8, PF-2] what is read', () => {
  const long = () => {
    const writer = new Writer();
    for (let i = 0; i < 3_000; i++)
      writer
        .user(`u${i}`, 'x'.repeat(500))
        .calls(`a${i}`, [`c${i}`])
        .result(`r${i}`, `c${i}`, 'y'.repeat(500));
    return writer;
  };

  /** The file, and how many bytes of it have been read. */
  function counted(file: TranscriptFile): { file: TranscriptFile; bytes: () => number } {
    let bytes = 0;
    const read = async (...args: [Buffer, number, number, number]) => {
      const result = await file.handle.read(...args);
      bytes += result.bytesRead;
      return result;
    };
    const handle = new Proxy(file.handle, { get: (target, key) => (key === 'read' ? read : Reflect.get(target, key)) });
    return { file: { ...file, handle }, bytes: () => bytes };
  }

  test('a load reads the file twice and its last record once more', async () => {
    const { file, bytes } = counted(await transcriptOf(long().text()));
    await replayedUpdates(await readConversation(file));
    expect(bytes()).toBeGreaterThan(2 * file.size);
    expect(bytes()).toBeLessThan(2 * file.size + 10_000);
  });

  test('the tail costs what is asked for, not what is there', async () => {
    const { file, bytes } = counted(await transcriptOf(long().text()));
    const { records } = await readTail(file, { records: 10 });
    expect(records).toHaveLength(10);
    expect(bytes()).toBeLessThan(100_000);
    expect(file.size).toBeGreaterThan(4_000_000);
  });
});

describe('[TR-6] only a regular file is opened, and nothing is waited for', () => {
  const folder = () => {
    const at = tempFolder({ 'file.jsonl': turn().text() });
    mkdirSync(join(at, 'directory'));
    symlinkSync(join(at, 'file.jsonl'), join(at, 'link'));
    symlinkSync(join(at, 'nowhere'), join(at, 'broken'));
    symlinkSync(join(at, 'directory'), join(at, 'folder-link'));
    makeFifo(join(at, 'fifo'));
    writeFileSync(join(at, 'directory', 'inside'), '');
    return at;
  };

  test.each([
    ['directory', 'a directory'],
    ['link', 'a symbolic link'],
    ['broken', 'a symbolic link'],
    ['folder-link', 'a symbolic link'],
    ['fifo', 'a FIFO'],
  ])('%s is refused', async (name, kind) => {
    const fault = caught(() => openTranscript(join(folder(), name)));
    expect(fault).toBeInstanceOf(SessionFault);
    expect(fault).toMatchObject({ kind: 'invalid_params', message: expect.stringContaining(kind) });
  });

  test.each(['nothing', 'file.jsonl/below'])('%s is not there', async (name) => {
    expect(openTranscript(join(folder(), name))).toBeUndefined();
  });
});

function caught(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}
