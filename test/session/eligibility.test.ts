import type { Content, FunctionCall } from '@google/genai';
import { describe, expect, test } from 'vitest';
import {
  callIdsOf,
  decideRestore,
  findRestorableAskUserQuestion,
  lastHistoryContentFromRecords,
  restorableAskUserQuestionCallIds,
} from '../../src/session/eligibility.ts';
import { lastEntryOf } from '../../src/session/history.ts';
import type { TranscriptRecord } from '../../src/session/transcript.ts';

const option = (label: string) => ({ label, description: `about ${label}` });
const question = { question: 'Which port?', header: 'Port', options: [option('80'), option('8080')] };
const auq = (id: string | undefined, args: unknown = { questions: [question] }): FunctionCall => ({
  ...(id !== undefined && { id }),
  name: 'ask_user_question',
  args: args as Record<string, unknown>,
});
const shell = (id?: string): FunctionCall => ({
  ...(id !== undefined && { id }),
  name: 'run_shell_command',
  args: { command: 'ls' },
});
const model = (...calls: FunctionCall[]): Content => ({
  role: 'model',
  parts: calls.map((functionCall) => ({ functionCall })),
});

describe('[EL-1, EL-4] the last entry decides', () => {
  test.each<[string, Content | undefined, string[] | string]>([
    ['one question', model(auq('a')), ['a']],
    ['two questions', model(auq('a'), auq('b')), ['a', 'b']],
    ['a question beside text', { role: 'model', parts: [{ text: 'so:' }, { functionCall: auq('a') }] }, ['a']],
    [
      'a question beside a thought',
      { role: 'model', parts: [{ text: 'hm', thought: true }, { functionCall: auq('a') }] },
      ['a'],
    ],
    ['a question beside a call without an id', model(shell(), auq('a')), ['a']],
    ['a question beside a call with an empty id', model(shell(''), auq('a')), ['a']],
    ['a question before a shell command', model(auq('a'), shell('s')), 'mixed_tools'],
    ['a shell command before a question', model(shell('s'), auq('a')), 'mixed_tools'],
    ['a shell command alone', model(shell('s')), 'no_question'],
    ['a question without an id', model(auq(undefined)), 'no_question'],
    ['a question with an empty id', model(auq('')), 'no_question'],
    ['text alone', { role: 'model', parts: [{ text: 'done' }] }, 'no_question'],
    ['a model turn without parts', { role: 'model' }, 'no_question'],
    ['one of two with arguments that do not parse', model(auq('a'), auq('b', {})), 'invalid_params'],
    ['arguments that are text', model(auq('a', 'questions')), 'invalid_params'],
    ['a user turn', { role: 'user', parts: [{ text: 'hi' }] }, 'no_trailing_model_turn'],
    [
      'a response',
      { role: 'user', parts: [{ functionResponse: { id: 'a', name: 'ask_user_question', response: {} } }] },
      'no_trailing_model_turn',
    ],
    ['an empty history', undefined, 'no_trailing_model_turn'],
  ])('%s', (_, last, expected) => {
    const found = findRestorableAskUserQuestion(last);
    expect('calls' in found ? found.calls.map(({ id }) => id) : found.reason).toEqual(expected);
    expect([...restorableAskUserQuestionCallIds(last)]).toEqual(Array.isArray(expected) ? expected : []);
  });

  test('[EL-3] it works on the entry itself, not on a copy', () => {
    const call = auq('a');
    const found = findRestorableAskUserQuestion(model(call));
    expect('calls' in found && found.calls[0]).toBe(call);
  });
});

describe('[EL-1, EL-4, LS-2] the situation of the load decides first', () => {
  const last = model(auq('a'));
  const on = { switchedOn: true, suppressed: false, promptInFlight: false };
  test.each([
    ['all is well', on, ['a']],
    ['the switch is off', { ...on, switchedOn: false }, 'switched_off'],
    ['the request is suppressed', { ...on, suppressed: true }, 'suppressed'],
    ['a prompt is in flight', { ...on, promptInFlight: true }, 'prompt_in_flight'],
  ])('%s', (_, situation, expected) => {
    const decided = decideRestore(situation, () => last);
    expect('reason' in decided ? decided.reason : [...callIdsOf(decided)]).toEqual(expected);
  });

  test('[LS-5] with the switch off the last entry is not even looked at', () => {
    const look = () => {
      throw new Error('looked');
    };
    expect(decideRestore({ ...on, switchedOn: false }, look)).toEqual({ reason: 'switched_off' });
  });
});

describe('[EL-3] the last content of the records is that of the API history', () => {
  const record = (type: TranscriptRecord['type'], more: Partial<TranscriptRecord> = {}): TranscriptRecord => ({
    uuid: 'u',
    parentUuid: null,
    sessionId: 's',
    timestamp: '2026-01-01T00:00:00.000Z',
    type,
    ...more,
  });
  const asked = model(auq('a'));
  const user: Content = { role: 'user', parts: [{ text: 'hi' }] };
  test.each<[string, TranscriptRecord[], Content | undefined]>([
    ['no records', [], undefined],
    ['system records alone', [record('system'), record('system')], undefined],
    ['system records behind it', [record('assistant', { message: asked }), record('system')], asked],
    ['a record without a message behind it', [record('user', { message: user }), record('assistant')], user],
    [
      'a system record with a message behind it',
      [record('assistant', { message: asked }), record('system', { message: user })],
      asked,
    ],
    ['a later message', [record('assistant', { message: asked }), record('user', { message: user })], user],
  ])('%s', (_, records, expected) => {
    expect(lastHistoryContentFromRecords(records)).toBe(expected);
    expect(lastEntryOf(records) ?? undefined).toBe(expected);
  });
});
