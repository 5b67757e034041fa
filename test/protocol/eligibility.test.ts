import { expect, test } from 'vitest';
import { Home, Peer, RESTORE } from '../support/peer.ts';
import {
  asks,
  COLOUR,
  call,
  cards,
  type Entry,
  FEATURES,
  modelSays,
  place,
  system,
  toolAnswers,
  userSays,
} from '../support/sessions.ts';

const question = asks('call_1', COLOUR);
const readFile = call('call_2', 'read_file', { file_path: '/srv/project/a.txt' });
const option = (label: string) => ({ label, description: 'about it' });

/** The entries after a first prompt, and what a load makes of their calls: asked again (`open`) or given up (`lost`). */
const TAILS: Readonly<Record<string, readonly [readonly Entry[], readonly string[]]>> = {
  'a question': [[modelSays(question)], ['open']],
  'four questions in one call': [[modelSays(asks('call_1', COLOUR, FEATURES, COLOUR, FEATURES))], ['open']],
  'two calls': [[modelSays(question, asks('call_2', FEATURES))], ['open', 'open']],
  'text beside the call': [[modelSays({ text: 'Let me ask.' }, question, { text: 'So?' })], ['open']],
  'a thought beside the call': [[modelSays({ text: 'hm', thought: true }, question)], ['open']],
  'a call of another tool without an id': [
    [modelSays(question, call(undefined, 'run_shell_command', { command: 'ls' }))],
    ['open', 'lost'],
  ],
  'a question without an id beside it': [[modelSays(asks(undefined, COLOUR), question)], ['lost', 'open']],
  'extra properties': [
    [modelSays(call('call_1', 'ask_user_question', { questions: [{ ...COLOUR, why: 1 }], metadata: { source: 'x' } }))],
    ['open'],
  ],
  'a long header': [[modelSays(asks('call_1', { ...COLOUR, header: 'H'.repeat(500) }))], ['open']],
  'system records after it': [[modelSays(question), system('ui_telemetry'), system('unheard_of', { a: 1 })], ['open']],
  'a question after an answered one': [
    [modelSays(asks('call_0', COLOUR)), toolAnswers('call_0', { output: 'x' }), modelSays(question)],
    ['done', 'open'],
  ],
  'only a call without an id': [[modelSays(asks(undefined, COLOUR))], ['lost']],
  'only a call with an empty id': [[modelSays(asks('', COLOUR))], ['lost']],
  'no question': [[modelSays(asks('call_1'))], ['lost']],
  'five questions': [[modelSays(asks('call_1', COLOUR, COLOUR, COLOUR, COLOUR, COLOUR))], ['lost']],
  'one option': [[modelSays(asks('call_1', { ...COLOUR, options: [option('a')] }))], ['lost']],
  'five options': [[modelSays(asks('call_1', { ...COLOUR, options: [...'abcde'].map(option) }))], ['lost']],
  'a blank label': [[modelSays(asks('call_1', { ...COLOUR, options: [option('a'), option(' ')] }))], ['lost']],
  'a blank question': [[modelSays(asks('call_1', { ...COLOUR, question: ' \n' }))], ['lost']],
  'no header': [[modelSays(asks('call_1', { ...COLOUR, header: undefined }))], ['lost']],
  'multiSelect in words': [[modelSays(asks('call_1', { ...COLOUR, multiSelect: 'true' }))], ['lost']],
  'arguments in words': [
    [modelSays(call('call_1', 'ask_user_question', JSON.stringify({ questions: [COLOUR] })))],
    ['lost'],
  ],
  'one valid, one not': [[modelSays(question, asks('call_2'))], ['lost', 'lost']],
  'another tool after it': [[modelSays(question, readFile)], ['lost', 'lost']],
  'another tool before it': [[modelSays(readFile, question)], ['lost', 'lost']],
  'another tool with the arguments of a question': [
    [modelSays(question, call('call_2', 'poll', { questions: [COLOUR] }))],
    ['lost', 'lost'],
  ],
  'another tool alone': [[modelSays(readFile)], ['lost']],
  'half of the batch persisted': [
    [modelSays(question, asks('call_2', COLOUR)), toolAnswers('call_1', { output: 'Red' })],
    ['done', 'lost'],
  ],
  'a later message of the user': [[modelSays(question), userSays('never mind')], ['lost']],
  'a later turn': [[modelSays(question), userSays('never mind'), modelSays({ text: 'fine' })], ['lost']],
  'an answer': [[modelSays(question), toolAnswers('call_1', { output: 'Red' })], ['done']],
  'a decline': [[modelSays(question), toolAnswers('call_1', { error: 'declined' })], ['lost']],
  'no call': [[modelSays({ text: 'done' })], []],
};

const WORDS: Readonly<Record<string, string>> = { in_progress: 'open', completed: 'done', failed: 'lost' };
const BULK = { 'qwen.session.loadReplayMode': 'bulk' };

test('[EL-1, EL-2, EL-3, LS-1, LS-3, RS-1, K007, K024, K051] which tails are asked again: streamed, in bulk, resumed and asked', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const seen: Record<string, unknown> = {};
  for (const [name, [entries, expected]] of Object.entries(TAILS)) {
    const [streamed, bulk, resumed] = [1, 2, 3].map(() => place(home, userSays('go'), ...entries)) as [
      string,
      string,
      string,
    ];
    const hints = [await peer.load(streamed), await peer.load(bulk, BULK), await peer.resume(resumed)].map(
      ({ _meta }) => _meta[RESTORE],
    );
    expect(new Set(hints), name).toEqual(new Set([expected.includes('open') ? true : undefined]));
    const shown = cards(peer, streamed).map((status) => WORDS[status]);
    expect(shown, name).toEqual(expected);
    seen[name] = [shown, await askedIn(peer, streamed, expected), await askedIn(peer, resumed, expected)];
  }
  const wanted = Object.entries(TAILS).map(([name, [, expected]]) => {
    const open = expected.filter((word) => word === 'open').length;
    return [name, [expected, open, open]];
  });
  expect(seen).toEqual(Object.fromEntries(wanted));
});

test('[LS-3, K007] a bulk replay leaves the same cards as a streamed one', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const differences: string[] = [];
  for (const [name, [entries, expected]] of Object.entries(TAILS)) {
    const { _meta } = await peer.load(place(home, userSays('go'), ...entries), BULK);
    const statuses = new Map<string, string>();
    for (const { toolCallId, status } of _meta['qwen.session.loadReplay'].updates) {
      if (toolCallId) statuses.set(toolCallId, WORDS[status] ?? status);
    }
    if ([...statuses.values()].join() !== expected.join()) differences.push(name);
  }
  expect(differences).toEqual([]);
});

/** How many questions a restore prompt asks; each is answered. */
async function askedIn(peer: Peer, sessionId: string, expected: readonly string[]): Promise<number> {
  const before = peer.wire.length;
  const turn = peer.restore(sessionId);
  for (const word of expected) {
    if (word !== 'open') continue;
    (await peer.question()).answer({
      outcome: { outcome: 'selected', optionId: 'proceed_once' },
      answers: { 0: 'Red' },
    });
  }
  expect(await turn).toEqual({ stopReason: 'end_turn' });
  return peer.wire
    .slice(before)
    .filter(
      ({ dir, message }) => dir === 'in' && 'method' in message && message.method === 'session/request_permission',
    ).length;
}
