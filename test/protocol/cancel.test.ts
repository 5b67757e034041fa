import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { answerTo, cards, kinds, lastUpdateAt, responseIds, sent } from '../support/evidence.ts';
import { Home, Peer, RESTORE, submit } from '../support/peer.ts';

const CANCELLED_TURN = { stopReason: 'cancelled' };

async function firstAsked(peer: Peer) {
  const id = await peer.newSession();
  return { id, ...(await peer.askIn(id)) };
}

async function askedAgain(peer: Peer) {
  const id = peer.home.place('c0.dangling', randomUUID());
  await peer.load(id);
  const turn: Promise<{ stopReason: string }> = peer.restore(id);
  return { id, turn, asked: await peer.question() };
}

/** What a cancelled turn leaves: a first-asked question is closed, one that was asked again stays open. */
const QUESTIONS = [
  { name: 'first asked', ask: firstAsked, restore: true, left: ['tool_result', 'system/turn_result'] },
  { name: 'first asked, switch off', ask: firstAsked, restore: false, left: ['tool_result', 'system/turn_result'] },
  { name: 'asked again', ask: askedAgain, restore: true, left: ['system/turn_result'] },
];

const CANCELS: readonly {
  how: string;
  cancel: (peer: Peer, sessionId: string) => Promise<unknown>;
  answer?: unknown;
}[] = [
  { how: 'session/cancel', cancel: (peer, sessionId) => peer.notify('session/cancel', { sessionId }) },
  {
    how: 'craft/cancelPendingPrompt',
    cancel: (peer, sessionId) => peer.request('craft/cancelPendingPrompt', { sessionId }),
    answer: { cancelled: true },
  },
  {
    how: '_craft/cancelPendingPrompt',
    cancel: (peer, sessionId) => peer.request('_craft/cancelPendingPrompt', { sessionId }),
    answer: { cancelled: true },
  },
  {
    how: '$/cancel_request',
    cancel: async (peer) => {
      const { message } = peer.wire.findLast(
        ({ dir, message }) => dir === 'out' && 'method' in message && message.method === 'session/prompt',
      ) as { message: { id: unknown } };
      await peer.notify('$/cancel_request', { requestId: message.id });
    },
  },
];

for (const { name, ask, restore, left } of QUESTIONS) {
  test(`[ACP-7, RS-6, ACP-12, K037] a cancel ends a turn whose question (${name}) nobody answers, and is on disk before the answer`, async () => {
    const peer = await Peer.start({ restore });
    for (const { how, cancel, answer } of CANCELS) {
      const { id, turn, asked } = await ask(peer);
      const before = peer.home.records(id).length;
      const from = peer.wire.length;
      const done = turn.then((end) => ({ end, added: peer.home.records(id).slice(before) }));
      const told = await cancel(peer, id);
      if (answer) expect(told, how).toEqual(answer);
      const { end, added } = await done;
      expect(end, how).toEqual(CANCELLED_TURN);
      expect(kinds(added), how).toEqual(left);
      expect(added.at(-1).systemPayload, how).toMatchObject({ state: 'cancelled', stopReason: 'cancelled' });
      expect(sent(peer, '$/cancel_request', from), how).toMatchObject([{ params: { requestId: asked.id } }]);
      expect(cards(peer, id).at(-1), how).toBe('tool_call_update failed');
      expect(lastUpdateAt(peer, id), how).toBeLessThan(answerTo(peer, 'session/prompt', -1).at);

      const settled = peer.home.bytes(id);
      const frames = peer.updates(id).length;
      asked.answer(submit({ 0: 'Blue' }));
      await peer.roundTrip();
      await peer.roundTrip();
      expect(peer.wire, how).toContainEqual({ dir: 'out', message: expect.objectContaining({ id: asked.id }) });
      expect(peer.home.bytes(id).equals(settled), how).toBe(true);
      expect(peer.updates(id), how).toHaveLength(frames);
      const open = name === 'asked again';
      expect((await peer.load(id))._meta?.[RESTORE] === true, how).toBe(open);
      const verdict = await peer.request('qwen/control/session/continue', { sessionId: id });
      expect(verdict, how).toEqual({ accepted: false, interruption: 'none' });
      expect((await peer.prompt(id, 'hello')).stopReason, how).toBe('end_turn');
      expect(responseIds(peer.home.records(id)), how).toEqual([asked.params.toolCall.toolCallId]);
    }
  });
}

