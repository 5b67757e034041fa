import { ElicitationPropertySchema, CreateElicitationRequest as sdkRequest } from '@agentclientprotocol/sdk';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { elicitationReply, elicitationRequest, questionCard } from '../../src/acp/elicitation.ts';
import type { Question, QuestionReply } from '../../src/session/ports.ts';
import { outcomeOf } from '../../src/session/question.ts';
import { COLOUR, PARTS } from '../support/questions.ts';

const BOTH = [COLOUR, PARTS];
const asked = (questions: readonly Question[], introduce = false) => ({
  sessionId: 'session-1',
  callId: 'call-1',
  questions,
  args: { questions },
  introduce,
});
const accept = (content: unknown) => ({ action: 'accept', content });

/** What the model is told of a reply: the answers, or how it ended. */
function told(questions: readonly Question[], reply: QuestionReply): unknown {
  const outcome = outcomeOf(questions, reply);
  return outcome.kind === 'answered'
    ? outcome.answers.map(({ header, answer }) => `${header}=${answer}`)
    : outcome.kind;
}
const read = (result: unknown, questions: readonly Question[] = BOTH) =>
  told(questions, elicitationReply(questions, result));

test('[BT-6] a call of two questions is one form, tied to the call', () => {
  expect(elicitationRequest(asked(BOTH))).toEqual({
    sessionId: 'session-1',
    toolCallId: 'call-1',
    mode: 'form',
    message: 'The agent has 2 questions.',
    requestedSchema: {
      type: 'object',
      properties: {
        question_1: {
          type: 'string',
          title: 'Colour',
          description: 'Which colour?\n- Red: warm\n- Blue: cold',
          oneOf: [
            { const: 'Red', title: 'Red', description: 'warm' },
            { const: 'Blue', title: 'Blue', description: 'cold' },
          ],
        },
        question_1_other: {
          type: 'string',
          title: 'Colour: something else',
          description: 'Your own words, instead of a choice.',
        },
        question_2: {
          type: 'array',
          title: 'Parts',
          description: 'Which parts?\n- Alpha: part Alpha\n- Beta: part Beta\n- Gamma: part Gamma',
          items: {
            anyOf: ['Alpha', 'Beta', 'Gamma'].map((label) => ({
              const: label,
              title: label,
              description: `part ${label}`,
            })),
          },
        },
        question_2_other: {
          type: 'string',
          title: 'Parts: something else',
          description: 'Your own words, added to what you chose.',
        },
      },
    },
  });
  expect(elicitationRequest(asked([COLOUR])).message).toBe('Which colour?');
});

test('[BT-6, ACP-3] before the form the card shows the questions, and introduces a call that was not shown yet', () => {
  const shown = {
    toolCallId: 'call-1',
    status: 'pending',
    title: 'Ask user 2 questions',
    rawInput: { questions: BOTH },
  };
  const text = expect.stringContaining('Which parts?');
  const content = [{ type: 'content', content: { type: 'text', text } }];
  expect(questionCard(asked(BOTH))).toMatchObject({ ...shown, content, sessionUpdate: 'tool_call_update' });
  expect(questionCard(asked(BOTH, true))).toMatchObject({ ...shown, content, sessionUpdate: 'tool_call' });
});

const REPLIES: readonly (readonly [string, unknown, unknown])[] = [
  [
    'a choice of each',
    accept({ question_1: 'Blue', question_2: ['Alpha', 'Gamma'] }),
    ['Colour=Blue', 'Parts=Alpha, Gamma'],
  ],
  ['one of the two', accept({ question_2: ['Beta'] }), ['Parts=Beta']],
  ['typed instead of chosen', accept({ question_1: 'Red', question_1_other: ' teal ' }), ['Colour= teal ']],
  ['typed beside what was chosen', accept({ question_2: ['Beta'], question_2_other: 'Z' }), ['Parts=Beta, Z']],
  ['typed alone', accept({ question_1_other: 'teal', question_2_other: 'Z' }), ['Colour=teal', 'Parts=Z']],
  ['typed beside an empty list', accept({ question_2: [], question_2_other: 'Z' }), ['Parts=Z']],
  ['a label twice', accept({ question_2: ['Beta', 'Beta'] }), ['Parts=Beta']],
  ['blanks that nobody typed', accept({ question_1: 'Red', question_1_other: ' \n' }), ['Colour=Red']],
  ['null beside an answer', accept({ question_1: 'Red', question_1_other: null, question_2: null }), ['Colour=Red']],
  ['a list for a single choice', accept({ question_1: ['Red'] }), []],
  ['a text for a list', accept({ question_2: 'Alpha' }), []],
  ['numbers', accept({ question_1: 1, question_1_other: 2, question_2: [3], question_2_other: 4 }), []],
  ['a choice that was not offered', accept({ question_1: 'Green', question_2: ['Alpha', 'Delta'] }), []],
  ['a list with something else in it', accept({ question_2: ['Alpha', 1] }), []],
  ['objects', accept({ question_1: { const: 'Red' }, question_2: [{ const: 'Alpha' }] }), []],
  ['fields that nobody asked for', accept({ 0: 'Red', question_3: 'Red', question_3_other: 'x', Colour: 'Red' }), []],
  ['an empty form', accept({}), []],
  ['no form', accept(undefined), []],
  ['a list as form', accept(['Red']), []],
  ['decline', { action: 'decline' }, 'declined'],
  ['decline with a form', { action: 'decline', content: { question_1: 'Red' } }, 'declined'],
  ['cancel', { action: 'cancel' }, 'unattended'],
  ['an action of the future', { action: 'later', content: { question_1: 'Red' } }, 'failed'],
  ['an action of another type', { action: ['accept'], content: { question_1: 'Red' } }, 'failed'],
  ['no action', { content: { question_1: 'Red' } }, 'failed'],
  ['null', null, 'failed'],
  ['text', 'accept', 'failed'],
  [
    'the recorded form',
    { outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { 0: 'Red' } },
    ['Colour=Red'],
  ],
  ['a decline in the recorded form', { outcome: { outcome: 'cancelled' } }, 'declined'],
];

