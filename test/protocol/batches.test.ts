import { expect, test } from 'vitest';
import { type Asked, DECLINE, Home, Peer, RESTORE, submit, unattended } from '../support/peer.ts';
import { asks, COLOUR, cards, dangling, FEATURES, resultsOnDisk, saidIn } from '../support/sessions.ts';

type Reply = (asked: Asked) => void;

const answers: Reply = (asked) => asked.answer(submit({ 0: 'Red' }));
const declines: Reply = (asked) => asked.answer(DECLINE);
const fails: Reply = (asked) => asked.refuse(-32603, 'broken');
const chooseNothing: Reply = (asked) => asked.answer(submit({}));
const timesOut: Reply = (asked) => asked.answer(unattended('timeout'));
const closes: Reply = (asked) => asked.answer(unattended('session_closed'));

const ANSWERED = 'success/success output';
const DECLINED = 'cancelled/not_started error';
const FAILED = 'error/not_started/unhandled_exception error';
const SKIPPED = 'error/not_started/execution_denied error';
const NO_ANSWER = 'error/not_started/no_answer error';

interface Row {
  readonly replies: readonly Reply[];
  readonly disk: readonly string[];
  readonly cards: readonly string[];
  readonly goesOn?: true;
}

const BATCHES: Readonly<Record<string, Row>> = {
  'answered, answered': {
    replies: [answers, answers],
    disk: [ANSWERED, ANSWERED],
    cards: ['completed', 'completed'],
    goesOn: true,
  },
  'answered, no answer': {
    replies: [answers, chooseNothing],
    disk: [ANSWERED, NO_ANSWER],
    cards: ['completed', 'failed'],
    goesOn: true,
  },
  'no answer, answered': {
    replies: [chooseNothing, answers],
    disk: [NO_ANSWER, ANSWERED],
    cards: ['failed', 'completed'],
    goesOn: true,
  },
  'answered, declined': { replies: [answers, declines], disk: [ANSWERED, DECLINED], cards: ['completed', 'failed'] },
  'declined first': { replies: [declines], disk: [DECLINED, SKIPPED], cards: ['failed', 'failed'] },
  'answered, error': { replies: [answers, fails], disk: [ANSWERED, FAILED], cards: ['completed', 'failed'] },
  'error first': { replies: [fails], disk: [FAILED, SKIPPED], cards: ['failed', 'failed'] },
  'answered, timed out': { replies: [answers, timesOut], disk: [], cards: ['completed', 'failed'] },
  'timed out first': { replies: [timesOut], disk: [], cards: ['failed', 'failed'] },
  'answered, closed': { replies: [answers, closes], disk: [], cards: ['completed', 'failed'] },
};

const expected = Object.fromEntries(
  Object.entries(BATCHES).map(([name, { disk, cards, goesOn = false }]) => [name, { disk, cards, goesOn }]),
);

/** Answers the questions of a turn one by one; none of their results is on disk before the last is decided. */
async function play(peer: Peer, sessionId: string, turn: Promise<unknown>, replies: readonly Reply[]) {
  for (const reply of replies) {
    const asked = await peer.question();
    expect(resultsOnDisk(peer.home, sessionId)).toEqual([]);
    expect(peer.unanswered).toBe(0);
    reply(asked);
  }
  expect(await turn).toMatchObject({ stopReason: 'end_turn' });
  return {
    disk: resultsOnDisk(peer.home, sessionId),
    cards: cards(peer, sessionId),
    goesOn: saidIn(peer, sessionId).includes('TOOL RESULT ECHO'),
  };
}

test('[RS-0, RS-2, RS-6, RS-10] how a first-asked batch of two ends', async () => {
  const peer = await Peer.start({ restore: true });
  const ends: Record<string, unknown> = {};
  for (const [name, { replies }] of Object.entries(BATCHES)) {
    const sessionId = await peer.newSession();
    ends[name] = await play(peer, sessionId, peer.prompt(sessionId, '[[asktwice]]'), replies);
  }
  expect(ends).toEqual(expected);
});

test('[RS-0, RS-2, RS-6, RS-10, K004] a batch that is asked again ends the same way', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const ends: Record<string, unknown> = {};
  for (const [name, { replies }] of Object.entries(BATCHES)) {
    const sessionId = dangling(home, asks('call_1', COLOUR), asks('call_2', FEATURES));
    await peer.load(sessionId);
    ends[name] = await play(peer, sessionId, peer.restore(sessionId), replies);
  }
  expect(ends).toEqual(expected);
});

test('[RS-6, RS-10, BT-10, K004] after an answer and a timeout both are asked again, in the same process too', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const sessionId = dangling(home, asks('call_1', COLOUR), asks('call_2', FEATURES));
  await peer.load(sessionId);
  await play(peer, sessionId, peer.restore(sessionId), [answers, timesOut]);
  expect((await peer.load(sessionId))._meta[RESTORE]).toBe(true);
  const end = await play(peer, sessionId, peer.restore(sessionId), [answers, answers]);
  expect(end.disk).toEqual([ANSWERED, ANSWERED]);
});

test('[RS-10, TR-5] a kill after the first answer loses nothing: both are asked again', async () => {
  const home = new Home();
  const before = await Peer.start({ home, restore: true });
  const sessionId = await before.newSession();
  const { asked } = await before.askIn(sessionId, '[[asktwice]]');
  answers(asked);
  const second = await before.question();
  await before.kill();
  const peer = await Peer.start({ home, restore: true });
  await peer.load(sessionId);
  const turn = peer.restore(sessionId);
  const again = [await peer.question()];
  answers(again[0] as Asked);
  again.push(await peer.question());
  answers(again[1] as Asked);
  await turn;
  expect(again.map(({ params }) => params.toolCall)).toEqual([asked.params.toolCall, second.params.toolCall]);
  expect(new Set([asked.id, second.id, ...again.map(({ id }) => id)]).size).toBe(4);
  expect(resultsOnDisk(home, sessionId)).toEqual([ANSWERED, ANSWERED]);
});
