import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Question } from '../../src/session/ports.ts';
import {
  answersDisplay,
  answersText,
  outcomeOf,
  parseAskUserQuestionParams,
  readAnswers,
} from '../../src/session/question.ts';

const option = (label: string) => ({ label, description: `about ${label}` });
const single: Question = { question: 'Which port?', header: 'Port', options: [option('80'), option('8080')] };
const multi: Question = { ...single, question: 'Which features?', header: 'Features', multiSelect: true };
const without = (question: object, key: string) => ({ ...question, [key]: undefined });

describe('[EL-2] the arguments of ask_user_question', () => {
  test.each<[string, unknown]>([
    ['one question', { questions: [single] }],
    ['four questions', { questions: [single, multi, single, multi] }],
    ['four options', { questions: [{ ...single, options: ['a', 'b', 'c', 'd'].map(option) }] }],
    ['multiSelect false', { questions: [{ ...single, multiSelect: false }] }],
    ['properties that nobody knows', { questions: [{ ...single, extra: 1 }], metadata: { source: 'x' }, more: [] }],
    ['a header of any length', { questions: [{ ...single, header: 'h'.repeat(500) }] }],
  ])('%s are taken', (_, args) => {
    expect(parseAskUserQuestionParams(args).ok).toBe(true);
  });

  test.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /"questions"/],
    ['null', null, /"questions"/],
    ['a list', [single], /"questions"/],
    ['text', 'questions', /"questions"/],
    ['questions that are no list', { questions: { 0: single } }, /"questions"/],
    ['no question', { questions: [] }, /1 to 4/],
    ['five questions', { questions: [single, single, single, single, single] }, /1 to 4/],
    ['a question that is null', { questions: [null] }, /Question 1/],
    ['a blank question', { questions: [{ ...single, question: ' \n' }] }, /Question 1: "question"/],
    ['no header', { questions: [single, without(single, 'header')] }, /Question 2: "header"/],
    ['a header of another type', { questions: [{ ...single, header: 7 }] }, /"header"/],
    ['no options', { questions: [without(single, 'options')] }, /"options"/],
    ['one option', { questions: [{ ...single, options: [option('a')] }] }, /2 to 4/],
    ['five options', { questions: [{ ...single, options: 'abcde'.split('').map(option) }] }, /2 to 4/],
    ['a blank label', { questions: [{ ...single, options: [option('a'), option(' ')] }] }, /option 2/],
    ['no description', { questions: [{ ...single, options: [{ label: 'a' }, option('b')] }] }, /option 1/],
    ['an option that is text', { questions: [{ ...single, options: ['a', 'b'] }] }, /option 1/],
    ['multiSelect as text', { questions: [{ ...single, multiSelect: 'true' }] }, /"multiSelect"/],
    ['multiSelect null', { questions: [{ ...single, multiSelect: null }] }, /"multiSelect"/],
  ])('%s are refused, naming what is off', (_, args, named) => {
    const parsed = parseAskUserQuestionParams(args);
    expect(parsed.ok ? 'taken' : parsed.error).toMatch(named);
  });

  test('any value is either taken or refused, never thrown at', () => {
    fc.assert(fc.property(fc.anything(), (args) => typeof parseAskUserQuestionParams(args).ok === 'boolean'));
  });
});

describe('[RS-3] answers are read by the index of their question', () => {
  const questions = [single, multi];
  test.each<[string, unknown[], Record<string, string>]>([
    ['a choice', [{ 0: '80' }], { Port: '80' }],
    ['free text, as typed', [{ 0: '  my own words ' }], { Port: '  my own words ' }],
    ['a list of labels', [{ 1: ['a', 'b'] }], { Features: 'a, b' }],
    ['labels joined already', [{ 1: 'a, b' }], { Features: 'a, b' }],
    ['one of two', [{ 1: 'a' }], { Features: 'a' }],
    ['both', [{ 1: ['x'], 0: '80' }], { Port: '80', Features: 'x' }],
    ['an empty text', [{ 0: '' }], {}],
    ['an empty list', [{ 1: [] }], {}],
    ['a list for a single choice', [{ 0: ['80'] }], {}],
    ['a list with an empty label', [{ 1: ['a', ''] }], {}],
    ['a list with a number', [{ 1: ['a', 1] }], {}],
    ['a number', [{ 0: 80 }], {}],
    ['a flag', [{ 0: true }], {}],
    ['an object', [{ 0: { label: '80' } }], {}],
    ['keys out of range or not canonical', [{ 2: 'x', '-1': 'x', '00': 'x', 7: 'x', 'Which port?': 'x' }], {}],
    ['a list as answers', [['80', 'a']], {}],
    ['text as answers', ['80'], {}],
    ['no answers', [undefined, undefined], {}],
    ['the root before _meta', [{ 0: '80' }, { 0: '8080', 1: 'a' }], { Port: '80' }],
    ['_meta where the root has none', [{ 9: 'x' }, { 0: '8080' }], { Port: '8080' }],
    ['_meta alone', [undefined, { 0: '8080' }], { Port: '8080' }],
    ['what an object inherits', [Object.create({ 0: '80' })], {}],
  ])('%s', (_, candidates, expected) => {
    const answers = readAnswers(questions, candidates);
    expect(Object.fromEntries(answers.map(({ header, answer }) => [header, answer]))).toEqual(expected);
  });

  test('the text names each header and answer, the display each question', () => {
    const answers = readAnswers(questions, [{ 0: '80', 1: ['a', 'b'] }]);
    const text = answersText(answers);
    expect(text).toContain('**Port**: 80\n**Features**: a, b');
    expect(answersDisplay(answers, text)).toEqual({
      type: 'ask_user_question_answers',
      text,
      answers: [
        { question: 'Which port?', answer: '80' },
        { question: 'Which features?', answer: 'a, b' },
      ],
    });
  });

  test('a reply that is no submit stays what it is', () => {
    expect(outcomeOf(questions, { kind: 'declined' })).toEqual({ kind: 'declined' });
    expect(outcomeOf(questions, { kind: 'submitted', answers: [] })).toEqual({ kind: 'answered', answers: [] });
  });
});
