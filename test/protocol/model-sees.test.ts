import { expect, test } from 'vitest';
import { geminiPeer, seenBy } from '../support/gemini-peer.ts';
import { DECLINE, SUPPRESS, submit } from '../support/peer.ts';
import { asks, COLOUR, call, dangling, FEATURES } from '../support/sessions.ts';

const CONTINUE = { 'qwen.daemon.continueLastTurn': true };

test('[RS-4, LS-6, K018] the model gets the real answer for the same call, after its turn and nothing else', async () => {
  const { server, home, peer } = await geminiPeer();
  const sessionId = dangling(home, asks('call_1', COLOUR), asks('call_2', FEATURES));
  await peer.load(sessionId);
  const turn = peer.restore(sessionId);
  (await peer.question()).answer(submit({ 0: 'Red' }));
  (await peer.question()).answer(submit({ 0: ['Alpha', 'Beta'] }));
  await turn;
  expect(server.requests.map(({ body }) => seenBy(body))).toEqual([
    ['user: go', 'model: call call_1, call call_2', 'user: call_1 **Colour**: Red, call_2 **Features**: Alpha, Beta'],
  ]);
});

test('[RS-5, RS-10] the model hears of a decline with the next prompt, not before', async () => {
  const { server, home, peer } = await geminiPeer();
  const sessionId = dangling(home, asks('call_1', COLOUR), asks('call_2', FEATURES));
  await peer.load(sessionId);
  const turn = peer.restore(sessionId);
  (await peer.question()).answer(DECLINE);
  await turn;
  expect(server.requests).toEqual([]);
  await peer.prompt(sessionId, 'next');
  expect(server.requests.map(({ body }) => seenBy(body).join(' | '))).toEqual([
    'user: go | model: call call_1, call call_2 | user: call_1 failed, call_2 failed | user: next',
  ]);
});

test('[LS-6, BT-5, RS-8, TR-9] what dangles is closed for the model, and on disk, by a prompt or a continue', async () => {
  const { server, home, peer } = await geminiPeer();
  const mixed = [asks('call_1', COLOUR), call('call_2', 'read_file', { file_path: 'a.txt' })];
  const prompted = dangling(home, ...mixed);
  const continued = dangling(home, ...mixed);
  const suppressed = dangling(home, asks('call_1', COLOUR));
  for (const sessionId of [prompted, continued]) await peer.load(sessionId);
  await peer.load(suppressed, { [SUPPRESS]: true });
  await peer.prompt(prompted, 'never mind');
  await peer.request('session/prompt', { sessionId: continued, prompt: [], _meta: CONTINUE });
  await peer.request('session/prompt', { sessionId: suppressed, prompt: [], _meta: CONTINUE });
  expect(server.requests.map(({ body }) => seenBy(body).join(' | '))).toEqual([
    'user: go | model: call call_1, call call_2 | user: call_1 failed, call_2 failed | user: never mind',
    'user: go | model: call call_1, call call_2 | user: call_1 failed, call_2 failed',
    'user: go | model: call call_1 | user: call_1 failed',
  ]);
  expect(home.records(prompted).map(({ type, subtype }) => subtype ?? type)).toEqual([
    'user',
    'assistant',
    'tool_result',
    'tool_result',
    'user',
    'file_history_snapshot',
    'ui_telemetry',
    'assistant',
    'branch_checkpoint',
  ]);
});
