import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { thisProcess } from '../../src/session/lock-owner.ts';
import { responseIds } from '../support/evidence.ts';
import { ABOUT_SESSION, Home, Peer, RESTORE, SUPPRESS, submit } from '../support/peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: messages of every form
type Any = any;

const KEYS = { [SUPPRESS]: true };
const OPEN = { kind: 'load', suppressed: false };
const SHUT = { kind: 'load', suppressed: true };
const OPEN_RESUME = { kind: 'resume', suppressed: false };
const SHUT_RESUME = { kind: 'resume', suppressed: true };

/** Requests that are sent in one go, in this order. */
const CROWDS = [
  { name: 'two alike', crowd: [OPEN, OPEN] },
  { name: 'suppressed first', crowd: [SHUT, OPEN] },
  { name: 'suppressed last', crowd: [OPEN, SHUT] },
  { name: 'a load and a suppressed resume', crowd: [OPEN, SHUT_RESUME] },
  { name: 'a suppressed load and a resume', crowd: [SHUT, OPEN_RESUME] },
  { name: 'resumes', crowd: [SHUT_RESUME, OPEN_RESUME, SHUT_RESUME] },
  {
    name: 'many',
    crowd: Array.from({ length: 24 }, (_, at) => [OPEN, SHUT, OPEN_RESUME, SHUT_RESUME, SHUT][at % 5] ?? OPEN),
  },
];

async function sendAll(peer: Peer, id: string, crowd: (typeof CROWDS)[number]['crowd']): Promise<Any[]> {
  return await Promise.all(
    crowd.map(({ kind, suppressed }) =>
      peer.request(`session/${kind}`, {
        sessionId: id,
        cwd: '/srv/project',
        mcpServers: [],
        ...(suppressed && { _meta: KEYS }),
      }),
    ),
  );
}

/** The replays on the wire since `from`: the updates before each response of a load. */
function replays(peer: Peer, from: number): { update: Any; suppressed: boolean }[][] {
  const loads = new Map<unknown, boolean>();
  const found: Any[][] = [];
  let updates: Any[] = [];
  for (const { dir, message } of peer.wire.slice(from) as Any[]) {
    if (dir === 'out' && message.method === 'session/load') loads.set(message.id, message.params._meta !== undefined);
    else if (dir === 'in' && message.method === 'session/update') {
      if (!ABOUT_SESSION.includes(message.params.update.sessionUpdate)) updates.push(message.params.update);
    } else if (dir === 'in' && loads.has(message.id)) {
      found.push(updates.map((update) => ({ update, suppressed: loads.get(message.id) })));
      updates = [];
    }
  }
  expect(updates).toEqual([]);
  return found as Any;
}

async function answersOnce(peer: Peer, id: string): Promise<void> {
  const turn = peer.restore(id);
  (await peer.question()).answer(submit({ 0: 'Blue' }));
  expect(await turn).toEqual({ stopReason: 'end_turn' });
  expect(responseIds(peer.home.records(id))).toHaveLength(1);
}

for (const live of [false, true]) {
  test(`[LS-7, LS-2, LS-3, ACP-3] loads and resumes of one ${live ? 'live' : 'saved'} session at once get what their own keys say`, async () => {
    const peer = await Peer.start({ restore: true });
    for (const { name, crowd } of CROWDS) {
      const id = peer.home.place('c0.dangling', randomUUID());
      const onDisk = peer.home.bytes(id);
      if (live) await peer.load(id, KEYS);
      const from = peer.wire.length;
      const results = await sendAll(peer, id, crowd);
      expect(
        results.map(({ _meta }) => _meta?.[RESTORE] === true),
        name,
      ).toEqual(crowd.map(({ suppressed }) => !suppressed));
      const shown = replays(peer, from);
      expect(shown, name).toHaveLength(crowd.filter(({ kind }) => kind === 'load').length);
      for (const replay of shown) {
        const [first] = replay;
        expect(
          replay.map(({ update }) => [update.sessionUpdate, update.status]),
          name,
        ).toEqual([
          ['user_message_chunk', undefined],
          ['agent_message_chunk', undefined],
          ['tool_call', 'in_progress'],
          ...(first?.suppressed ? [['tool_call_update', 'failed']] : []),
        ]);
      }
      expect(peer.home.bytes(id).equals(onDisk), name).toBe(true);
      await answersOnce(peer, id);
    }
  });
}

