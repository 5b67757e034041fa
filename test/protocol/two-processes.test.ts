import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { thisProcess } from '../../src/session/lock-owner.ts';
import { Home, Peer, submit } from '../support/peer.ts';

const CHANGED = expect.objectContaining({ code: -32021, data: { code: 'session_transcript_changed' } });

// biome-ignore lint/suspicious/noExplicitAny: records of every form
function responses(records: any[]): string[] {
  return records.flatMap(({ message }) =>
    // biome-ignore lint/suspicious/noExplicitAny: as above
    (message?.parts ?? []).flatMap(({ functionResponse }: any) => functionResponse?.id ?? []),
  );
}

/** A dangling question under a session id of its own. */
function placeDangling(home: Home): string {
  const recorded = home.place('c0.dangling');
  const id = randomUUID();
  writeFileSync(home.file(id), home.bytes(recorded).toString('utf8').replaceAll(recorded, id));
  return id;
}

test('[TR-7, TR-5, K064] of two processes that ask the same question only one writes the answer; the other fails and can load anew', async () => {
  const home = new Home();
  const id = home.place('c0.dangling');
  const peers = await Promise.all([Peer.start({ home, restore: true }), Peer.start({ home, restore: true })]);
  const turns = [];
  for (const peer of peers) {
    await peer.load(id);
    const turn = peer.restore(id);
    const asked = await peer.question();
    turns.push({ peer, turn, asked });
  }
  const ids = turns.map(({ asked }) => asked.id);
  expect(new Set(ids).size).toBe(2);
  expect(readdirSync(dirname(home.file(id)))).toEqual([`${id}.jsonl`]);

  for (const [at, { asked }] of turns.entries()) asked.answer(submit({ 0: ['Red', 'Blue'][at] }));
  const ends = await Promise.allSettled(turns.map(({ turn }) => turn));
  const winner = ends.findIndex(({ status }) => status === 'fulfilled');
  const loser = 1 - winner;
  expect(ends[winner]).toMatchObject({ value: { stopReason: 'end_turn' } });
  expect(ends[loser]).toMatchObject({ status: 'rejected', reason: CHANGED });
  expect(responses(home.records(id))).toHaveLength(1);

  const [won, lost] = [peers[winner] as Peer, peers[loser] as Peer];
  const written = home.bytes(id);
  await expect(lost.prompt(id, 'hello')).rejects.toEqual(CHANGED);
  expect(home.bytes(id)).toEqual(written);
  expect((await lost.load(id))._meta).toEqual({ hasRunningBackgroundTasks: false });
  expect(await lost.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' });
  await expect(won.prompt(id, 'hello')).rejects.toEqual(CHANGED);
  await won.resume(id);
  expect(await won.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' });

  const uuids = home.records(id).map(({ uuid }) => uuid);
  expect(home.records(id).map(({ parentUuid }) => parentUuid)).toEqual([null, ...uuids.slice(0, -1)]);
});

test('[TR-7, RS-1] what another process has answered since the load is not asked again', async () => {
  const home = new Home();
  const id = home.place('c0.dangling');
  const [late, first] = [await Peer.start({ home, restore: true }), await Peer.start({ home, restore: true })];
  for (const peer of [late, first]) await peer.load(id);
  const turn = first.restore(id);
  (await first.question()).answer(submit({ 0: 'Red' }));
  await turn;

  const written = home.bytes(id);
  await expect(late.restore(id)).rejects.toEqual(CHANGED);
  expect(late.unanswered).toBe(0);
  expect(home.bytes(id)).toEqual(written);
  expect((await late.load(id))._meta).toEqual({ hasRunningBackgroundTasks: false });
  expect(await late.restore(id)).toEqual({ stopReason: 'end_turn' });
});

test.each<[string, (file: string) => void, 'asked again' | 'gone' | 'unknown']>([
  ['was cut inside its last record', (file) => truncateSync(file, readFileSync(file).length - 20), 'gone'],
  ['was replaced by an equal one', replace, 'asked again'],
  ['was deleted', unlinkSync, 'unknown'],
  ['got a record more', (file) => appendFileSync(file, otherRecord(file)), 'gone'],
  ['was changed in place without a change of its length', (file) => overwriteEnd(file), 'gone'],
])(
  '[TR-7, TR-3] nothing is written to a file that %s while the question waited; the next load reads it anew',
  async (_, change, next) => {
    const home = new Home();
    const peer = await Peer.start({ home, restore: true });
    const firstAsked = await peer.newSession();
    const live = await peer.askIn(firstAsked);
    const restored = placeDangling(home);
    await peer.load(restored);
    const again = { turn: peer.restore(restored), asked: await peer.question() };
    again.turn.catch(() => {});
    for (const [id, { turn, asked }] of [
      [firstAsked, live],
      [restored, again],
    ] as const) {
      change(home.file(id));
      const changed = home.bytes(id);
      asked.answer(submit({ 0: 'Red' }));
      await expect(turn).rejects.toEqual(CHANGED);
      expect(home.bytes(id)).toEqual(changed);
      expect(peer.said()).not.toContain('TOOL RESULT ECHO');
      const { toolCallId } = asked.params.toolCall;
      expect(peer.updates(id).at(-1)).toMatchObject({
        sessionUpdate: 'tool_call_update',
        toolCallId,
        status: 'failed',
      });
    }
    for (const id of [firstAsked, restored]) {
      if (next === 'unknown') {
        await expect(peer.load(id)).rejects.toMatchObject({
          code: -32002,
          data: { uri: `session:${id}`, sessionId: id },
        });
        continue;
      }
      const hint = (await peer.load(id))._meta['qwen.daemon.restoreAskUserQuestion'];
      expect(hint).toBe(next === 'asked again' ? true : undefined);
      if (next !== 'asked again') continue;
      const turn = peer.restore(id);
      (await peer.question()).answer(submit({ 0: 'Blue' }));
      expect(await turn).toEqual({ stopReason: 'end_turn' });
      expect(responses(home.records(id))).toHaveLength(1);
    }
  },
);

test("[TR-7] a dead owner's lock is taken over; a live owner's is respected by writers and ignored by loads", async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const id = placeDangling(home);
  const lock = `${home.file(id)}.lock`;
  writeFileSync(lock, JSON.stringify({ ...thisProcess(), pid: await deadPid() }));
  await peer.load(id);
  const turn = peer.restore(id);
  const asked = await peer.question();
  asked.answer(submit({ 0: 'Red' }));
  expect(await turn).toEqual({ stopReason: 'end_turn' });
  expect(responses(home.records(id))).toHaveLength(1);
  expect(existsSync(lock)).toBe(false);

  writeFileSync(lock, JSON.stringify(thisProcess()));
  const before = home.bytes(id);
  await peer.load(id);
  await expect(peer.prompt(id, 'hello')).rejects.toMatchObject({
    code: -32603,
    message: expect.stringContaining(`process ${process.pid} on ${hostname()}`),
    data: { code: 'session_transcript_busy' },
  });
  expect(home.bytes(id)).toEqual(before);
  unlinkSync(lock);
  expect(await peer.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' });
});

/** An inode that is freed may be given out again at once, so the new file is there before the old one goes. */
function replace(file: string): void {
  writeFileSync(`${file}.new`, readFileSync(file));
  renameSync(`${file}.new`, file);
}

function otherRecord(file: string): string {
  const last = JSON.parse(readFileSync(file, 'utf8').trimEnd().split('\n').at(-1) as string);
  const message = { role: 'user', parts: [{ text: 'from elsewhere' }] };
  return `${JSON.stringify({ uuid: randomUUID(), parentUuid: last.uuid, sessionId: last.sessionId, timestamp: last.timestamp, type: 'user', message })}\n`;
}

function overwriteEnd(file: string): void {
  const bytes = readFileSync(file);
  bytes.fill('x', bytes.length - 30, bytes.length - 1);
  writeFileSync(file, bytes);
}

async function deadPid(): Promise<number> {
  return await new Promise((resolve) => {
    const child = execFile(process.execPath, ['-e', '0'], () => resolve(child.pid as number));
  });
}
