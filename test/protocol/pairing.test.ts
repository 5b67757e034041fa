import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { expectPaired, geminiPeer, seenBy } from '../support/gemini-peer.ts';
import { chunk } from '../support/gemini-server.ts';
import { ask, type Home, RESTORE, submit } from '../support/peer.ts';
import { SESSION, Writer } from '../support/transcripts.ts';

const QUESTION = ask('Which colour?', 'Colour', ['Red', 'Blue']).args;
const go = () => new Writer().user('u1', 'go');
const message = (role: string, ...parts: object[]) => ({ message: { role, parts } });
const question = (id: string) => ({ functionCall: { id, name: 'ask_user_question', args: QUESTION } });
const response = (id: string | undefined, output: string) => ({
  functionResponse: { ...(id && { id }), name: 'glob', response: { output } },
});

function place(home: Home, transcript: Writer): string {
  const id = randomUUID();
  mkdirSync(dirname(home.file(id)), { recursive: true });
  writeFileSync(home.file(id), transcript.text().replaceAll(SESSION, id));
  return id;
}

/** Histories, and what the model sees of each with the prompt `next`. */
const HISTORIES: readonly (readonly [string, Writer, readonly string[]])[] = [
  [
    'a call that later text has overtaken',
    go().calls('a1', ['c1']).user('u2', 'never mind').says('a2', 'fine'),
    ['user: go', 'model: call c1', 'user: c1 failed, never mind', 'model: fine', 'user: next'],
  ],
  [
    'of two calls in the middle one without a response',
    go().calls('a1', ['c1', 'c2']).result('r2', 'c2', 'two').says('a2', 'so'),
    ['user: go', 'model: call c1, call c2', 'user: c1 failed, c2 two', 'model: so', 'user: next'],
  ],
  [
    'a response without a call',
    go().says('a1', 'hm').result('r9', 'c9', 'nine').says('a2', 'so'),
    ['user: go', 'model: hm', 'model: so', 'user: next'],
  ],
  [
    'two responses to one call',
    go().calls('a1', ['c1']).result('r1', 'c1', 'one').result('r2', 'c1', 'again').says('a2', 'so'),
    ['user: go', 'model: call c1', 'user: c1 one', 'model: so', 'user: next'],
  ],
  [
    'responses in another order than their calls',
    go().calls('a1', ['c1', 'c2']).result('r2', 'c2', 'two').result('r1', 'c1', 'one').says('a2', 'so'),
    ['user: go', 'model: call c1, call c2', 'user: c1 one, c2 two', 'model: so', 'user: next'],
  ],
  [
    'a response behind later text',
    go().calls('a1', ['c1']).user('u2', 'well?').result('r1', 'c1', 'one').says('a2', 'so'),
    ['user: go', 'model: call c1', 'user: c1 one, well?', 'model: so', 'user: next'],
  ],
  [
    'the results of parallel calls on sibling branches',
    go()
      .calls('a1', ['c1', 'c2'])
      .result('r1', 'c1', 'one', { parentUuid: 'a1' })
      .result('r2', 'c2', 'two', { parentUuid: 'a1' })
      .says('a2', 'so'),
    ['user: go', 'model: call c1, call c2', 'user: c1 one, c2 two', 'model: so', 'user: next'],
  ],
  [
    'a call id that a provider used again',
    go()
      .calls('a1', ['c1'])
      .result('r1', 'c1', 'one')
      .says('a2', 'so')
      .user('u2', 'more')
      .calls('a3', ['c1'])
      .result('r2', 'c1', 'two')
      .says('a4', 'so'),
    [
      'user: go',
      'model: call c1',
      'user: c1 one',
      'model: so',
      'user: more',
      'model: call c1',
      'user: c1 two',
      'model: so',
      'user: next',
    ],
  ],
  [
    'a call id that was answered before and dangles now',
    go().calls('a1', ['c1']).result('r1', 'c1', 'one').says('a2', 'so').user('u2', 'more').calls('a3', ['c1']),
    [
      'user: go',
      'model: call c1',
      'user: c1 one',
      'model: so',
      'user: more',
      'model: call c1',
      'user: c1 failed',
      'user: next',
    ],
  ],
  [
    'calls and responses without ids',
    go()
      .calls('a1', ['', ''])
      .add('r1', 'tool_result', message('user', response(undefined, 'one')))
      .says('a2', 'so'),
    ['user: go', 'model: call glob, call glob', 'user: glob one, glob failed', 'model: so', 'user: next'],
  ],
  [
    'a response to a call on an abandoned branch',
    go().calls('x1', ['c1']).result('r1', 'c1', 'one').says('a1', 'so', { parentUuid: 'u1' }),
    ['user: go', 'model: so', 'user: next'],
  ],
];

