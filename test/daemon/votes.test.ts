import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Vote } from '../../src/daemon/ports.ts';
import { checkVote, choiceOf, declines } from '../../src/daemon/votes.ts';
import { readAnswers } from '../../src/session/question.ts';
import { asking, COLOUR, PARTS, permitting } from '../support/questions.ts';

const submit = (answers?: unknown): Vote =>
  ({ kind: 'selected', optionId: 'proceed_once', ...(answers !== undefined && { answers }) }) as Vote;
const BOTH = asking([COLOUR, PARTS]);

function verdict(request: typeof BOTH, vote: Vote): unknown {
  const checked = checkVote(request, 'r', vote);
  if (checked.ok) return checked.vote.kind === 'selected' ? (checked.vote.answers ?? 'no answers') : 'cancelled';
  expect(checked.error.status).toBe(400);
  return checked.error.code;
}

test.each<[string, typeof BOTH, Vote, unknown]>([
  ['a choice', asking(), submit({ '0': 'Blue' }), { '0': 'Blue' }],
  ['text as typed', asking(), submit({ '0': ' neither, really ' }), { '0': ' neither, really ' }],
  ['a list of labels', BOTH, submit({ '1': ['Gamma', 'Alpha'] }), { '1': 'Alpha, Gamma' }],
  ['labels joined', BOTH, submit({ '1': 'Gamma, Alpha' }), { '1': 'Alpha, Gamma' }],
  ['a label twice', BOTH, submit({ '1': ['Beta', 'Beta'] }), { '1': 'Beta' }],
  ['a list with an own text', BOTH, submit({ '1': ['Other', 'Alpha'] }), { '1': 'Other, Alpha' }],
  ['one of two answered', BOTH, submit({ '0': 'Red', '1': '' }), { '0': 'Red' }],
  ['one of two answered, an empty list', BOTH, submit({ '0': 'Red', '1': [] }), { '0': 'Red' }],
  ['cancelled', asking(), { kind: 'cancelled' }, 'cancelled'],
  ['the cancel option', asking(), { kind: 'selected', optionId: 'cancel' }, 'no answers'],
  [
    'the cancel option with answers',
    asking(),
    { kind: 'selected', optionId: 'cancel', answers: { '0': 'Red' } },
    'no answers',
  ],
  ['a permission allowed', permitting(), submit(), 'no answers'],
  ['no answers', asking(), submit(), 'invalid_answers'],
  ['empty answers', asking(), submit({}), 'invalid_answers'],
  ['an empty text', asking(), submit({ '0': '' }), 'invalid_answers'],
  ['an empty list', BOTH, submit({ '1': [] }), 'invalid_answers'],
  ['a list as answers', asking(), submit(['Blue']), 'invalid_answers'],
  ['a text as answers', asking(), submit('Blue'), 'invalid_answers'],
  ['null as answers', asking(), submit(null), 'invalid_answers'],
  ['a number', asking(), submit({ '0': 5 }), 'invalid_answers'],
  ['null', asking(), submit({ '0': null }), 'invalid_answers'],
  ['a list for one choice', asking(), submit({ '0': ['Blue'] }), 'invalid_answers'],
  ['a list with a number', BOTH, submit({ '1': ['Alpha', 1] }), 'invalid_answers'],
  ['a list with an empty text', BOTH, submit({ '1': ['Alpha', ''] }), 'invalid_answers'],
  ['a key out of range beside an answer', asking(), submit({ '0': 'Red', '1': 'Blue' }), 'invalid_answers'],
  ['the header as key', asking(), submit({ Colour: 'Red' }), 'invalid_answers'],
  ['an index with a zero before it', asking(), submit({ '00': 'Red' }), 'invalid_answers'],
  ['a negative index', asking(), submit({ '-1': 'Red' }), 'invalid_answers'],
  ['a prototype key', asking(), submit(JSON.parse('{"__proto__":"Red"}')), 'invalid_answers'],
  [
    'an option not offered',
    asking(),
    { kind: 'selected', optionId: 'zzz', answers: { '0': 'Red' } },
    'invalid_option_id',
  ],
  ['an empty option', asking(), { kind: 'selected', optionId: '' }, 'invalid_option_id'],
  [
    'an option not offered for a permission',
    permitting(),
    { kind: 'selected', optionId: 'always' },
    'invalid_option_id',
  ],
])('[BT-12, RS-3] a vote with %s', (_, request, vote, expected) => {
  expect(verdict(request, vote)).toEqual(expected);
});

test('[BT-12] the fault is named, with the request and the option', () => {
  const checked = checkVote(asking(), 'request-9', { kind: 'selected', optionId: 'zzz' });
  expect(checked).toMatchObject({ ok: false, error: { details: { requestId: 'request-9', optionId: 'zzz' } } });
  const listed = checkVote(asking(), 'request-9', submit({ '0': ['Blue'] }));
  expect(!listed.ok && listed.error.message).toContain('answers["0"]');
});

const answerOf = fc.oneof(
  fc.constantFrom('', 'Alpha', 'Alpha, Gamma', 'Gamma, Alpha', 'free', ', '),
  fc.array(fc.oneof(fc.constantFrom('', 'Alpha', 'Beta', 'Gamma'), fc.string(), fc.integer())),
  fc.string(),
  fc.integer(),
  fc.constant(null),
);
const anyAnswers = fc.dictionary(fc.constantFrom('0', '1', '2', '-1', 'x', '01'), answerOf);

test('[BT-12, RS-3] what a vote is accepted for is what the child reads as answered, and the child reads all of it', () => {
  fc.assert(
    fc.property(anyAnswers, (answers) => {
      const checked = checkVote(BOTH, 'r', submit(answers));
      const raw = readAnswers([COLOUR, PARTS], [answers]);
      if (!checked.ok) return raw.length < Object.keys(answers).length || raw.length === 0;
      const sent = checked.vote.kind === 'selected' ? checked.vote.answers : undefined;
      const read = readAnswers([COLOUR, PARTS], [sent]);
      expect(read.map(({ header }) => header)).toEqual(raw.map(({ header }) => header));
      expect(read.map(({ answer }) => answer)).toEqual(Object.values(sent ?? {}));
      return true;
    }),
  );
});

test('[BT-3] checking a checked vote changes nothing, and equal choices are equal votes', () => {
  const checkedVote = (answers: unknown): Vote => {
    const checked = checkVote(BOTH, 'r', submit(answers));
    if (!checked.ok) throw checked.error;
    return checked.vote;
  };
  const once = checkedVote({ '1': ['Gamma', 'Alpha'], '0': 'Red' });
  expect(checkVote(BOTH, 'r', once)).toEqual({ ok: true, vote: once });
  expect(choiceOf(once)).toBe(choiceOf(checkedVote({ '0': 'Red', '1': 'Alpha, Gamma' })));
  expect(choiceOf(once)).not.toBe(choiceOf(checkedVote({ '0': 'Blue', '1': 'Alpha, Gamma' })));
  expect(choiceOf(once)).not.toBe(choiceOf(checkedVote({ '0': 'Red' })));
});

test('[DM-7, RS-5] a cancel vote is the cancelled outcome or the cancel option', () => {
  expect(declines({ kind: 'cancelled' })).toBe(true);
  expect(declines({ kind: 'selected', optionId: 'cancel' })).toBe(true);
  expect(declines(submit({ '0': 'cancel' }))).toBe(false);
});
