import fc from 'fast-check';
import { expect, test } from 'vitest';
import { zRequestPermissionRequest } from '../../node_modules/@agentclientprotocol/sdk/dist/v1/schema/zod.gen.js';
import { askPlainly } from '../../src/acp/plain.ts';
import type { Question, QuestionReply } from '../../src/session/ports.ts';
import { outcomeOf } from '../../src/session/question.ts';
import { CANCELLED, submit, unattended } from '../support/peer.ts';
import { COLOUR, PARTS } from '../support/questions.ts';

const SIZE: Question = { ...COLOUR, question: 'Which size?', header: 'Size', options: [option('S'), option('L')] };
const pressed = (optionId: string) => ({ outcome: { outcome: 'selected', optionId } });

function option(label: string) {
  return { label, description: `about ${label}` };
}

/** Plays the client: each result answers the next request, `button:NAME` the option of that name. */
function play(questions: readonly Question[], results: readonly unknown[]) {
  const asking = askPlainly({ sessionId: 's', callId: 'c', questions, args: { questions }, introduce: false });
  const requests: { title: string; buttons: string[]; text: string; ids: string[] }[] = [];
  let step = asking.next();
  for (const result of results) {
    if (step.done) throw new Error('asked no more');
    expect(zRequestPermissionRequest.safeParse(step.value).success).toBe(true);
    const { options, toolCall } = step.value;
    const [content] = toolCall.content ?? [];
    const text = content?.type === 'content' && content.content.type === 'text' ? content.content.text : '';
    requests.push({
      title: toolCall.title ?? '',
      buttons: options.map(({ name, kind }) => (kind === 'allow_once' ? name : `${name} (${kind})`)),
      text,
      ids: options.map(({ optionId }) => optionId),
    });
    const name = typeof result === 'string' ? result : undefined;
    const button = options.find((each) => each.name === name);
    if (name !== undefined && button === undefined) throw new Error(`no button ${name}`);
    step = asking.next(button ? pressed(button.optionId) : result);
  }
  return { requests, reply: step.done ? step.value : undefined };
}

function told(questions: readonly Question[], reply: QuestionReply | undefined): unknown {
  if (reply === undefined) return 'still asking';
  const outcome = outcomeOf(questions, reply);
  return outcome.kind === 'answered'
    ? outcome.answers.map(({ header, answer }) => `${header}=${answer}`)
    : outcome.kind;
}

test('[BT-6] a single choice has a button each, and Skip; what they mean can be read', () => {
  const { requests, reply } = play([COLOUR], ['Blue']);
  expect(requests).toEqual([
    {
      title: 'Which colour?',
      buttons: ['Red', 'Blue', 'Skip (reject_once)'],
      text: 'Which colour?\n- Red: warm\n- Blue: cold',
      ids: ['choice_0', 'choice_1', 'cancel'],
    },
  ]);
  expect(told([COLOUR], reply)).toEqual(['Colour=Blue']);
});

test('[BT-6] of a multi-select each press takes a choice or gives it back, until the person is done', () => {
  const { requests, reply } = play([PARTS], ['Gamma', 'Beta', '✓ Beta', 'Alpha', 'Done (2)']);
  expect(requests.map(({ buttons }) => buttons.slice(0, -1))).toEqual([
    ['Alpha', 'Beta', 'Gamma'],
    ['Done (1)', 'Alpha', 'Beta', '✓ Gamma'],
    ['Done (2)', 'Alpha', '✓ Beta', '✓ Gamma'],
    ['Done (1)', 'Alpha', 'Beta', '✓ Gamma'],
    ['Done (2)', '✓ Alpha', 'Beta', '✓ Gamma'],
  ]);
  expect(requests.map(({ text }) => text.split('\n').at(-1))).toEqual([
    'Choose one after the other.',
    'Chosen: Gamma',
    'Chosen: Beta, Gamma',
    'Chosen: Gamma',
    'Chosen: Alpha, Gamma',
  ]);
  expect(told([PARTS], reply)).toEqual(['Parts=Alpha, Gamma']);
});

