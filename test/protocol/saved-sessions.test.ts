import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { CWD, Home, Peer, RESTORE, SUPPRESS, submit } from '../support/peer.ts';

const unknown = (sessionId: string) => ({ code: -32002, data: { uri: `session:${sessionId}`, sessionId } });

// biome-ignore lint/suspicious/noExplicitAny: records of every form
const responsesIn = (records: any[]) => records.filter(({ type }) => type === 'tool_result').length;

test('[ACP-2, TR-8] list names the saved sessions of a folder, or of all, the newest first, and nothing else that lies there', async () => {
  const home = new Home();
  const ids = ['c0.dangling', 'a1-single', 'k1-gemini'].map((name) => home.place(name)) as [string, string, string];
  const elsewhere = randomUUID();
  const other = home.file(elsewhere, '/srv/other');
  mkdirSync(dirname(other), { recursive: true });
  writeFileSync(
    other,
    readFileSync(home.file(ids[0]), 'utf8').replaceAll(ids[0], elsewhere).replaceAll(CWD, '/srv/other'),
  );
  for (const [at, file] of [other, ...ids.map((id) => home.file(id))].entries()) utimesSync(file, 1_000, 1_000 + at);
  const folder = dirname(home.file(ids[0]));
  writeFileSync(`${folder}/${ids[0]}.ledger.jsonl`, '{"v":1}\n');
  writeFileSync(`${folder}/${randomUUID()}.jsonl`, '');
  writeFileSync(`${folder}/notes.jsonl`, 'not a session\n');
  mkdirSync(`${folder}/${randomUUID()}.jsonl`);
  symlinkSync(home.file(ids[0]), `${folder}/${randomUUID()}.jsonl`);

  const peer = await Peer.start({ home });
  const { sessions } = await peer.request('session/list', { cwd: CWD });
  expect(sessions).toEqual(
    ids.toReversed().map((sessionId, at) => ({
      sessionId,
      cwd: CWD,
      title: ['[[ask1]] hi', '[[ask1]] please ask', '[[ask1]] ask'][at],
      updatedAt: new Date((1_003 - at) * 1_000).toISOString(),
    })),
  );
  const all = await peer.request('session/list', {});
  expect(all.sessions.map(({ sessionId }: { sessionId: string }) => sessionId)).toEqual([
    ...ids.toReversed(),
    elsewhere,
  ]);
  expect(await peer.request('session/list', { cwd: '/srv/nothing' })).toEqual({ sessions: [] });
});

test.each([
  ['session/close', () => ({})],
  ['qwen/control/session/close', (sessionId: string) => ({ sessionId, closed: true })],
])(
  '[ACP-2, ACP-12] %s ends a live session, its turn too; it is unknown then and can be loaded again',
  async (method, answer) => {
    const peer = await Peer.start({ restore: true });
    const id = await peer.newSession();
    const { turn, asked } = await peer.askIn(id);
    expect(await peer.request(method, { sessionId: id.toUpperCase() })).toEqual(answer(id.toUpperCase()));
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect(asked.signal.aborted).toBe(true);
    await expect(peer.prompt(id, 'hello')).rejects.toMatchObject(unknown(id));
    expect((await peer.load(id))._meta[RESTORE]).toBe(true);
  },
);

test('[ACP-2, TR-6] delete ends a live session and removes its files; what is there no more is deleted already', async () => {
  const peer = await Peer.start({ restore: true });
  const { home } = peer;
  const live = await peer.newSession();
  const { turn } = await peer.askIn(live);
  const saved = home.place('c0.dangling');
  const folder = dirname(home.file(live));
  writeFileSync(`${folder}/${saved}.ledger.jsonl`, '{"v":1}\n');
  for (const sessionId of [live, saved.toUpperCase(), saved, randomUUID()]) {
    expect(await peer.request('session/delete', { sessionId })).toEqual({});
  }
  expect(await turn).toEqual({ stopReason: 'cancelled' });
  expect(readdirSync(folder)).toEqual([]);
  for (const id of [live, saved]) await expect(peer.load(id)).rejects.toMatchObject(unknown(id));

  const target = `${home.path}/precious.jsonl`;
  writeFileSync(target, 'precious');
  const link = randomUUID();
  symlinkSync(target, home.file(link));
  await expect(peer.request('session/delete', { sessionId: link })).rejects.toMatchObject({ code: -32602 });
  expect(readFileSync(target, 'utf8')).toBe('precious');
  expect(existsSync(home.file(link))).toBe(true);
});