test('[TR-9, LS-6, TR-2, K024, K051] whatever the history holds, the model sees each call with one response, adjacent', async () => {
  const { server, home, peer } = await geminiPeer();
  for (const [name, transcript, expected] of HISTORIES) {
    const id = place(home, transcript);
    const before = home.bytes(id);
    await peer.load(id);
    expect(home.bytes(id)).toEqual(before);
    await peer.prompt(id, 'next');
    const { body } = server.requests.at(-1) as (typeof server.requests)[number];
    expect(seenBy(body), name).toEqual(expected);
    expectPaired(body);
  }
});

test('[TR-9, EL-1, RS-4] only the trailing call is restored: one in the middle is closed, under the same id too', async () => {
  const { server, home, peer } = await geminiPeer();
  for (const id of ['c1', 'c2']) {
    const transcript = go()
      .add('a1', 'assistant', message('model', question('c1')))
      .user('u2', 'never mind')
      .add('a2', 'assistant', message('model', question(id)));
    const sessionId = place(home, transcript);
    expect((await peer.load(sessionId))._meta[RESTORE]).toBe(true);
    const turn = peer.restore(sessionId);
    const asked = await peer.question();
    expect(asked.params.toolCall.toolCallId).toBe(id);
    asked.answer(submit({ 0: 'Red' }));
    await turn;
    expect(peer.unanswered).toBe(0);
    const { body } = server.requests.at(-1) as (typeof server.requests)[number];
    expect(seenBy(body)).toEqual([
      'user: go',
      'model: call c1',
      'user: c1 failed, never mind',
      `model: call ${id}`,
      `user: ${id} **Colour**: Red`,
    ]);
  }
});

test('[MD-5, TR-9] a provider that uses an id again gets its own ids back; the client sees distinct ones, after a restart too', async () => {
  const asks = { chunks: [chunk([question('c1')], 'STOP')] };
  const { server, home, peer, again } = await geminiPeer(asks, { chunks: [chunk([{ text: 'fine' }], 'STOP')] }, asks);
  const id = await peer.newSession();
  const first = await peer.askIn(id, 'one');
  first.asked.answer(submit({ 0: 'Red' }));
  await first.turn;
  const second = await peer.askIn(id, 'two');
  const shown = second.asked.params.toolCall.toolCallId;
  expect([first.asked.params.toolCall.toolCallId, shown]).toEqual(['c1', expect.not.stringMatching(/^c1$/)]);
  await peer.kill();

  const next = await again();
  await next.load(id);
  const turn = next.restore(id);
  const asked = await next.question();
  expect(asked.params.toolCall.toolCallId).toBe(shown);
  asked.answer(submit({ 0: 'Blue' }));
  await turn;
  expect(home.records(id).filter(({ type }) => type === 'tool_result')).toHaveLength(2);
  const { body } = server.requests.at(-1) as (typeof server.requests)[number];
  expect(seenBy(body)).toEqual([
    'user: one',
    'model: call c1',
    'user: c1 **Colour**: Red',
    'model: fine',
    'user: two',
    'model: call c1',
    'user: c1 **Colour**: Blue',
  ]);
  const cards = next.updates(id).flatMap((update) => (update.sessionUpdate === 'tool_call' ? [update.toolCallId] : []));
  expect(new Set(cards)).toEqual(new Set(['c1', shown]));
});
