import { randomUUID } from 'node:crypto';
import { unlinkSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CWD, Home, Peer, RESTORE, submit } from '../support/peer.ts';

/** The four lines of a dangling question: user, snapshot, telemetry, the model's call. */
function danglingLines(home: Home): [string, string, string, string] {
  const id = home.place('c0.dangling');
  const lines = home.bytes(id).toString('utf8').trimEnd().split('\n');
  unlinkSync(home.file(id));
  return lines as [string, string, string, string];
}

/** What is ignored at the end is a line that cannot be read once something follows it. */
const TORN = '1 lines cannot be read, 0 records are missing';

const text = (...lines: readonly (string | Buffer)[]) =>
  Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]));
const changed = (line: string, change: object): string => JSON.stringify({ ...JSON.parse(line), ...change });
const uuidOf = (line: string): string => JSON.parse(line).uuid;

/** Loads in every way; checks that no byte changes; answers whether there was a hint. */
async function loadInEveryWay(peer: Peer, id: string, name: string): Promise<boolean> {
  const before = peer.home.bytes(id);
  const bulk = { 'qwen.session.loadReplayMode': 'bulk' };
  const metas = [];
  for (const load of [
    () => peer.load(id),
    () => peer.resume(id),
    () => peer.load(id, bulk),
    () => peer.load(id, { ...bulk, 'qwen.session.loadReplayPageSize': 1 }),
  ]) {
    metas.push((await load())._meta[RESTORE]);
  }
  await peer.request('qwen/session/loadUpdates', { sessionId: id, cwd: CWD });
  await peer.request('session/list', { cwd: CWD });
  expect(peer.home.bytes(id).equals(before), name).toBe(true);
  expect(new Set(metas).size, name).toBe(1);
  return metas[0] === true;
}

