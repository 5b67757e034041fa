import { expect, test } from 'vitest';
import { Home, Peer } from '../support/peer.ts';
import { asks, COLOUR, cards, dangling, FEATURES, saidIn } from '../support/sessions.ts';

const NONE = 'no answer';

/** What the client sends beside the outcome, and what it comes to: the header and answer of each, or none. */
const ANSWERS: Readonly<Record<string, readonly [unknown, unknown, string]>> = {
  'a choice': [{ 0: 'Red' }, undefined, 'Colour: Red'],
  'free text': [{ 0: 'Something else: mauve' }, undefined, 'Colour: Something else: mauve'],
  'a list for a multi-select': [{ 1: ['Alpha', 'Gamma'] }, undefined, 'Features: Alpha, Gamma'],
  'a list of one': [{ 1: ['Beta'] }, undefined, 'Features: Beta'],
  'joined text for a multi-select': [{ 1: 'Alpha, Gamma' }, undefined, 'Features: Alpha, Gamma'],
  'both, in the order of the questions': [{ 1: 'Beta', 0: 'Blue' }, undefined, 'Colour: Blue; Features: Beta'],
  'one valid among others': [{ 0: 'Red', 1: 3, 2: 'x', 7: 'y', '00': 'z' }, undefined, 'Colour: Red'],
  'in _meta': [undefined, { 0: 'Red' }, 'Colour: Red'],
  'in both, the root wins': [{ 0: 'Red' }, { 0: 'Blue' }, 'Colour: Red'],
  'none at the root, one in _meta': [{}, { 1: ['Beta'] }, 'Features: Beta'],
  'a list at the root, one in _meta': [['Red'], { 0: 'Blue' }, 'Colour: Blue'],
  'no answers': [undefined, undefined, NONE],
  'no key': [{}, undefined, NONE],
  'a key out of range': [{ 7: 'Red' }, undefined, NONE],
  'a key that is no canonical index': [{ '00': 'Red', '-1': 'Red', '0.0': 'Red', ' 0': 'Red' }, undefined, NONE],
  'the question as key': [{ 'Which colour?': 'Red', Colour: 'Red' }, undefined, NONE],
  'an inherited key': [JSON.parse('{"__proto__": {"0": "Red"}}'), undefined, NONE],
  'empty text': [{ 0: '' }, undefined, NONE],
  'an empty list': [{ 1: [] }, undefined, NONE],
  'a list with an empty label': [{ 1: ['Alpha', ''] }, undefined, NONE],
  'a list with a number': [{ 1: ['Alpha', 3] }, undefined, NONE],
  'a list for a single choice': [{ 0: ['Red'] }, undefined, NONE],
  'other types': [{ 0: 3, 1: true }, undefined, NONE],
  'null and an object': [{ 0: null, 1: { label: 'Alpha' } }, undefined, NONE],
  'a list as answers': [['Red', 'Alpha'], undefined, NONE],
  'text as answers': ['Red', undefined, NONE],
  'null as answers': [null, null, NONE],
};

test('[RS-3, K032, K033] answers are read from the root or _meta, by index, and fail the call when there is none', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const got: Record<string, string> = {};
  for (const [name, [root, inMeta]] of Object.entries(ANSWERS)) {
    const sessionId = dangling(home, asks('call_1', COLOUR, FEATURES));
    await peer.load(sessionId);
    const turn = peer.restore(sessionId);
    (await peer.question()).answer({
      outcome: { outcome: 'selected', optionId: 'proceed_once' },
      ...(root !== undefined && { answers: root }),
      ...(inMeta !== undefined && { _meta: { 'qwen.answers': inMeta } }),
    });
    expect(await turn).toEqual({ stopReason: 'end_turn' });
    got[name] = readOf(peer, sessionId);
  }
  expect(got).toEqual(Object.fromEntries(Object.entries(ANSWERS).map(([name, [, , answer]]) => [name, answer])));
});

/** The answers as the client, the model and the disk were given them; they must agree. */
function readOf(peer: Peer, sessionId: string): string {
  const result = peer.home.records(sessionId).find(({ type }) => type === 'tool_result');
  const { response } = result.message.parts[0].functionResponse;
  const update = peer.updates(sessionId).find(({ sessionUpdate }) => sessionUpdate === 'tool_call_update');
  const text = response.output ?? response.error;
  expect(update).toMatchObject({ content: [{ content: { text } }] });
  expect(saidIn(peer, sessionId)).toBe(`TOOL RESULT ECHO: ${text}`);
  if (cards(peer, sessionId)[0] === 'failed') {
    expect(Object.keys(response)).toEqual(['error']);
    return NONE;
  }
  const { answers, ...rest } = result.toolCallResult.resultDisplay;
  expect(update).toMatchObject({ rawOutput: { type: 'ask_user_question_answers', text, answers } });
  expect(rest).toEqual({ type: 'ask_user_question_answers', text });
  const lines: string[] = text.split('\n').filter((line: string) => line.startsWith('**'));
  const headers: Record<string, string> = { [COLOUR.question]: 'Colour', [FEATURES.question]: 'Features' };
  expect(
    answers.map((one: { question: string; answer: string }) => `**${headers[one.question]}**: ${one.answer}`),
  ).toEqual(lines);
  return lines.map((line) => line.replaceAll('**', '')).join('; ');
}