test('[ACP-10, LS-4, TR-3, K008] loadUpdates starts nothing, opens nothing, writes nothing, and changes nothing for a session that is live', async () => {
  const peer = await Peer.start({ restore: true });
  const { home } = peer;
  const id = home.place('c0.dangling');
  const before = home.bytes(id);
  const read = async (meta?: object) =>
    await peer.request('qwen/session/loadUpdates', { sessionId: id, cwd: CWD, ...(meta && { _meta: meta }) });
  const cold = await read();
  expect(cold).toEqual({
    updates: expect.any(Array),
    startTime: home.records(id)[0].timestamp,
    lastUpdated: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  expect(cold.updates.at(-1)).toMatchObject({ sessionUpdate: 'tool_call_update', status: 'failed' });
  await expect(peer.restore(id)).rejects.toMatchObject(unknown(id));
  await expect(peer.prompt(id, 'hello')).rejects.toMatchObject(unknown(id));

  await peer.load(id, { [SUPPRESS]: true });
  expect(await read({ [RESTORE]: true })).toEqual(cold);
  expect(await peer.restore(id)).toEqual({ stopReason: 'end_turn' });
  expect((await peer.load(id))._meta[RESTORE]).toBe(true);
  expect(await read()).toEqual(cold);
  const turn = peer.restore(id);
  (await peer.question()).answer(submit({ 0: 'Red' }));
  expect(home.bytes(id)).toEqual(before);
  expect(await turn).toEqual({ stopReason: 'end_turn' });
  expect((await read()).updates).not.toContainEqual(expect.objectContaining({ status: 'failed' }));
});

test("[ACP-12, EL-5] a branch copies the conversation; a suppressed load of it asks nothing, a later one asks, the parent's question stays", async () => {
  const peer = await Peer.start({ restore: true });
  const { home } = peer;
  const parent = home.place('c0.dangling');
  const before = home.bytes(parent);
  await peer.load(parent);
  const branch = async (method: string, name?: string) =>
    await peer.request(method, { sessionId: parent, cwd: CWD, ...(name && { name }) });
  const forked = await branch('qwen/control/session/branch', 'Colours');
  expect(forked).toEqual({
    newSessionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    title: 'Colours(1)',
    displayName: 'Colours(1)',
  });
  const fork = forked.newSessionId as string;
  expect((await branch('_qwen/control/session/branch', 'Colours')).title).toBe('Colours(2)');
  expect(await peer.request('qwen/session/sources/copy', { sessionId: parent, targetSessionId: fork })).toEqual({
    warnings: [],
  });

  const copied = home.records(fork);
  expect(new Set(copied.map(({ sessionId }) => sessionId))).toEqual(new Set([fork]));
  const original = home.records(parent).filter(({ subtype }) => subtype !== 'ui_telemetry');
  expect(copied.slice(0, -1).map(({ message }) => message)).toEqual(original.map(({ message }) => message));
  expect(copied.map(({ parentUuid }) => parentUuid)).toEqual([null, ...copied.slice(0, -1).map(({ uuid }) => uuid)]);

  expect((await peer.load(fork, { [SUPPRESS]: true }))._meta[RESTORE]).toBeUndefined();
  expect(peer.updates(fork).at(-1)).toMatchObject({ sessionUpdate: 'tool_call_update', status: 'failed' });
  expect(await peer.restore(fork)).toEqual({ stopReason: 'end_turn' });
  expect((await peer.load(fork))._meta[RESTORE]).toBe(true);
  const turn = peer.restore(fork);
  const asked = await peer.question();
  expect(asked.params.sessionId).toBe(fork);
  asked.answer(submit({ 0: 'Red' }));
  expect(await turn).toEqual({ stopReason: 'end_turn' });
  expect(responsesIn(home.records(fork))).toBe(1);
  expect(home.bytes(parent)).toEqual(before);
  expect((await peer.load(parent))._meta[RESTORE]).toBe(true);
});

test('[ACP-12, ACP-13] a branch is refused while a turn runs, and leaves nothing behind', async () => {
  const peer = await Peer.start({ restore: true });
  const id = await peer.newSession();
  const { turn, asked } = await peer.askIn(id);
  const branch = () => peer.request('qwen/control/session/branch', { sessionId: id, cwd: CWD });
  await expect(branch()).rejects.toMatchObject({ code: -32602 });
  expect(readdirSync(dirname(peer.home.file(id)))).toEqual([`${id}.jsonl`]);
  asked.answer(submit({ 0: 'Red' }));
  await turn;
  expect((await branch()).newSessionId).not.toBe(id);
});
