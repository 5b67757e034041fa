import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { callIds, cards, kinds, responseIds, sent } from '../support/evidence.ts';
import { expectPaired, geminiPeer, seenBy } from '../support/gemini-peer.ts';
import {
  type Asked,
  CANCELLED,
  CWD,
  Home,
  Peer,
  RECORDED_SCRIPT,
  RESTORE,
  submit,
  unattended,
} from '../support/peer.ts';
import { asks, COLOUR, dangling, FEATURES, saidIn } from '../support/sessions.ts';

// biome-ignore lint/suspicious/noExplicitAny: updates and records of every form
type Any = any;

const NOBODY = '11111111-1111-4111-8111-111111111111';
const notFound = (sessionId: string) => ({ code: -32002, data: { uri: `session:${sessionId}`, sessionId } });

/** What comes before the words `never mind`. A daemon does not let it come to this: it has them wait for the answer (RS-9). */
const BEFORE: readonly (readonly [string, (peer: Peer, id: string) => Promise<unknown>])[] = [
  ['right after the load', async () => {}],
  [
    'while the question waits',
    async (peer, id) => {
      peer.restore(id);
      await peer.question();
    },
  ],
  [
    'in one go with the restore prompt',
    async (peer, id) => {
      peer.restore(id);
    },
  ],
  [
    'after its wait has ended',
    async (peer, id) => {
      const turn = peer.restore(id);
      let asked = await peer.question();
      // Questions that were withdrawn before anybody took them are still there.
      while (asked.params.sessionId !== id) asked = await peer.question();
      asked.answer(unattended('timeout'));
      await turn;
    },
  ],
];

test('[LS-6, RS-9, BT-5, K006, K004, K027] words instead of an answer: the model sees the call closed, before them, and nobody blamed', async () => {
  const { server, home, peer } = await geminiPeer();
  for (const [name, before] of BEFORE) {
    const id = dangling(home, asks('call_1', COLOUR), asks('call_2', FEATURES));
    await peer.load(id);
    const from = peer.wire.length;
    await before(peer, id);
    expect(await peer.prompt(id, 'never mind'), name).toMatchObject({ stopReason: 'end_turn' });
    const { body } = server.requests.at(-1) as (typeof server.requests)[number];
    expect(seenBy(body), name).toEqual([
      'user: go',
      'model: call call_1, call call_2',
      'user: call_1 failed, call_2 failed',
      'user: never mind',
    ]);
    expectPaired(body);
    const asked = sent(peer, 'session/request_permission', from).map(({ id: own }) => own);
    const withdrawn = sent(peer, '$/cancel_request', from).map(({ params }) => params.requestId);
    expect(withdrawn, name).toEqual(name === 'after its wait has ended' ? [] : asked);
    expect(responseIds(home.records(id)), name).toEqual(['call_1', 'call_2']);
    const errors = body.contents[2].parts.map(({ functionResponse }: Any) => functionResponse.response.error);
    for (const error of errors) expect(error, name).not.toMatch(BLAME);
  }
  expect(server.requests).toHaveLength(BEFORE.length);
});

/** Words that say somebody decided what nobody did. */
const BLAME =
  /(user|person|you)\b[^.]*\b(declin|reject|cancel|dismiss|interrupt|refus|skip)|(by the|by a) (user|person)/i;

test('[ACP-7, RS-6, K046] a client that answers a cancel with the cancelled outcome, as the protocol has it, cancels the turn and declines nothing', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  for (const restored of [false, true]) {
    const id = restored ? dangling(home, asks('call_1', COLOUR)) : await peer.newSession();
    if (restored) await peer.load(id);
    const turn = restored ? peer.restore(id) : peer.prompt(id, '[[ask1]]');
    const asked = await peer.question();
    const from = peer.wire.length;
    const cancelling = peer.notify('session/cancel', { sessionId: id });
    asked.answer(CANCELLED);
    await cancelling;
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect(sent(peer, 'session/request_permission', from)).toEqual([]);
    // A question that was asked again stays open (RS-6), so that the cancel is all that is written.
    expect(kinds(home.records(id)).slice(-2)).toEqual([restored ? 'assistant' : 'tool_result', 'system/turn_result']);
    expect((await peer.load(id))._meta?.[RESTORE]).toBe(restored ? true : undefined);
  }
});

