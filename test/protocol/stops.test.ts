import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { cards, kinds, responseIds, sent } from '../support/evidence.ts';
import { type Asked, Home, Peer, RESTORE, submit } from '../support/peer.ts';

const CLEAN = { code: 0, signal: null };

/** How a process can be stopped, and what it leaves with the switch off. What a client that vanishes leaves then is a race. */
const PROCESS_STOPS = [
  { how: 'SIGTERM', stop: (peer: Peer) => peer.kill('SIGTERM'), exit: CLEAN, off: 'persisted', seen: true },
  {
    how: 'SIGINT',
    stop: (peer: Peer) => peer.kill('SIGINT'),
    exit: { ...CLEAN, code: 130 },
    off: 'persisted',
    seen: true,
  },
  { how: 'SIGHUP', stop: (peer: Peer) => peer.kill('SIGHUP'), exit: CLEAN, off: 'nothing', seen: true },
  { how: 'EOF', stop: (peer: Peer) => peer.eof(), exit: CLEAN, off: 'persisted', seen: true },
  { how: 'a client that vanishes', stop: (peer: Peer) => peer.vanish(), exit: CLEAN, seen: false },
];

/** A question that waits in a session, and what is on disk of it. */
interface Waiting {
  readonly id: string;
  readonly callId: string;
  readonly turn: Promise<{ stopReason: string }>;
  readonly asked: Asked;
  readonly onDisk: Buffer;
}

async function firstAsked(peer: Peer, text?: string): Promise<Waiting> {
  const id = await peer.newSession();
  return waiting(peer, id, await peer.askIn(id, text));
}

async function askedAgain(peer: Peer, recording = 'c0.dangling'): Promise<Waiting> {
  const id = peer.home.place(recording, randomUUID());
  await peer.load(id);
  const turn = peer.restore(id);
  turn.catch(() => {});
  return waiting(peer, id, { turn, asked: await peer.question() });
}

function waiting(peer: Peer, id: string, { turn, asked }: Pick<Waiting, 'turn' | 'asked'>): Waiting {
  return { id, callId: asked.params.toolCall.toolCallId, turn, asked, onDisk: peer.home.bytes(id) };
}

/** Loads the session, answers what it asks, and checks that the turn went on where it had stopped. */
async function completes(peer: Peer, { id, callId, onDisk }: Waiting): Promise<void> {
  const before = peer.home.records(id);
  expect((await peer.load(id))._meta[RESTORE]).toBe(true);
  expect(peer.home.bytes(id).equals(onDisk)).toBe(true);
  const turn = peer.restore(id);
  const asked = await peer.question();
  expect(asked.params.toolCall.toolCallId).toBe(callId);
  asked.answer(submit({ 0: 'Blue' }));
  expect(await turn).toEqual({ stopReason: 'end_turn' });
  const added = peer.home.records(id).slice(before.length);
  expect(kinds(added)).toEqual(['tool_result', 'assistant']);
  expect(responseIds(added)).toEqual([callId]);
  expect(added[0].parentUuid).toBe(before.at(-1).uuid);
}

test('[BT-1, RS-6, ACP-9, TR-3, K001, K019] with the switch on a process that is stopped while questions wait writes nothing, and the next asks them again', async () => {
  const home = new Home();
  const left: Waiting[] = [];
  for (const { how, stop, exit, seen } of PROCESS_STOPS) {
    const peer = await Peer.start({ home, restore: true });
    const questions = [await firstAsked(peer), await askedAgain(peer)];
    const from = peer.wire.length;
    const closed = once(peer.child, 'close');
    const started = performance.now();
    expect(await stop(peer), how).toEqual(exit);
    expect(performance.now() - started, how).toBeLessThan(2_000);
    // The pipes are closed too: no process of its own outlives it.
    await closed;
    for (const { id, onDisk } of questions) expect(home.bytes(id).equals(onDisk), how).toBe(true);
    expect(peer.stderr, how).toBe('');
    left.push(...questions);
    if (!seen) continue;
    for (const { turn, id } of questions) {
      expect(await turn, how).toEqual({ stopReason: 'cancelled' });
      expect(cards(peer, id).at(-1), how).toBe('tool_call_update failed');
    }
    const withdrawn = sent(peer, '$/cancel_request', from).map(({ params }) => params.requestId);
    expect(withdrawn, how).toEqual(questions.map(({ asked }) => asked.id));
  }
  const next = await Peer.start({ home, restore: true });
  for (const question of left) await completes(next, question);
});

