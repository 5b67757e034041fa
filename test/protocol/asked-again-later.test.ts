import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { cards, kinds, responseIds } from '../support/evidence.ts';
import { type Asked, Peer, RESTORE, SUPPRESS, submit, unattended } from '../support/peer.ts';

interface Waiting {
  readonly id: string;
  readonly turn: Promise<{ stopReason: string }>;
  readonly asked: Asked;
}

async function firstAsked(peer: Peer): Promise<Waiting> {
  const id = await peer.newSession();
  return { id, ...(await peer.askIn(id)) };
}

async function askedAgain(peer: Peer): Promise<Waiting> {
  const id = peer.home.place('c0.dangling', randomUUID());
  await peer.load(id);
  const turn = peer.restore(id);
  return { id, turn, asked: await peer.question() };
}

const cancel = async (peer: Peer, { id }: Waiting) => await peer.notify('session/cancel', { sessionId: id });
const reply =
  (reason: string) =>
  async (_: Peer, { asked }: Waiting) =>
    asked.answer(unattended(reason));

/** How a wait ends without anybody having decided. */
const ENDS = [
  { name: 'timeout', ask: firstAsked, end: reply('timeout'), stopReason: 'end_turn' },
  { name: 'session_closed', ask: firstAsked, end: reply('session_closed'), stopReason: 'end_turn' },
  { name: 'timeout, again', ask: askedAgain, end: reply('timeout'), stopReason: 'end_turn' },
  { name: 'session_closed, again', ask: askedAgain, end: reply('session_closed'), stopReason: 'end_turn' },
  { name: 'session/cancel of an asked-again one', ask: askedAgain, end: cancel, stopReason: 'cancelled' },
];

test('[BT-10, RS-6, LS-3] after a wait that nobody ended a later load in the same process asks again, as often as it happens', async () => {
  const peer = await Peer.start({ restore: true });
  for (const { name, ask, end, stopReason } of ENDS) {
    const waiting = await ask(peer);
    const { id, asked } = waiting;
    const callId = asked.params.toolCall.toolCallId;
    let { turn } = waiting;
    await end(peer, waiting);
    expect(await turn, name).toEqual({ stopReason });
    expect(cards(peer, id).at(-1), name).toBe('tool_call_update failed');

    for (const attach of [() => peer.load(id), () => peer.resume(id)]) {
      const from = peer.updates(id).length;
      expect((await attach())._meta[RESTORE], name).toBe(true);
      expect(cards(peer, id, from), name).not.toContain('tool_call_update failed');
      turn = peer.restore(id);
      const again = await peer.question();
      expect(again.params.toolCall.toolCallId, name).toBe(callId);
      again.answer(unattended('timeout'));
      expect(await turn, name).toEqual({ stopReason: 'end_turn' });
    }
    expect(responseIds(peer.home.records(id)), name).toEqual([]);

    await peer.load(id);
    turn = peer.restore(id);
    (await peer.question()).answer(submit({ 0: 'Blue' }));
    expect(await turn, name).toEqual({ stopReason: 'end_turn' });
    expect(responseIds(peer.home.records(id)), name).toEqual([callId]);
    expect((await peer.load(id))._meta, name).not.toHaveProperty(RESTORE);
  }
});

test('[BT-10, LS-2, RS-1] a suppressed load alone lets nothing be asked; a later one that is not suppressed does', async () => {
  const peer = await Peer.start({ restore: true });
  for (const attach of [peer.load.bind(peer), peer.resume.bind(peer)]) {
    const id = peer.home.place('c0.dangling', randomUUID());
    const onDisk = peer.home.bytes(id);
    for (let times = 0; times < 2; times++) {
      expect((await attach(id, { [SUPPRESS]: true }))._meta).not.toHaveProperty(RESTORE);
      expect(await peer.restore(id)).toEqual({ stopReason: 'end_turn' });
    }
    await peer.roundTrip();
    expect(peer.unanswered).toBe(0);
    expect(peer.home.bytes(id).equals(onDisk)).toBe(true);
    expect((await attach(id))._meta[RESTORE]).toBe(true);
    const turn = peer.restore(id);
    (await peer.question()).answer(submit({ 0: 'Blue' }));
    expect(await turn).toEqual({ stopReason: 'end_turn' });
    expect(kinds(peer.home.records(id)).slice(-2)).toEqual(['tool_result', 'assistant']);
  }
});

test('[RS-1, BT-10] a question that no load of this process has opened is not asked by a restore prompt', async () => {
  const peer = await Peer.start({ restore: true });
  const { id, asked, turn } = await firstAsked(peer);
  asked.answer(unattended('timeout'));
  await turn;
  expect(await peer.restore(id)).toEqual({ stopReason: 'end_turn' });
  await peer.roundTrip();
  expect(peer.unanswered).toBe(0);
});