/** The records behind these bytes, which still stand as they were. */
// biome-ignore lint/suspicious/noExplicitAny: records of every form
function appended(home: Home, id: string, before: Buffer, name: string): any[] {
  const now = home.bytes(id);
  expect(now.subarray(0, before.length).equals(before), name).toBe(true);
  const added = now.subarray(before.length).toString('utf8');
  expect(added.endsWith('\n'), name).toBe(true);
  return added
    .replace(/^\n/, '')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

test('[TR-4, TR-2, TR-3, EL-3, K058, K062] a question is asked again whatever is damaged around it; damage is one warning; the answer stands on a line of its own', async () => {
  const home = new Home();
  const [user, snapshot, telemetry, call] = danglingLines(home);
  const callId = JSON.parse(call).message.parts[0].functionCall.id;
  const whole = text(user, snapshot, telemetry, call);
  /** A record in the middle of the chain. */
  const odd = (record: object) => {
    const uuid = randomUUID();
    const line = changed(snapshot, { uuid, parentUuid: uuidOf(telemetry), ...record });
    return text(user, snapshot, telemetry, line, changed(call, { parentUuid: uuid }));
  };
  const behind = (record: object) =>
    Buffer.concat([whole, text(changed(snapshot, { uuid: randomUUID(), parentUuid: uuidOf(call), ...record }))]);
  const says = (parts: unknown, role = 'user') => ({
    subtype: undefined,
    systemPayload: undefined,
    message: { role, parts },
  });
  const rows: readonly (readonly [string, Buffer, string?])[] = [
    ['a torn last line', Buffer.concat([whole, Buffer.from(user.slice(0, 100))]), TORN],
    ['a torn last line inside a character', Buffer.concat([whole, Buffer.from('{"uuid":"é').subarray(0, -1)]), TORN],
    ['a last record that lacks its newline', whole.subarray(0, -1)],
    [
      'junk between records',
      text(user, '{"junk', snapshot, 'x', telemetry, call),
      '2 lines cannot be read, 0 records are missing',
    ],
    ['a missing record', text(user, telemetry, call), '0 lines cannot be read, 1 records are missing'],
    [
      'a torn line that the next record is glued to',
      text(user, snapshot, telemetry, user.slice(0, 90) + call),
      '1 lines cannot be read, 0 records are missing',
    ],
    ['a BOM and CRLF', Buffer.from(`\u{feff}${[user, snapshot, telemetry, call, ''].join('\r\n')}`)],
    ['NUL bytes at the end', Buffer.concat([whole, Buffer.alloc(4_096)])],
    ['NUL bytes in the middle', text(user, Buffer.alloc(4_096), snapshot, telemetry, call)],
    [
      'bytes that are no UTF-8',
      text(user, Buffer.from([0xff, 0xfe, 0xc3]), snapshot, telemetry, call),
      '1 lines cannot be read, 0 records are missing',
    ],
    ['every record twice', Buffer.concat([whole, whole])],
    ['the last record twice', Buffer.concat([whole, text(call)])],
    [
      'a cycle',
      text(changed(user, { parentUuid: uuidOf(call) }), snapshot, telemetry, call),
      '0 lines cannot be read, 1 records are missing',
    ],
    [
      'a record that is its own parent',
      text(user, snapshot, telemetry, changed(call, { parentUuid: uuidOf(call) })),
      '0 lines cannot be read, 1 records are missing',
    ],
    [
      'a line of nested arrays without end',
      text(user, '['.repeat(200_000), snapshot, telemetry, call),
      '1 lines cannot be read, 0 records are missing',
    ],
    ['an unknown system record behind it', behind({ subtype: 'from_the_future', systemPayload: { a: 1 } })],
    ['a record of an unknown type behind it', behind({ ...says([{ text: 'x' }]), type: 'hologram' })],
    ['a message that is null', odd({ type: 'user', ...says([]), message: null })],
    ['a message that is text', odd({ type: 'user', ...says([]), message: 'x' })],
    ['parts of no form', odd({ type: 'user', ...says([null, 5, 'x', {}, { text: 5 }]) })],
    [
      'calls of no form',
      odd({
        type: 'assistant',
        ...says([{ functionCall: 'x' }, { functionCall: { id: 5, name: null, args: 'x' } }], 'model'),
      }),
    ],
    [
      'responses of no form',
      odd({
        type: 'tool_result',
        ...says([{ functionResponse: 'x' }, { functionResponse: { id: 5 } }]),
        toolCallResult: 'x',
      }),
    ],
    [
      'a compression of no form',
      odd({ subtype: 'chat_compression', systemPayload: { compressedHistory: [null, { role: 'user' }] } }),
    ],
    ['a rewind of no form', odd({ subtype: 'rewind', systemPayload: null })],
    ['a subtype and a time that are numbers', odd({ subtype: 7, timestamp: 5, systemPayload: [] })],
    [
      'usage and ids of no form',
      odd({
        type: 'assistant',
        usageMetadata: 'x',
        providerCallIds: [1],
        ...says([{ text: 'y', thought: 'maybe' }], 'model'),
      }),
    ],
  ];
  const peer = await Peer.start({ home, restore: true });
  const ids = new Map(rows.map(([name]) => [name, randomUUID()]));
  for (const [name, bytes] of rows) {
    const id = ids.get(name) as string;
    writeFileSync(home.file(id), bytes);
    expect(await loadInEveryWay(peer, id, name), name).toBe(true);
    const turn = peer.restore(id);
    (await peer.question()).answer(submit({ 0: 'Red' }));
    expect(await turn, name).toEqual({ stopReason: 'end_turn' });
    const results = appended(home, id, bytes, name).filter(({ type }) => type === 'tool_result');
    expect(results, name).toHaveLength(1);
    expect(results[0].message.parts[0].functionResponse.response.output, name).toContain('Red');
  }
  expect(peer.said().match(/TOOL RESULT ECHO/g)).toHaveLength(rows.length);
  await peer.eof();
  const warnings = peer.stderr.split('\n').filter((line) => line !== '');
  expect(warnings.map((line) => line.replace(/.*\.jsonl is damaged: /, ''))).toEqual(
    rows.flatMap(([, , warning]) => warning ?? []),
  );

  const next = await Peer.start({ home, restore: true });
  for (const [name, id] of ids) {
    expect(await loadInEveryWay(next, id, name), name).toBe(false);
    const cardIds = next.updates(id).flatMap((update) => ('toolCallId' in update ? [update.toolCallId] : []));
    for (const cardId of cardIds) expect(cardId, name).toBeTypeOf('string');
    const last = next.updates(id).findLast((update) => 'toolCallId' in update && update.toolCallId === callId);
    expect(last, name).toMatchObject({ sessionUpdate: 'tool_call_update', status: 'completed' });
  }
});

test('[TR-4, TR-3] a file without a question in it loads too, however little it holds, and takes the next turn', async () => {
  const home = new Home();
  const [user, snapshot, telemetry, call] = danglingLines(home);
  const rows: readonly (readonly [string, Buffer | string])[] = [
    ['nothing', ''],
    ['blank lines', '\n\n \r\n'],
    ['junk', 'junk\nmore junk\n'],
    ['junk without a newline', 'junk'],
    ['NUL bytes alone', Buffer.alloc(5_000)],
    ['a torn first record', user.slice(0, 50)],
    ['a question whose record is torn', text(user, snapshot, telemetry, call).subarray(0, -30)],
    ['JSON that is no record', text('{}', '[]', 'null', '5', '{"uuid":1}', '{"uuid":"a","parentUuid":null}')],
  ];
  const peer = await Peer.start({ home, restore: true });
  const ids = new Map(rows.map(([name]) => [name, randomUUID()]));
  for (const [name, bytes] of rows) {
    const id = ids.get(name) as string;
    writeFileSync(home.file(id), bytes);
    expect(await loadInEveryWay(peer, id, name), name).toBe(false);
    expect(await peer.restore(id), name).toEqual({ stopReason: 'end_turn' });
    expect(await peer.prompt(id, 'hello'), name).toMatchObject({ stopReason: 'end_turn' });
    const types = appended(home, id, Buffer.from(bytes), name).flatMap(({ type }) => (type === 'system' ? [] : [type]));
    expect(types, name).toEqual(['user', 'assistant']);
  }
  await peer.eof();
  const next = await Peer.start({ home, restore: true });
  for (const [name, id] of ids) {
    await next.load(id);
    const texts = next
      .updates(id)
      .flatMap((update) =>
        'content' in update && update.content && 'text' in update.content ? [update.content.text] : [],
      );
    expect(texts.filter((each) => each !== '').slice(-2), name).toEqual(['hello', 'PLAIN REPLY (plain)']);
  }
});