test('[BT-1, RS-6, ACP-9] a client that only stops reading for good ends a tracked turn as nobody, and nothing is written of it', async () => {
  const peer = await Peer.start({ restore: true });
  const id = await peer.newSession();
  const turn = peer.prompt(id, '[[ask1]]', { 'qwen-code/invocation': { promptId: 'prompt-1' } });
  turn.catch(() => {});
  await peer.question();
  const onDisk = peer.home.bytes(id);
  peer.child.stdout.destroy();
  // Its answer meets the broken pipe.
  peer.roundTrip().catch(() => {});
  expect(await peer.exited).toEqual(CLEAN);
  expect(peer.home.bytes(id).equals(onDisk)).toBe(true);
  expect(peer.stderr).toBe('');
});

test('[RS-6, ACP-9, LS-5] with the switch off a stopped process leaves what the reference was seen to leave', async () => {
  const home = new Home();
  for (const { how, stop, exit, off } of PROCESS_STOPS.filter(({ off }) => off !== undefined)) {
    const peer = await Peer.start({ home });
    const { id, callId, onDisk } = await firstAsked(peer);
    const before = home.records(id).length;
    expect(await stop(peer), how).toEqual(exit);
    const added = home.records(id).slice(before);
    expect(responseIds(added), how).toEqual(off === 'persisted' ? [callId] : []);
    if (off === 'nothing') expect(home.bytes(id).equals(onDisk), how).toBe(true);
    else expect(added.at(-1).toolCallResult, how).toMatchObject({ callId, status: 'cancelled' });
  }
});

const CLOSES = ['session/close', 'qwen/control/session/close', '_qwen/control/session/close'];

test('[BT-1, RS-6, BT-10, ACP-12, K001] closing a session while a question waits writes nothing, and the same process asks it again', async () => {
  const peer = await Peer.start({ restore: true });
  for (const method of CLOSES) {
    for (const question of [await firstAsked(peer), await askedAgain(peer)]) {
      const { id, turn, asked, onDisk } = question;
      const closed = await peer.request(method, { sessionId: id });
      expect(closed, method).toEqual(method === 'session/close' ? {} : { sessionId: id, closed: true });
      expect(await turn).toEqual({ stopReason: 'cancelled' });
      expect(asked.signal.aborted).toBe(true);
      expect(cards(peer, id).at(-1)).toBe('tool_call_update failed');
      expect(peer.home.bytes(id).equals(onDisk)).toBe(true);
      await expect(peer.prompt(id, 'anyone there?')).rejects.toMatchObject({ code: -32002 });
      await completes(peer, question);
    }
  }
  expect(await peer.eof()).toEqual(CLEAN);
});

test('[RS-6, LS-5] with the switch off closing a session closes its question as the reference was seen to', async () => {
  const peer = await Peer.start();
  for (const method of CLOSES) {
    const { id, callId, turn } = await firstAsked(peer);
    await peer.request(method, { sessionId: id });
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect(peer.home.records(id).at(-1).toolCallResult).toMatchObject({ callId, status: 'cancelled' });
  }
});

test('[BT-1, RS-6, RS-10] of two questions of which one was answered, both are asked again after a stop', async () => {
  const home = new Home();
  const stops = [
    (peer: Peer) => peer.kill('SIGTERM'),
    (peer: Peer, id: string) => peer.request('session/close', { sessionId: id }),
  ];
  for (const stop of stops) {
    const peer = await Peer.start({ home, restore: true });
    for (const ask of [() => firstAsked(peer, '[[asktwice]]'), () => askedAgain(peer, 'e0-two.dangling')]) {
      const { id, callId, asked, onDisk } = await ask();
      asked.answer(submit({ 0: 'Red' }));
      const second = (await peer.question()).params.toolCall.toolCallId;
      await stop(peer, id);
      expect(home.bytes(id).equals(onDisk)).toBe(true);

      const next = peer.child.exitCode === null ? peer : await Peer.start({ home, restore: true });
      expect((await next.load(id))._meta[RESTORE]).toBe(true);
      const turn = next.restore(id);
      for (const expected of [callId, second]) {
        const again = await next.question();
        expect(again.params.toolCall.toolCallId).toBe(expected);
        again.answer(submit({ 0: 'Red' }));
      }
      expect(await turn).toEqual({ stopReason: 'end_turn' });
      expect(responseIds(home.records(id))).toEqual([callId, second]);
      if (next !== peer) break;
    }
  }
});
