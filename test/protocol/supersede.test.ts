import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { answerTo, callIds, kinds, responseIds, sent } from '../support/evidence.ts';
import { Home, Peer, RESTORE, submit } from '../support/peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: messages of every form
type Any = any;

const CANCELLED_TURN = { stopReason: 'cancelled' };

interface Running {
  readonly id: string;
  readonly turn: Promise<{ stopReason: string }>;
}

async function streaming(peer: Peer): Promise<Running> {
  const id = await peer.newSession();
  const from = peer.said().length;
  const turn = peer.prompt(id, '[[stream]]');
  await peer.until(() => peer.said().slice(from).includes('some words.'));
  return { id, turn };
}

async function firstAsked(peer: Peer): Promise<Running> {
  const id = await peer.newSession();
  return { id, ...(await peer.askIn(id)) };
}

async function askedAgain(peer: Peer): Promise<Running> {
  const id = peer.home.place('c0.dangling', randomUUID());
  await peer.load(id);
  const turn = peer.restore(id);
  await peer.question();
  return { id, turn };
}

/** What runs when the next prompt comes, and what is on disk from its end on to that prompt's own records. */
const RUNNING = [
  { name: 'streamed text', start: streaming, restore: true, between: ['assistant'] },
  { name: 'a first-asked question', start: firstAsked, restore: true, between: ['tool_result'] },
  { name: 'a first-asked question, switch off', start: firstAsked, restore: false, between: ['tool_result'] },
  { name: 'a question that was asked again', start: askedAgain, restore: true, between: ['tool_result'] },
];
const PLAIN_TURN = ['user', 'system/file_history_snapshot', 'assistant', 'system/branch_checkpoint'];

/** Where on the wire the update with this text is. */
const saidAt = (peer: Peer, text: string, from: number) =>
  peer.wire.findIndex(({ message }: Any, at) => at >= from && message.params?.update?.content?.text?.includes(text));

test('[ACP-8, RS-9, BT-5, K078] the next ordinary prompt ends what runs, and begins only after that is answered', async () => {
  for (const { name, start, restore, between } of RUNNING) {
    const peer = await Peer.start({ restore });
    const { id, turn } = await start(peer);
    const before = peer.home.records(id).length;
    const from = peer.wire.length;
    expect(await peer.prompt(id, 'hello'), name).toMatchObject({ stopReason: 'end_turn' });
    expect(await turn, name).toEqual(CANCELLED_TURN);
    expect(kinds(peer.home.records(id).slice(before)), name).toEqual([...between, ...PLAIN_TURN]);
    expect(responseIds(peer.home.records(id)), name).toEqual(callIds(peer.home.records(id)));
    expect(sent(peer, '$/cancel_request', from), name).toHaveLength(name === 'streamed text' ? 0 : 1);
    const first = answerTo(peer, 'session/prompt', -2);
    expect(first.message.result, name).toEqual(CANCELLED_TURN);
    expect(first.at, name).toBeLessThan(saidAt(peer, 'PLAIN REPLY', from));
    expect((await peer.load(id))._meta ?? {}, name).not.toHaveProperty(RESTORE);
  }
});

test('[ACP-8] of three prompts in a row only the last one runs to its end', async () => {
  const peer = await Peer.start({ restore: true });
  for (const { name, start } of RUNNING.filter(({ restore }) => restore)) {
    const { id, turn } = await start(peer);
    const from = peer.updates(id).length;
    const turns = [turn, ...['[[stream]] second', '[[stream]] third', 'hello'].map((text) => peer.prompt(id, text))];
    const ends = (await Promise.all(turns)).map(({ stopReason }) => stopReason);
    expect(ends, name).toEqual(['cancelled', 'cancelled', 'cancelled', 'end_turn']);
    const replies = peer
      .updates(id)
      .slice(from)
      .filter(({ content }: Any) => content?.text?.includes('PLAIN REPLY'));
    expect(replies, name).toHaveLength(1);
    expect(peer.home.records(id).findLast(({ type }) => type === 'user').message.parts, name).toEqual([
      { text: 'hello' },
    ]);
  }
});