test('[ACP-7] text that was streamed before a cancel stays in the history', async () => {
  const peer = await Peer.start({ restore: true });
  for (const { how, cancel } of CANCELS) {
    const id = await peer.newSession();
    const from = peer.said().length;
    const turn = peer.prompt(id, '[[stream]]');
    await peer.until(() => peer.said().slice(from).includes('some words.'));
    await cancel(peer, id);
    expect(await turn, how).toEqual(CANCELLED_TURN);
    expect(kinds(peer.home.records(id)).slice(-2), how).toEqual(['assistant', 'system/turn_result']);
    const replayed = peer.said().length;
    await peer.load(id);
    expect(peer.said().slice(replayed), how).toBe('some words. ');
    expect(await peer.request('qwen/control/session/continue', { sessionId: id }), how).toMatchObject({
      interruption: 'none',
    });
  }
});

test('[ACP-7, ACP-12, ACP-4] a cancel without a turn does nothing', async () => {
  const peer = await Peer.start({ restore: true });
  const id = await peer.newSession();
  await peer.prompt(id, 'hello');
  const onDisk = peer.home.bytes(id);
  await peer.notify('session/cancel', { sessionId: id });
  await peer.notify('session/cancel', { sessionId: randomUUID() });
  await peer.notify('$/cancel_request', { requestId: 'nobody' });
  for (const method of ['craft/cancelPendingPrompt', '_craft/cancelPendingPrompt']) {
    expect(await peer.request(method, { sessionId: id })).toEqual({ cancelled: false });
    await expect(peer.request(method, { sessionId: randomUUID() })).rejects.toMatchObject({ code: -32002 });
  }
  expect(peer.home.bytes(id).equals(onDisk)).toBe(true);
  expect((await peer.prompt(id, 'hello')).stopReason).toBe('end_turn');
});

test('[ACP-13, ACP-7, K037, K038] while questions wait for people who never answer, everything else answers at once', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const waiting = [await firstAsked(peer), await askedAgain(peer)];
  for (let at = 0; at < 30; at++) waiting.push(await firstAsked(peer));
  const cwd = '/srv/project';
  const other = await peer.newSession();
  expect((await peer.prompt(other, 'hello')).stopReason).toBe('end_turn');
  await peer.load(other);
  await peer.resume(other);
  await peer.request('session/list', { cwd });
  await peer.request('session/set_mode', { sessionId: other, modeId: 'plan' });
  await peer.request('qwen/session/loadUpdates', { sessionId: other, cwd });
  await peer.request('session/close', { sessionId: other });
  await peer.request('session/delete', { sessionId: other });
  for (const { id } of waiting) {
    expect(await peer.request('qwen/control/session/continue', { sessionId: id })).toEqual({
      accepted: false,
      interruption: 'none',
    });
  }
  await peer.request('session/set_mode', { sessionId: waiting[0]?.id, modeId: 'plan' });
  for (const { turn, asked } of waiting.toReversed()) {
    asked.answer(submit({ 0: 'Blue' }));
    expect(await turn).toMatchObject({ stopReason: 'end_turn' });
  }
});

test('[ACP-6, RS-2] a question never bears a request id that was used before, in any process', async () => {
  const home = new Home();
  const id = home.place('c0.dangling');
  const ids: unknown[] = [];
  const calls: unknown[] = [];
  for (let process = 0; process < 3; process++) {
    const peer = await Peer.start({ home, restore: true });
    for (let round = 0; round < 2; round++) {
      await peer.load(id);
      const turn = peer.restore(id);
      const asked = await peer.question();
      ids.push(asked.id);
      calls.push(asked.params.toolCall.toolCallId);
      await peer.notify('session/cancel', { sessionId: id });
      await turn;
    }
    await peer.eof();
  }
  expect(new Set(ids).size).toBe(6);
  expect(new Set(calls).size).toBe(1);
});