test('[BT-6, RS-3, RS-5, RS-6, RS-7] what each reply to a form means', () => {
  const meant = REPLIES.map(([name, result]) => [name, read(result)]);
  expect(meant).toEqual(REPLIES.map(([name, , expected]) => [name, expected]));
});

const words = fc.string({ minLength: 1, maxLength: 12 }).filter((text) => text.trim() !== '');
const question: fc.Arbitrary<Question> = fc.record({
  question: words,
  header: words,
  options: fc.array(fc.record({ label: words, description: words }), { minLength: 2, maxLength: 4 }),
  multiSelect: fc.boolean(),
});
const questions = fc.array(question, { minLength: 1, maxLength: 4 });

test('[BT-6] whatever is asked, the form is one to the SDK, and every choice of it fits its own schema once', () => {
  const ajv = new Ajv({ strict: false });
  fc.assert(
    fc.property(questions, (list) => {
      const request = elicitationRequest(asked(list));
      expect(sdkRequest.isForm(request)).toBe(true);
      if (!sdkRequest.isForm(request)) return;
      const { properties = {} } = request.requestedSchema;
      expect(Object.keys(properties)).toHaveLength(list.length * 2);
      for (const field of Object.values(properties)) {
        expect(ElicitationPropertySchema.isString(field) || ElicitationPropertySchema.isArray(field)).toBe(true);
      }
      const fits = ajv.compile(request.requestedSchema);
      for (const at of [0, -1]) {
        const content = Object.fromEntries(
          list.map(({ options, multiSelect }, index) => {
            const label = options.at(at)?.label;
            return [`question_${index + 1}`, multiSelect ? [label] : label];
          }),
        );
        expect(fits(content)).toBe(true);
        expect(read(accept(content), list)).toEqual(
          list.map(({ header, options }) => `${header}=${options.at(at)?.label}`),
        );
      }
    }),
    { numRuns: 30 },
  );
});

test('[BT-6, RS-7] no reply throws, and an answer is what was offered or typed', () => {
  const junk = fc.oneof(fc.jsonValue(), fc.constantFrom('Red', 'Blue', ['Alpha'], ['Alpha', 'Beta'], ['Red']));
  const field = fc.constantFrom('question_1', 'question_2', 'question_1_other', 'question_2_other', '0', '__proto__');
  const content = fc.oneof({ weight: 4, arbitrary: fc.dictionary(field, junk) }, fc.jsonValue());
  const reply = fc.oneof(
    { weight: 9, arbitrary: fc.record({ action: fc.constant('accept'), content }) },
    fc.record({ action: fc.jsonValue(), content }, { requiredKeys: [] }),
    fc.jsonValue(),
  );
  let answered = 0;
  fc.assert(
    fc.property(reply, (result) => {
      const outcome = outcomeOf(BOTH, elicitationReply(BOTH, result));
      if (outcome.kind !== 'answered' || outcome.answers.length === 0) return;
      answered += 1;
      const given = (result as { content: Record<string, unknown> }).content;
      const typed = [given['question_1_other'], given['question_2_other']];
      for (const { header, answer } of outcome.answers) {
        if (header === 'Colour') expect(['Red', 'Blue', typed[0]]).toContain(answer);
        else expect([given['question_2'], typed[1]].flat().join(', ')).toContain(answer);
      }
    }),
    { numRuns: 300 },
  );
  expect(answered).toBeGreaterThan(20);
});