test('[RS-9, RS-8] a restore prompt, or a call to continue, while a turn runs is answered at once and leaves it alone', async () => {
  const peer = await Peer.start({ restore: true });
  for (const { name, start } of RUNNING.filter(({ restore }) => restore)) {
    const { id, turn } = await start(peer);
    const onDisk = peer.home.bytes(id);
    const goOn = { sessionId: id, prompt: [], _meta: { 'qwen.daemon.continueLastTurn': true } };
    expect(await peer.restore(id), name).toEqual({ stopReason: 'end_turn' });
    expect(await peer.request('session/prompt', goOn), name).toEqual({ stopReason: 'end_turn' });
    await peer.roundTrip();
    expect(peer.unanswered, name).toBe(0);
    expect(sent(peer, '$/cancel_request'), name).toEqual([]);
    expect(peer.home.bytes(id).equals(onDisk), name).toBe(true);
    await peer.notify('session/cancel', { sessionId: id });
    expect(await turn, name).toEqual(CANCELLED_TURN);
    peer.wire.length = 0;
  }
});

test('[RS-9, BT-5, LS-6] an ordinary prompt before a restore closes the question on disk, in front of the message, switch on or off', async () => {
  const home = new Home();
  for (const restore of [true, false]) {
    const peer = await Peer.start({ home, restore });
    for (const recording of ['c0.dangling', 'e0-two.dangling', 'e0-mixed.dangling']) {
      const id = home.place(recording, randomUUID());
      const before = home.records(id).length;
      await peer.load(id);
      expect(await peer.prompt(id, 'hello'), recording).toMatchObject({ stopReason: 'end_turn' });
      const records = home.records(id);
      expect(responseIds(records), recording).toEqual(callIds(records));
      const added = records.slice(before);
      const closings = callIds(records).map(() => 'tool_result');
      expect(kinds(added), recording).toEqual([...closings, ...PLAIN_TURN]);
      expect(added[0].parentUuid, recording).toBe(records[before - 1].uuid);
      if (!restore) continue;
      expect(await peer.restore(id), recording).toEqual({ stopReason: 'end_turn' });
      expect(home.records(id), recording).toEqual(records);
      expect((await peer.load(id))._meta ?? {}, recording).not.toHaveProperty(RESTORE);
    }
    expect(peer.unanswered).toBe(0);
  }
});

/** Prompts that are sent in one go after a load that opened the question, and how they end. */
const TOGETHER = [
  { sent: ['restore', 'hello'], ends: ['cancelled', 'end_turn'] },
  { sent: ['hello', 'restore'], ends: ['end_turn', 'end_turn'] },
  { sent: ['restore', 'restore', 'hello'], ends: ['cancelled', 'end_turn', 'end_turn'] },
  { sent: ['restore', 'hello', 'restore'], ends: ['cancelled', 'end_turn', 'end_turn'] },
];

test('[RS-9, ACP-8] a restore and an ordinary prompt that come together never both run', async () => {
  const peer = await Peer.start({ restore: true });
  for (const { sent: prompts, ends } of TOGETHER) {
    const name = prompts.join(', ');
    const id = peer.home.place('c0.dangling', randomUUID());
    await peer.load(id);
    const turns = prompts.map((text) => (text === 'restore' ? peer.restore(id) : peer.prompt(id, text)));
    expect(
      (await Promise.all(turns)).map(({ stopReason }) => stopReason),
      name,
    ).toEqual(ends);
    const records = peer.home.records(id);
    expect(responseIds(records), name).toEqual(callIds(records));
    expect(kinds(records).slice(-5), name).toEqual(['tool_result', ...PLAIN_TURN]);
  }
});

test('[RS-9, RS-2] of two restore prompts at once one asks and the other leaves it alone', async () => {
  const peer = await Peer.start({ restore: true });
  const id = peer.home.place('c0.dangling');
  await peer.load(id);
  const [first, second] = [peer.restore(id), peer.restore(id)];
  expect(await second).toEqual({ stopReason: 'end_turn' });
  (await peer.question()).answer(submit({ 0: 'Blue' }));
  expect(await first).toEqual({ stopReason: 'end_turn' });
  expect(peer.unanswered).toBe(0);
  expect(responseIds(peer.home.records(id))).toHaveLength(1);
});
