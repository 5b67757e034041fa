import type { CreateElicitationRequest } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { kinds, responseIds, sent } from '../support/evidence.ts';
import { type Asked, Home, Peer, type PeerOptions, RESTORE, submit } from '../support/peer.ts';
import { asks, COLOUR, cards, dangling, FEATURES, resultsOnDisk, saidIn } from '../support/sessions.ts';

type Form = Asked<CreateElicitationRequest>;

const FORMS = { clientCapabilities: { elicitation: { form: {} } } };
const start = (options: PeerOptions = {}) => Peer.start({ restore: true, initialize: FORMS, ...options });

const accept = (content?: unknown) => (form: Form) => form.answer({ action: 'accept', content });
const act = (result: unknown) => (form: Form) => form.answer(result);
const refuse = (code: number) => (form: Form) => form.refuse(code, 'not so');

interface End {
  readonly card: string;
  readonly disk: string;
  /** What the model heard in the same turn; empty when it was not called. */
  readonly heard: string;
}
const answered = (text: string): End => ({
  card: 'completed',
  disk: 'success/success output',
  heard: `TOOL RESULT ECHO: The user answered:\n\n${text}`,
});
const UNANSWERED: End = {
  card: 'failed',
  disk: 'error/not_started/no_answer error',
  heard: 'TOOL RESULT ECHO: The question was submitted, but no answer was given.',
};
const DECLINED: End = { card: 'failed', disk: 'cancelled/not_started error', heard: '' };
const FAILED: End = { card: 'failed', disk: 'error/not_started/unhandled_exception error', heard: '' };
const OPEN: End = { card: 'failed', disk: '', heard: '' };

const OUTCOMES: Readonly<Record<string, readonly [(form: Form) => void, End]>> = {
  'a choice': [accept({ question_1: 'Blue' }), answered('**Colour**: Blue')],
  'own words': [accept({ question_1: 'Blue', question_1_other: 'teal' }), answered('**Colour**: teal')],
  'an empty form': [accept({}), UNANSWERED],
  'no form': [accept(), UNANSWERED],
  'a value of the wrong type': [accept({ question_1: 1, question_1_other: true }), UNANSWERED],
  'a choice that was not offered': [accept({ question_1: 'Green' }), UNANSWERED],
  'the recorded form': [act(submit({ 0: 'Blue' })), answered('**Colour**: Blue')],
  decline: [act({ action: 'decline' }), DECLINED],
  cancel: [act({ action: 'cancel' }), OPEN],
  'an unknown action': [act({ action: 'perhaps' }), FAILED],
  'an empty result': [act({}), FAILED],
  'no result': [act(null), FAILED],
  'an internal error': [refuse(-32603), FAILED],
};
const expected = Object.fromEntries(Object.entries(OUTCOMES).map(([name, [, end]]) => [name, end]));

const endOf = (peer: Peer, sessionId: string): End => ({
  card: cards(peer, sessionId).join(),
  disk: resultsOnDisk(peer.home, sessionId).join(),
  heard: saidIn(peer, sessionId),
});

test('[BT-6, RS-0, RS-3, RS-5, RS-6, RS-7, K032] every outcome of a form, first asked and asked again alike', async () => {
  const peer = await start();
  const ends: Record<string, Record<string, End>> = { first: {}, again: {} };
  for (const [name, [reply]] of Object.entries(OUTCOMES)) {
    const first = await peer.newSession();
    const again = dangling(peer.home, asks('call_1', COLOUR));
    await peer.load(again);
    for (const [which, sessionId] of Object.entries({ first, again })) {
      const turn = which === 'first' ? peer.prompt(first, '[[ask1]]') : peer.restore(again);
      reply(await peer.form());
      expect((await turn).stopReason).toBe('end_turn');
      (ends[which] ?? {})[name] = endOf(peer, sessionId);
    }
  }
  expect(ends).toEqual({ first: expected, again: expected });
  expect(sent(peer, 'session/request_permission')).toEqual([]);
});

test('[BT-6, ACP-6, RS-4] after kill -9 a load and a restore prompt show the form again, and the same turn goes on', async () => {
  const before = await start();
  const sessionId = await before.newSession();
  before.prompt(sessionId, '[[ask1]]').catch(() => {});
  const first = await before.form();
  await before.kill();

  const peer = await start({ home: before.home });
  expect((await peer.load(sessionId))._meta[RESTORE]).toBe(true);
  const turn = peer.restore(sessionId);
  const again = await peer.form();
  expect(again.params).toEqual(first.params);
  expect(again.params).toMatchObject({ sessionId, toolCallId: expect.any(String), mode: 'form' });
  expect(again.id).not.toBe(first.id);
  accept({ question_1: 'Red' })(again);
  expect(await turn).toEqual({ stopReason: 'end_turn' });
  expect(cards(peer, sessionId)).toEqual(['completed']);
  expect(saidIn(peer, sessionId)).toContain('**Colour**: Red');
  expect(kinds(peer.home.records(sessionId)).slice(-2)).toEqual(['tool_result', 'assistant']);
  expect((await peer.load(sessionId))._meta).not.toHaveProperty(RESTORE);
});

test('[BT-6, ACP-3] two questions and a multi-select are one form; after a resume the card comes before it', async () => {
  const peer = await start();
  const sessionId = dangling(peer.home, asks('call_1', COLOUR, FEATURES));
  await peer.resume(sessionId);
  const turn = peer.restore(sessionId);
  const form = await peer.form();
  expect(peer.updates(sessionId)).toMatchObject([
    {
      sessionUpdate: 'tool_call',
      toolCallId: 'call_1',
      status: 'pending',
      rawInput: { questions: [COLOUR, FEATURES] },
    },
  ]);
  accept({ question_1: 'Red', question_2: ['Alpha', 'Gamma'], question_2_other: 'Delta' })(form);
  await turn;
  expect(saidIn(peer, sessionId)).toContain('**Colour**: Red\n**Features**: Alpha, Gamma, Delta');
});