test('[ACP-7, RS-8, K013] a cancel that was answered is known after kill -9: the next process has nothing to go on with', async () => {
  const home = new Home();
  const left: string[] = [];
  // The last says nothing, so that only the cancel itself tells its prompt from one that was killed.
  const script = { rules: [{ when: { text: '[[silent]]' }, steps: [{ wait: 'abort' }] }, ...RECORDED_SCRIPT.rules] };
  for (const words of ['[[ask1]]', '[[stream]]', '[[silent]]']) {
    const peer = await Peer.start({ home, restore: true, script });
    const id = await peer.newSession();
    const turn = peer.prompt(id, words);
    if (words === '[[silent]]') await expect.poll(() => kinds(home.records(id))).toContain('user');
    else await peer.until(() => peer.said() !== '' || cards(peer, id).length > 0);
    await peer.notify('session/cancel', { sessionId: id });
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    await peer.kill();
    left.push(id);
  }
  const next = await Peer.start({ home, restore: true });
  for (const id of left) {
    expect((await next.load(id))._meta).not.toHaveProperty(RESTORE);
    const onDisk = home.bytes(id);
    const verdict = await next.request('qwen/control/session/continue', { sessionId: id });
    expect(verdict).toEqual({ accepted: false, interruption: 'none' });
    const goOn = { sessionId: id, prompt: [], _meta: { 'qwen.daemon.continueLastTurn': true } };
    expect(await next.request('session/prompt', goOn)).toEqual({ stopReason: 'end_turn' });
    expect(home.bytes(id).equals(onDisk)).toBe(true);
  }
});

