import { expect, test } from 'vitest';
import { type Asked, CANCELLED, DECLINE, Home, Peer, submit, unattended } from '../support/peer.ts';
import { asks, COLOUR, cards, dangling, resultsOnDisk, saidIn } from '../support/sessions.ts';

interface End {
  readonly stop: string;
  readonly card: string;
  readonly disk: readonly string[];
  /** Whether the model was called with the outcome in the same turn. */
  readonly goesOn: boolean;
}

const DECLINED: End = { stop: 'end_turn', card: 'failed', disk: ['cancelled/not_started error'], goesOn: false };
const FAILED: End = {
  ...DECLINED,
  disk: ['error/not_started/unhandled_exception error'],
};
const OPEN: End = { ...DECLINED, disk: [] };

const answering = (result: unknown) => (asked: Asked) => asked.answer(result);
const selected = (optionId: unknown) => answering({ outcome: { outcome: 'selected', optionId } });

/** What the client does with a question, and how it ends: first asked and asked again alike. */
const OUTCOMES: Readonly<Record<string, readonly [(asked: Asked) => void, End]>> = {
  'an answer': [
    answering(submit({ 0: 'Red' })),
    { stop: 'end_turn', card: 'completed', disk: ['success/success output'], goesOn: true },
  ],
  'the cancel option': [answering(DECLINE), DECLINED],
  'outcome cancelled': [answering(CANCELLED), DECLINED],
  'a reason of a voter': [answering(unattended('voter_cancelled')), DECLINED],
  'a reason of an agent': [answering(unattended('agent_cancelled')), DECLINED],
  'a reason nobody knows': [answering(unattended('bogus')), DECLINED],
  'a reason in the answer of who declined': [answering({ ...unattended('timeout'), ...DECLINE }), DECLINED],
  'a timeout': [answering(unattended('timeout')), OPEN],
  'a closed session': [answering(unattended('session_closed')), OPEN],
  'an option that was not offered': [selected('proceed_always'), FAILED],
  'an empty option': [selected(''), FAILED],
  'no option': [selected(undefined), FAILED],
  'an option that is no text': [selected(['proceed_once']), FAILED],
  'an unknown outcome': [answering({ outcome: { outcome: 'maybe' } }), FAILED],
  'an empty result': [answering({}), FAILED],
  'a flat result': [answering({ optionId: 'proceed_once' }), FAILED],
  'an outcome in words': [answering({ outcome: 'selected', optionId: 'proceed_once' }), FAILED],
  'no result': [answering(null), FAILED],
  'a list': [answering([CANCELLED]), FAILED],
  'method not found': [(asked) => asked.refuse(-32601, 'Method not found'), FAILED],
  'an internal error': [(asked) => asked.refuse(-32603, 'broken'), FAILED],
  'a request that was cancelled there': [(asked) => asked.refuse(-32800, 'cancelled'), FAILED],
};

const expected = Object.fromEntries(Object.entries(OUTCOMES).map(([name, [, end]]) => [name, end]));

async function endOf(peer: Peer, sessionId: string, turn: Promise<{ stopReason: string }>): Promise<End> {
  return {
    stop: (await turn).stopReason,
    card: cards(peer, sessionId).join(),
    disk: resultsOnDisk(peer.home, sessionId),
    goesOn: saidIn(peer, sessionId).includes('TOOL RESULT ECHO'),
  };
}

test('[RS-0, RS-3, RS-5, RS-6, RS-7, BT-1, K001, K035] every outcome of a first-asked question', async () => {
  const peer = await Peer.start({ restore: true });
  const ends: Record<string, End> = {};
  for (const [name, [reply]] of Object.entries(OUTCOMES)) {
    const sessionId = await peer.newSession();
    const { turn, asked } = await peer.askIn(sessionId);
    reply(asked);
    ends[name] = await endOf(peer, sessionId, turn);
  }
  expect(ends).toEqual(expected);
});

test('[RS-0, RS-3, RS-5, RS-6, RS-7, K035] every outcome of a question that is asked again is the same', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const ends: Record<string, End> = {};
  for (const [name, [reply]] of Object.entries(OUTCOMES)) {
    const sessionId = dangling(home, asks('call_1', COLOUR));
    await peer.load(sessionId);
    const turn = peer.restore(sessionId);
    reply(await peer.question());
    ends[name] = await endOf(peer, sessionId, turn);
  }
  expect(ends).toEqual(expected);
});

test('[RS-6, BT-1] with the switch off a first-asked question that nobody answered is closed as recorded', async () => {
  const peer = await Peer.start();
  const ends: Record<string, End> = {};
  for (const reason of ['timeout', 'session_closed']) {
    const sessionId = await peer.newSession();
    const { turn, asked } = await peer.askIn(sessionId);
    asked.answer(unattended(reason));
    ends[reason] = await endOf(peer, sessionId, turn);
  }
  expect(ends).toEqual({ timeout: DECLINED, session_closed: DECLINED });
});

test('[RS-6, ACP-7] a cancelled turn takes no late answer; only a first-asked question is closed by it', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const first = await peer.newSession();
  const again = dangling(home, asks('call_1', COLOUR));
  const ends: End[] = [];
  for (const sessionId of [first, again]) {
    if (sessionId === again) await peer.load(sessionId);
    const turn = sessionId === first ? peer.prompt(first, '[[ask1]]') : peer.restore(again);
    const asked = await peer.question();
    await peer.notify('session/cancel', { sessionId });
    ends.push(await endOf(peer, sessionId, turn));
    asked.answer(submit({ 0: 'Red' }));
  }
  const before = ends.map(({ disk }) => disk);
  await peer.load(first);
  await peer.load(again);
  expect(ends.map(({ stop, card }) => `${stop} ${card}`)).toEqual(['cancelled failed', 'cancelled failed']);
  expect(before).toEqual([['cancelled/not_started error'], []]);
  expect([resultsOnDisk(home, first), resultsOnDisk(home, again)]).toEqual(before);
});

test('[RS-1, RS-5, RS-7] what was declined or failed is not asked again', async () => {
  const peer = await Peer.start({ restore: true });
  for (const reply of [answering(DECLINE), selected('proceed_always'), answering(submit({}))]) {
    const sessionId = await peer.newSession();
    const { turn, asked } = await peer.askIn(sessionId);
    reply(asked);
    await turn;
    const hints = [await peer.load(sessionId), await peer.resume(sessionId)].map(({ _meta }) => _meta);
    expect(hints).toEqual([{ hasRunningBackgroundTasks: false }, { hasRunningBackgroundTasks: false }]);
    const before = peer.home.bytes(sessionId);
    expect(await peer.restore(sessionId)).toEqual({ stopReason: 'end_turn' });
    expect(peer.home.bytes(sessionId)).toEqual(before);
  }
  expect(peer.unanswered).toBe(0);
});

test('[EL-2] invalid arguments are told to the model at once, and nobody is asked', async () => {
  const peer = await Peer.start({ restore: true });
  const sessionId = await peer.newSession();
  await peer.prompt(sessionId, '[[invalid]]');
  expect(cards(peer, sessionId)).toEqual(['failed']);
  expect(peer.unanswered).toBe(0);
  expect(resultsOnDisk(peer.home, sessionId)).toEqual(['error/not_started/invalid_tool_params error']);
  expect(saidIn(peer, sessionId)).toMatch(/^TOOL RESULT ECHO: Question 1: "options" /);
});