test('[BT-6, RS-10] of two calls each is a form; what is declined first skips the other', async () => {
  const peer = await start();
  for (const [content, forms, disk] of [
    [{ question_1: 'Red' }, 2, ['success/success output', 'success/success output']],
    [undefined, 1, ['cancelled/not_started error', 'error/not_started/execution_denied error']],
  ] as const) {
    const sessionId = await peer.newSession();
    const from = peer.wire.length;
    const turn = peer.prompt(sessionId, '[[asktwice]]');
    if (content === undefined) act({ action: 'decline' })(await peer.form());
    else {
      accept(content)(await peer.form());
      accept({ question_1: 'Large' })(await peer.form());
    }
    await turn;
    expect(sent(peer, 'elicitation/create', from)).toHaveLength(forms);
    expect(resultsOnDisk(peer.home, sessionId)).toEqual(disk);
  }
});

test('[BT-6, BT-10] a form that was put away stays open: a later load asks again; with the switch off it is a decline', async () => {
  const peer = await start();
  const off = await start({ restore: false });
  for (const each of [peer, off]) {
    const sessionId = await each.newSession();
    const turn = each.prompt(sessionId, '[[ask1]]');
    act({ action: 'cancel' })(await each.form());
    expect((await turn).stopReason).toBe('end_turn');
    const { _meta } = await each.load(sessionId);
    if (each === off) {
      expect(resultsOnDisk(each.home, sessionId)).toEqual(['cancelled/not_started error']);
      continue;
    }
    expect(_meta[RESTORE]).toBe(true);
    const again = each.restore(sessionId);
    accept({ question_1: 'Red' })(await each.form());
    await again;
    expect(resultsOnDisk(each.home, sessionId)).toEqual(['success/success output']);
  }
});

test('[BT-6] a client that advertised forms and knows none is asked by permission, and never by form again', async () => {
  for (const [code, args, buttons] of [
    [-32601, [], ['Submit', 'Cancel']],
    [-32602, ['--plain-client'], ['Red', 'Blue', 'Skip']],
  ] as const) {
    const peer = await start({ args });
    for (const round of [1, 2]) {
      const sessionId = await peer.newSession();
      const turn = peer.prompt(sessionId, '[[ask1]]');
      if (round === 1) refuse(code)(await peer.form());
      const asked = await peer.question();
      expect(asked.params.options.map(({ name }) => name)).toEqual(buttons);
      asked.answer(submit({ 0: 'Blue' }));
      await turn;
      expect(endOf(peer, sessionId)).toEqual(answered('**Colour**: Blue'));
    }
    expect(sent(peer, 'elicitation/create')).toHaveLength(1);
  }
});

test('[BT-6, ACP-7] a cancelled turn withdraws the form and takes no late answer', async () => {
  const peer = await start();
  const sessionId = await peer.newSession();
  const turn = peer.prompt(sessionId, '[[ask1]]');
  const form = await peer.form();
  await peer.notify('session/cancel', { sessionId });
  expect((await turn).stopReason).toBe('cancelled');
  accept({ question_1: 'Red' })(form);
  await peer.roundTrip();
  expect(form.signal.aborted).toBe(true);
  expect(sent(peer, '$/cancel_request').map(({ params }) => params.requestId)).toEqual([form.id]);
  expect(resultsOnDisk(peer.home, sessionId)).toEqual(['cancelled/not_started error']);
});

test('[BT-1, BT-6] SIGTERM and EOF leave a form open', async () => {
  for (const end of [(peer: Peer) => peer.kill('SIGTERM'), (peer: Peer) => peer.eof()]) {
    const peer = await start();
    const sessionId = await peer.newSession();
    peer.prompt(sessionId, '[[ask1]]').catch(() => {});
    await peer.form();
    expect(await end(peer)).toEqual({ code: 0, signal: null });
    expect(responseIds(peer.home.records(sessionId))).toEqual([]);
  }
});

test('[BT-6, BT-13, ACP-1] only a client that advertises forms, and is no daemon, gets one', async () => {
  const form = { form: {} };
  const daemon = (name: string) => ({ ...FORMS, clientInfo: { name, version: '1' } });
  const clients: readonly object[] = [
    { clientCapabilities: { elicitation: {} } },
    { clientCapabilities: { elicitation: { url: {} } } },
    { clientCapabilities: { elicitation: { form: null } } },
    { clientCapabilities: { elicitation: 5 } },
    daemon('qwen-serve-bridge'),
    daemon('qwen-acp-serve'),
  ];
  const home = new Home();
  // One process: every `initialize` says anew who the client is.
  const peer = await Peer.start({ home, restore: true, initialize: { clientCapabilities: { elicitation: form } } });
  for (const client of clients) {
    const answer = await peer.request('initialize', { protocolVersion: 1, clientCapabilities: {}, ...client });
    expect(JSON.stringify(answer)).not.toContain('elicitation');
    const sessionId = await peer.newSession();
    const { turn, asked } = await peer.askIn(sessionId);
    expect(asked.params.options.map(({ optionId }) => optionId)).toEqual(['proceed_once', 'cancel']);
    asked.answer(submit({ 0: 'Red' }));
    await turn;
  }
  expect(sent(peer, 'elicitation/create')).toEqual([]);
});