test('[LS-7, TR-7] loads at once of a session that another process wrote to read it anew once, and none closes what another opened', async () => {
  const home = new Home();
  const [reader, writer] = [await Peer.start({ home, restore: true }), await Peer.start({ home, restore: true })];
  for (const { name, crowd } of CROWDS) {
    const id = await writer.newSession();
    await writer.prompt(id, 'hello');
    await reader.load(id);
    await writer.askIn(id);
    await writer.request('session/close', { sessionId: id });
    const results = await sendAll(reader, id, crowd);
    expect(
      results.map(({ _meta }) => _meta?.[RESTORE] === true),
      name,
    ).toEqual(crowd.map(({ suppressed }) => !suppressed));
    await answersOnce(reader, id);
  }
});

test('[LS-7, TR-7] a prompt that is sent together with loads of an idle session runs, and the session goes on', async () => {
  const peer = await Peer.start({ restore: true });
  const id = await peer.newSession();
  for (let round = 0; round < 5; round++) {
    const [{ stopReason }] = await Promise.all([
      peer.prompt(id, 'hello'),
      sendAll(peer, id, [OPEN, SHUT, OPEN_RESUME]),
    ]);
    expect(stopReason).toBe('end_turn');
    const all = await Promise.all([sendAll(peer, id, [OPEN, SHUT_RESUME]), peer.prompt(id, 'hello again')]);
    expect(all[1].stopReason).toBe('end_turn');
  }
});

test('[LS-7, TR-7, ACP-2] in a session that closes nothing begins, and a load behind the close finds its last records', async () => {
  const peer = await Peer.start();
  for (let round = 0; round < 5; round++) {
    const id = await peer.newSession();
    const { turn } = await peer.askIn(id);
    const [closed, late, loaded, branched] = await Promise.allSettled([
      peer.request('session/close', { sessionId: id }),
      peer.prompt(id, 'too late'),
      peer.load(id),
      peer.request('qwen/control/session/branch', { sessionId: id, cwd: '/srv/project' }),
    ]);
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect(closed).toMatchObject({ status: 'fulfilled' });
    expect(late).toMatchObject({ status: 'rejected', reason: { code: -32002 } });
    expect(loaded).toMatchObject({ status: 'fulfilled' });
    expect(branched).toMatchObject({ status: 'fulfilled' });
    expect(responseIds(peer.home.records(id))).toHaveLength(1);
    expect((await peer.prompt(id, 'hello')).stopReason).toBe('end_turn');
  }
});

test('[LS-7, TR-7] a load behind a close that waits for a lock waits with it', async () => {
  const peer = await Peer.start();
  const id = await peer.newSession();
  await peer.askIn(id);
  const lock = `${peer.home.file(id)}.lock`;
  writeFileSync(lock, JSON.stringify(thisProcess()));
  let loaded = false;
  const closing = peer.request('session/close', { sessionId: id });
  const loading = peer.load(id).finally(() => {
    loaded = true;
  });
  for (let times = 0; times < 50; times++) await peer.roundTrip();
  expect(loaded).toBe(false);
  rmSync(lock);
  await Promise.all([closing, loading]);
  expect(responseIds(peer.home.records(id))).toHaveLength(1);
  expect((await peer.prompt(id, 'hello')).stopReason).toBe('end_turn');
});

test('[LS-7, ACP-2] a load behind a delete that waits for a lock finds no session, and leaves none', async () => {
  const peer = await Peer.start();
  for (const live of [true, false]) {
    const id = await peer.newSession();
    await peer.prompt(id, 'hello');
    if (!live) await peer.request('session/close', { sessionId: id });
    const lock = `${peer.home.file(id)}.lock`;
    writeFileSync(lock, JSON.stringify(thisProcess()));
    const deleting = peer.request('session/delete', { sessionId: id });
    const loading = peer.load(id);
    loading.catch(() => {});
    for (let times = 0; times < 50; times++) await peer.roundTrip();
    rmSync(lock);
    expect(await deleting).toEqual({});
    await expect(loading).rejects.toMatchObject({ code: -32002 });
    await expect(peer.prompt(id, 'hello')).rejects.toMatchObject({ code: -32002 });
    expect(peer.home.bytes(id)).toHaveLength(0);
  }
});

test('[ACP-2, ACP-12] of sessions that are to be created under one id at once, one is', async () => {
  const peer = await Peer.start();
  for (let round = 0; round < 5; round++) {
    const params = { cwd: '/srv/project', mcpServers: [], _meta: { 'qwen-code/sessionId': randomUUID() } };
    const created = await Promise.allSettled(Array.from({ length: 8 }, () => peer.request('session/new', params)));
    expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const { status, reason } of created as Any[]) if (status === 'rejected') expect(reason.code).toBe(-32602);
  }
});
