import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { thisProcess } from '../../src/session/lock-owner.ts';
import { kinds, responseIds, sent } from '../support/evidence.ts';
import { CWD, Home, Peer, RESTORE, spawnChild } from '../support/peer.ts';

const CLEAN = { code: 0, signal: null };
const STOPS = [
  { stop: (peer: Peer) => peer.kill('SIGTERM'), seen: true },
  { stop: (peer: Peer) => peer.eof(), seen: true },
  { stop: (peer: Peer) => peer.vanish(), seen: false },
];

async function stopsInTime(run: () => Promise<unknown>): Promise<unknown> {
  const started = performance.now();
  const exit = await run();
  expect(performance.now() - started).toBeLessThan(2_000);
  return exit;
}

test('[ACP-9, CLI-4] a child that has only just started, or idles, ends cleanly', async () => {
  for (const stop of [
    (peer: Peer) => peer.kill('SIGTERM'),
    (peer: Peer) => peer.kill('SIGHUP'),
    (peer: Peer) => peer.eof(),
  ]) {
    const peer = await Peer.start({ initialize: null });
    await peer.roundTrip();
    expect(await stopsInTime(() => stop(peer))).toEqual(CLEAN);
    expect(peer.stderr).toBe('');
  }
  const idle = await Peer.start();
  await idle.prompt(await idle.newSession(), 'hello');
  expect(await stopsInTime(() => idle.kill('SIGTERM'))).toEqual(CLEAN);
});

test('[ACP-9, RS-8, TR-3, K085] a stop in the middle of streamed text ends the turn; the next process goes on with the prompt', async () => {
  const home = new Home();
  for (const { stop, seen } of STOPS) {
    const peer = await Peer.start({ home, restore: true });
    const id = await peer.newSession();
    const turn = peer.prompt(id, '[[stream]]');
    turn.catch(() => {});
    await peer.until(() => peer.said().includes('some words.'));
    const onDisk = home.bytes(id);
    expect(await stopsInTime(() => stop(peer))).toEqual(CLEAN);
    if (seen) expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect(home.bytes(id).equals(onDisk)).toBe(true);

    const next = await Peer.start({ home, restore: true, script: { rules: [{ steps: [{ text: 'all of it' }] }] } });
    await next.load(id);
    const verdict = await next.request('qwen/control/session/continue', { sessionId: id });
    expect(verdict).toEqual({ accepted: true, interruption: 'interrupted_prompt' });
    const goOn = { sessionId: id, prompt: [], _meta: { 'qwen.daemon.continueLastTurn': true } };
    expect((await next.request('session/prompt', goOn)).stopReason).toBe('end_turn');
    expect(kinds(home.records(id)).filter((kind) => kind === 'user')).toHaveLength(1);
    expect(home.records(id).findLast(({ type }) => type === 'assistant').message.parts).toEqual([
      { text: 'all of it' },
    ]);
    await next.eof();
  }
});

/** A transcript of many exchanges that ends in a question. */
function longTranscript(home: Home, exchanges: number): string {
  const id = home.place('c0.dangling', randomUUID());
  const tail = home.records(id);
  const text = 'x'.repeat(10_000);
  let parentUuid: string | null = null;
  const records = [];
  for (let at = 0; at < exchanges; at++) {
    for (const [type, role] of [
      ['user', 'user'],
      ['assistant', 'model'],
    ]) {
      const uuid: string = randomUUID();
      records.push({ ...tail[0], uuid, parentUuid, type, message: { role, parts: [{ text: `${at} ${text}` }] } });
      parentUuid = uuid;
    }
  }
  home.write(id, [...records, { ...tail[0], parentUuid }, ...tail.slice(1)]);
  return id;
}

test('[ACP-9, TR-3] a stop in the middle of a long replay ends the process in time, whether the client reads or not', async () => {
  const home = new Home();
  const id = longTranscript(home, 150);
  const onDisk = home.bytes(id);
  for (const { stop } of STOPS) {
    const peer = await Peer.start({ home, restore: true });
    const load = peer.load(id).catch(() => undefined);
    await once(peer.child.stdout, 'data');
    expect(await stopsInTime(() => stop(peer))).toMatchObject(CLEAN);
    await load;
    expect(home.bytes(id).equals(onDisk)).toBe(true);
  }
  const deaf = spawnChild(home, { restore: true });
  const params = { sessionId: id, cwd: CWD, mcpServers: [] };
  deaf.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'session/load', params })}\n`);
  await once(deaf.stdout, 'readable');
  const exited = once(deaf, 'exit');
  deaf.kill('SIGTERM');
  expect(await stopsInTime(() => exited)).toEqual([0, null]);
  const next = await Peer.start({ home, restore: true });
  expect((await next.resume(id))._meta[RESTORE]).toBe(true);
});

test('[ACP-9, TR-7] a stop does not wait for a transcript that another process keeps locked, and a further signal changes nothing', async () => {
  const stopped = async (further: NodeJS.Signals) => {
    const peer = await Peer.start();
    const id = await peer.newSession();
    await peer.askIn(id);
    writeFileSync(`${peer.home.file(id)}.lock`, JSON.stringify(thisProcess()));
    const exit = await stopsInTime(async () => {
      peer.child.kill('SIGTERM');
      await peer.until(() => sent(peer, '$/cancel_request').length > 0);
      return await peer.kill(further);
    });
    expect(exit, further).toEqual(CLEAN);
    expect(responseIds(peer.home.records(id)), further).toEqual([]);
  };
  await Promise.all([stopped('SIGTERM'), stopped('SIGINT')]);
});

test('[ACP-9] a client that closes its ends while it is written to ends the child, which writes nothing more', async () => {
  const script = { rules: [{ steps: [{ text: 'word ', repeat: 1_000_000 }] }] };
  const peer = await Peer.start({ restore: true, script });
  const id = (await peer.request('session/new', { cwd: CWD, mcpServers: [] })).sessionId;
  peer.prompt(id, 'talk').catch(() => {});
  await peer.until(() => peer.said().includes('word'));
  peer.child.stdout.destroy();
  // Its input stays open: only the broken pipe tells it.
  expect(await stopsInTime(() => peer.exited)).toEqual(CLEAN);
});