const ALL = [COLOUR, PARTS, SIZE];
const PLAYS: readonly (readonly [string, readonly unknown[], unknown])[] = [
  ['each answered', ['Red', 'Beta', 'Done (1)', 'L'], ['Colour=Red', 'Parts=Beta', 'Size=L']],
  ['the first skipped', ['Skip', 'Beta', 'Done (1)', 'L'], ['Parts=Beta', 'Size=L']],
  ['a multi-select skipped with something chosen', ['Red', 'Beta', 'Skip', 'L'], ['Colour=Red', 'Size=L']],
  ['the last skipped', ['Red', 'Skip', 'Skip'], ['Colour=Red']],
  ['all skipped', ['Skip', 'Skip', 'Skip'], 'declined'],
  ['cancelled at the second', ['Red', CANCELLED], 'declined'],
  ['nobody there at the third', ['Red', 'Skip', unattended('timeout')], 'unattended'],
  ['an option that was not offered', ['Red', pressed('choice_7')], 'failed'],
  ['a choice of no number', [pressed('choice_x')], 'failed'],
  ['an empty option', [pressed('')], 'failed'],
  ['done with nothing chosen', ['Red', pressed('done')], 'failed'],
  ['done where one is chosen', [pressed('done')], 'failed'],
  ['a flat result', [{ optionId: 'choice_0' }], 'failed'],
  ['null', [null], 'failed'],
  ['the answers at once', [submit({ 0: 'teal', 1: ['Alpha'] })], ['Colour=teal', 'Parts=Alpha']],
  ['the answers at the second', ['Red', submit({ 0: 'Blue', 2: 'S' })], ['Colour=Blue', 'Size=S']],
  ['Submit without an answer', ['Red', submit(undefined)], []],
  [
    'a client that presses the first button always',
    ['Red', 'Alpha', 'Done (1)', 'S'],
    ['Colour=Red', 'Parts=Alpha', 'Size=S'],
  ],
];

test('[BT-6, RS-3, RS-5, RS-6, RS-7] three questions are asked one after the other; what each way through means', () => {
  const meant = PLAYS.map(([name, results]) => [name, told(ALL, play(ALL, results).reply)]);
  expect(meant).toEqual(PLAYS.map(([name, , expected]) => [name, expected]));
  expect(play(ALL, ['Red', 'Skip', 'S']).requests.map(({ title }) => title)).toEqual([
    '1 of 3: Which colour?',
    '2 of 3: Which parts?',
    '3 of 3: Which size?',
  ]);
});

test('[BT-6, ACP-13] a client that toggles for ever is not asked for ever', () => {
  const toggling = Array.from({ length: 32 }, () => pressed('choice_0'));
  expect(told([PARTS], play([PARTS], toggling).reply)).toBe('failed');
});

test('[BT-6, RS-7] no row of results throws, and no answer is invented', () => {
  const wrong = fc.oneof(fc.constantFrom('choice_9', 'done', 'proceed_once', '__proto__').map(pressed), fc.jsonValue());
  const result = fc.oneof({ weight: 15, arbitrary: fc.nat({ max: 11 }) }, { weight: 1, arbitrary: wrong });
  const labels = new Set(ALL.flatMap(({ options }) => options.map(({ label }) => label)));
  let answered = 0;
  fc.assert(
    fc.property(fc.array(result, { minLength: 100, maxLength: 100 }), (results) => {
      const asking = askPlainly({ sessionId: 's', callId: 'c', questions: ALL, args: {}, introduce: false });
      let step = asking.next();
      for (const each of results) {
        if (step.done) break;
        const { options } = step.value;
        step = asking.next(typeof each === 'number' ? pressed(options[each % options.length]?.optionId ?? '') : each);
      }
      if (!step.done) throw new Error('asks for ever');
      const outcome = outcomeOf(ALL, step.value);
      if (outcome.kind !== 'answered' || outcome.answers.length === 0) return;
      answered += 1;
      for (const { answer } of outcome.answers) {
        expect(answer.split(', ').filter((label) => !labels.has(label))).toEqual([]);
      }
    }),
    { numRuns: 200 },
  );
  expect(answered).toBeGreaterThan(50);
});
