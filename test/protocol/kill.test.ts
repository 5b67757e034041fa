import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { callIds, cards, responseIds } from '../support/evidence.ts';
import { type Asked, ask, Home, Peer, RESTORE, submit } from '../support/peer.ts';

/** Goes silent in the middle of what it says after an answer. */
const SCRIPT = {
  rules: [
    { when: { responseText: 'Slow' }, steps: [{ text: 'one moment. ' }, { wait: 'abort' }] },
    { when: { response: true }, steps: [{ text: 'TOOL RESULT ECHO: {{response}}' }] },
    { steps: [ask('Which colour?', 'Colour', ['Red', 'Slow'])] },
  ],
};

interface Moment {
  readonly peer: Peer;
  readonly id: string;
  readonly asked: Asked;
  readonly turn: Promise<unknown>;
}

const completed = ({ peer, id }: Moment) => peer.until(() => cards(peer, id).includes('tool_call_update completed'));

/** A moment of the turn, and how many responses must be on disk when the process is killed then. */
const MOMENTS: readonly { at: string; reach: (moment: Moment) => Promise<unknown> | undefined; responses: number[] }[] =
  [
    { at: 'the question came', reach: () => undefined, responses: [0] },
    { at: 'a session was loaded while it waited', reach: ({ peer, id }) => peer.load(id), responses: [0] },
    {
      at: 'the answer was sent',
      reach: ({ asked }) => void asked.answer(submit({ 0: 'Red' })),
      responses: [0, 1],
    },
    {
      at: 'the answer was taken',
      reach: async ({ peer, asked }) => {
        asked.answer(submit({ 0: 'Red' }));
        await peer.roundTrip();
      },
      responses: [0, 1],
    },
    {
      at: 'the completed update came',
      reach: async (moment) => {
        moment.asked.answer(submit({ 0: 'Red' }));
        await completed(moment);
      },
      responses: [1],
    },
    {
      at: 'the model went on',
      reach: async ({ peer, asked }) => {
        asked.answer(submit({ 0: 'Slow' }));
        await peer.until(() => peer.said().includes('one moment.'));
      },
      responses: [1],
    },
    {
      at: 'the turn ended',
      reach: async ({ asked, turn }) => {
        asked.answer(submit({ 0: 'Red' }));
        await turn;
      },
      responses: [1],
    },
  ];

/** What a later process finds and does: the question again, or the answer on its way to the model, never both. */
async function recovers(peer: Peer, id: string, callId: string, over: boolean): Promise<void> {
  const onDisk = responseIds(peer.home.records(id));
  const before = peer.said().length;
  const hint = (await peer.load(id))._meta[RESTORE];
  const replayed = peer.said().length;
  if (onDisk.length === 0) {
    expect(hint).toBe(true);
    const turn = peer.restore(id);
    const asked = await peer.question();
    expect(asked.params.toolCall.toolCallId).toBe(callId);
    asked.answer(submit({ 0: 'Red' }));
    expect(await turn).toMatchObject({ stopReason: 'end_turn' });
  } else {
    expect(hint).toBeUndefined();
    expect(await peer.restore(id)).toEqual({ stopReason: 'end_turn' });
    const verdict = await peer.request('qwen/control/session/continue', { sessionId: id });
    if (over) return expect(verdict).toEqual({ accepted: false, interruption: 'none' });
    // The model's text after the answer may have come to disk before the kill.
    if (peer.said().slice(before, replayed).includes('TOOL RESULT ECHO')) return;
    expect(verdict).toEqual({ accepted: true, interruption: 'interrupted_turn' });
    const goOn = { sessionId: id, prompt: [], _meta: { 'qwen.daemon.continueLastTurn': true } };
    expect(await peer.request('session/prompt', goOn)).toMatchObject({ stopReason: 'end_turn' });
  }
  expect(peer.said().slice(replayed)).toMatch(/TOOL RESULT ECHO: [\s\S]*(Red|Slow)/);
  expect(responseIds(peer.home.records(id))).toEqual([callId]);
}

for (const restored of [false, true]) {
  const question = restored ? 'a question that is asked again' : 'a question';
  test(`[TR-5, RS-4, RS-8, TR-3, K015, K019, K023] after kill -9 at any moment of ${question} it is asked again, or its answer goes on to the model, never both`, async () => {
    const home = new Home();
    const left: { id: string; callId: string; over: boolean }[] = [];
    for (const { at, reach, responses } of MOMENTS) {
      const peer = await Peer.start({ home, restore: true, script: SCRIPT });
      const id = restored ? home.place('c0.dangling', randomUUID()) : await peer.newSession();
      if (restored) await peer.resume(id);
      const turn = restored ? peer.restore(id) : peer.prompt(id, 'ask');
      turn.catch(() => {});
      const asked = await peer.question();
      const callId = asked.params.toolCall.toolCallId;
      await reach({ peer, id, asked, turn });
      expect(await peer.kill('SIGKILL'), at).toEqual({ code: null, signal: 'SIGKILL' });
      expect(callIds(home.records(id)), at).toEqual([callId]);
      expect(responses, at).toContain(responseIds(home.records(id)).length);
      left.push({ id, callId, over: at === 'the turn ended' });
    }
    const script = { rules: SCRIPT.rules.slice(1) };
    const next = await Peer.start({ home, restore: true, script });
    for (const { id, callId, over } of left) await recovers(next, id, callId, over);
  });
}
