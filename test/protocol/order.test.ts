import { expect, test } from 'vitest';
import { Home, Peer, RESTORE, submit } from '../support/peer.ts';
import { asks, COLOUR, dangling, FEATURES, modelSays, place, toolAnswers, userSays } from '../support/sessions.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames of every form
const incoming = (peer: Peer, from: number): any[] =>
  peer.wire.slice(from).flatMap(({ dir, message }) => (dir === 'in' ? [message] : []));

/** What came in, in order: an update's kind, a request's method, or `answer`. */
function order(peer: Peer, from: number): string[] {
  return incoming(peer, from).map(({ method, params }) =>
    method === 'session/update' ? params.update.sessionUpdate : (method ?? 'answer'),
  );
}

/** A history of this many turns, each with a question and its answer. */
function history(home: Home, turns: number): string {
  const entries = Array.from({ length: turns }, (_, turn) => [
    userSays(`prompt ${turn}`),
    modelSays({ text: 'hm', thought: true }, { text: `asking ${turn}` }, asks(`call_${turn}`, COLOUR)),
    toolAnswers(`call_${turn}`, { output: 'Red' }),
    modelSays({ text: `done ${turn}` }),
  ]);
  return place(home, ...entries.flat());
}

test('[ACP-3, K068, K070] a load sends the whole history before its answer and nothing after it', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const sessionId = history(home, 300);
  const from = peer.wire.length;
  await peer.load(sessionId);
  await peer.request('session/list', {});
  const turn = ['user_message_chunk', 'agent_thought_chunk', 'agent_message_chunk', 'tool_call', 'tool_call_update'];
  const expected = Array.from({ length: 300 }, () => [...turn, 'agent_message_chunk']).flat();
  expect(order(peer, from)).toEqual([...expected, 'available_commands_update', 'answer', 'answer']);
  const texts = peer
    .updates(sessionId)
    .flatMap((update) =>
      update.sessionUpdate === 'user_message_chunk' && update.content.type === 'text' ? [update.content.text] : [],
    );
  expect(texts).toEqual(Array.from({ length: 300 }, (_, index) => `prompt ${index}`));
});

test('[ACP-3, K070] session/new is answered before any update names the session', async () => {
  const peer = await Peer.start();
  const from = peer.wire.length;
  const sessions = await Promise.all([peer.newSession(), peer.newSession()]);
  await peer.prompt(sessions[0] as string, 'hello');
  const frames = incoming(peer, from);
  const named = sessions.map((id) => frames.findIndex(({ params }) => params?.sessionId === id));
  const answered = sessions.map((id) => frames.findIndex(({ result }) => result?.sessionId === id));
  expect(named.map((at, index) => at > (answered[index] as number))).toEqual([true, true]);
  expect(named.map((at) => frames[at].params.update.sessionUpdate)).toEqual(Array(2).fill('available_commands_update'));
  expect(order(peer, from)).toContain('agent_message_chunk');
});

test('[ACP-3, RS-2] live, a call is shown before it is asked, and asked before it is updated, under one id', async () => {
  const peer = await Peer.start();
  const sessionId = await peer.newSession();
  await peer.request('session/list', {});
  const from = peer.wire.length;
  const { turn, asked } = await peer.askIn(sessionId);
  asked.answer(submit({ 0: 'Red' }));
  await turn;
  expect(order(peer, from)).toEqual([
    'session_info_update',
    'tool_call',
    'agent_message_chunk',
    'session/request_permission',
    'tool_call_update',
    'agent_message_chunk',
    'agent_message_chunk',
    'answer',
  ]);
  const ids = incoming(peer, from).flatMap(
    ({ params }) => params?.update?.toolCallId ?? params?.toolCall?.toolCallId ?? [],
  );
  expect(ids.length).toBe(3);
  await peer.load(sessionId);
  const all = incoming(peer, from).flatMap(
    ({ params }) => params?.update?.toolCallId ?? params?.toolCall?.toolCallId ?? [],
  );
  expect(all.length).toBe(5);
  expect(new Set(all).size).toBe(1);
});

test('[ACP-3, K026, K039, K069] a resume sends no history; its permission request introduces each call, readably', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const sessionId = dangling(home, asks('call_1', COLOUR, FEATURES));
  const from = peer.wire.length;
  expect((await peer.resume(sessionId))._meta[RESTORE]).toBe(true);
  const turn = peer.restore(sessionId);
  const { params, answer } = await peer.question();
  expect(order(peer, from)).toEqual(['answer', 'available_commands_update', 'session/request_permission']);
  expect(params.toolCall).toMatchObject({
    toolCallId: 'call_1',
    title: 'Ask user 2 questions',
    kind: 'think',
    rawInput: { questions: [COLOUR, FEATURES] },
  });
  const [shown] = params.toolCall.content ?? [];
  const text = shown?.type === 'content' && shown.content.type === 'text' ? shown.content.text : '';
  const words = ['Which colour?', 'Red', 'warm', 'Which features?', 'Alpha', 'about Alpha'];
  expect(words.filter((word) => !text.includes(word))).toEqual([]);
  answer(submit({ 0: 'Red' }));
  await turn;
});

test('[RS-2] questions of a batch carry their number in the title, and what the model wrote, verbatim', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const extra = { ...COLOUR, why: ['kept'] };
  const sessionId = dangling(home, asks('call_1', extra), asks('call_2', COLOUR, FEATURES));
  await peer.load(sessionId);
  const turn = peer.restore(sessionId);
  const first = await peer.question();
  first.answer(submit({ 0: 'Red' }));
  const second = await peer.question();
  second.answer(submit({ 1: 'Beta' }));
  await turn;
  const shapes = [first, second].map(({ params: { toolCall, options } }) => ({ toolCall, options }));
  const options = [
    { optionId: 'proceed_once', name: 'Submit', kind: 'allow_once' },
    { optionId: 'cancel', name: 'Cancel', kind: 'reject_once' },
  ];
  const card = (toolCallId: string, title: string, questions: unknown[]) => ({
    toolCall: {
      toolCallId,
      status: 'pending',
      title,
      content: [],
      locations: [],
      kind: 'think',
      rawInput: { questions },
      _meta: { toolName: 'ask_user_question', qwenInteractionKind: 'user_question', qwenQuestions: questions },
    },
    options,
  });
  expect(shapes).toEqual([
    card('call_1', 'Ask user 1 question', [extra]),
    card('call_2', 'Ask user 2 questions', [COLOUR, FEATURES]),
  ]);
});