test('[BT-1, RS-6, K027] with a process for every message the next one asks again, and no text that the loss leaves blames a person', async () => {
  const home = new Home();
  const texts: string[] = [];
  let id = '';
  for (let run = 0; run < 3; run++) {
    const peer = await Peer.start({ home, restore: true });
    if (run === 0) id = await peer.newSession();
    else expect((await peer.load(id))._meta[RESTORE]).toBe(true);
    const turn = run === 0 ? peer.prompt(id, '[[ask1]]') : peer.restore(id);
    turn.catch(() => {});
    const asked = await peer.question();
    if (run === 2) {
      asked.answer(submit({ 0: 'Blue' }));
      expect(await turn).toEqual({ stopReason: 'end_turn' });
    }
    await peer.eof();
    texts.push(...cardTexts(peer, id));
  }
  expect(home.bytes(id).toString()).not.toMatch(/"(error|status)":"?(cancelled|error|\{)/);
  expect(responseIds(home.records(id))).toEqual(callIds(home.records(id)));
  expect(texts).toHaveLength(3);
  for (const text of texts) expect(text).not.toMatch(BLAME);
});

test('[RS-6, LS-5, K027, K028, K025] with the switch off what nobody decided is closed without blame; its card keeps the question with all choices', async () => {
  const home = new Home();
  const left: string[] = [];
  const lose = async (peer: Peer, end: (asked: Asked) => unknown) => {
    const id = await peer.newSession();
    const { turn, asked } = await peer.askIn(id);
    await end(asked);
    await Promise.race([turn.catch(() => {}), peer.exited]);
    for (const text of cardTexts(peer, id)) expect(text).not.toMatch(BLAME);
    left.push(id);
  };
  const [first, second] = [await Peer.start({ home }), await Peer.start({ home })];
  await lose(first, (asked) => asked.answer(unattended('timeout')));
  await lose(first, (asked) => asked.answer(unattended('session_closed')));
  await lose(first, () => first.eof());
  await lose(second, () => second.kill());
  const next = await Peer.start({ home });
  for (const id of left) {
    await next.load(id);
    const [card, ...more] = next.updates(id).filter((update) => 'toolCallId' in update) as Any[];
    expect(card).toMatchObject({
      sessionUpdate: 'tool_call',
      rawInput: { questions: [{ question: 'Which colour?', options: [{ label: 'Red' }, { label: 'Blue' }] }] },
    });
    // An update replaces only what it names.
    expect(more).toMatchObject([{ toolCallId: card.toolCallId, status: 'failed' }]);
    expect(more[0]).not.toHaveProperty('rawInput');
    for (const text of cardTexts(next, id)) expect(text).not.toMatch(BLAME);
    await next.prompt(id, 'never mind');
    const result = home.records(id).find(({ type }) => type === 'tool_result');
    expect(result.message.parts[0].functionResponse.response.error).not.toMatch(BLAME);
  }
});

test('[ACP-4, ACP-2, K072, K074, K080] an unknown session is refused at once, as often as it is asked for, and leaves nothing; a new one works', async () => {
  const peer = await Peer.start({ restore: true });
  const { home } = peer;
  const gone = home.place('c0.dangling');
  await peer.request('session/delete', { sessionId: gone });
  const before = readdirSync(home.path, { recursive: true });
  for (const id of [NOBODY, gone]) {
    for (let times = 0; times < 20; times++) await expect(peer.resume(id)).rejects.toMatchObject(notFound(id));
    await expect(peer.load(id)).rejects.toMatchObject(notFound(id));
    await expect(peer.restore(id)).rejects.toMatchObject(notFound(id));
  }
  expect((await peer.request('session/list', { cwd: CWD })).sessions).toEqual([]);
  expect(readdirSync(home.path, { recursive: true })).toEqual(before);
  const id = await peer.newSession();
  expect(await peer.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' });
  expect(peer.stderr).toBe('');
});

test('[RS-1, ACP-14, LS-5, K097] with the switch off the restore key asks nothing of the model: an empty prompt that bears it is refused', async () => {
  const home = new Home();
  const peer = await Peer.start({ home });
  const id = dangling(home, asks('call_1', COLOUR));
  await peer.load(id);
  const onDisk = home.bytes(id);
  for (const prompt of [
    [],
    [{ type: 'text', text: '' }],
    [
      { type: 'text', text: '' },
      { type: 'text', text: '' },
    ],
  ]) {
    const request = { sessionId: id, prompt, _meta: { [RESTORE]: true } };
    await expect(peer.request('session/prompt', request)).rejects.toMatchObject({ code: -32602 });
  }
  expect([saidIn(peer, id), peer.unanswered]).toEqual(['', 0]);
  expect(home.bytes(id).equals(onDisk)).toBe(true);
});

test('[RS-2, RS-3, K033] what the child asks has the keys of the protocol and no others', async () => {
  const peer = await Peer.start({ restore: true });
  const id = await peer.newSession();
  const { turn, asked } = await peer.askIn(id);
  const { params } = asked as Any;
  // The answers that come back are at the root all the same, or in `_meta` (RS-3): clients of the reference put them there.
  const known = ['_meta', 'options', 'sessionId', 'toolCall'];
  expect(Object.keys(params).filter((key) => !known.includes(key))).toEqual([]);
  const card = ['_meta', 'content', 'kind', 'locations', 'rawInput', 'rawOutput', 'status', 'title', 'toolCallId'];
  expect(Object.keys(params.toolCall).filter((key) => !card.includes(key))).toEqual([]);
  for (const option of params.options) expect(Object.keys(option).sort()).toEqual(['kind', 'name', 'optionId']);
  asked.answer(submit({ 0: 'Red' }));
  await turn;
});

/** The texts that the cards of a session's calls were closed with. */
function cardTexts(peer: Peer, sessionId: string): string[] {
  return peer
    .updates(sessionId)
    .flatMap((update: Any) => (update.sessionUpdate === 'tool_call_update' ? update.content : []))
    .map(({ content }) => content.text);
}
