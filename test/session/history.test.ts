import type { Content, Part } from '@google/genai';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lastHistoryContentFromRecords } from '../../src/session/eligibility.ts';
import { foldHistory, lastEntryOf } from '../../src/session/history.ts';
import { pairCalls } from '../../src/session/pairing.ts';
import { Writer } from '../support/transcripts.ts';

const ERROR = 'never finished';
const call = (id?: string, name = 'glob'): Part => ({ functionCall: { ...(id ? { id } : {}), name, args: {} } });
const done = (id?: string, output = `${id} done`, name = 'glob'): Part => ({
  functionResponse: { ...(id ? { id } : {}), name, response: { output } },
});
const closed = (id?: string, name = 'glob'): Part => ({
  functionResponse: { ...(id ? { id } : {}), name, response: { error: ERROR } },
});
const text = (value: string): Part => ({ text: value });
const model = (...parts: Part[]): Content => ({ role: 'model', parts });
const user = (...parts: Part[]): Content => ({ role: 'user', parts });

describe('[TR-9, LS-6] what is sent to a model pairs every call with one response', () => {
  test.each<[string, Content[]]>([
    ['an empty history', []],
    ['text only', [user(text('hi')), model(text('ho')), user(text('hi'))]],
    ['answered calls', [user(text('hi')), model(call('a'), call('b')), user(done('a'), done('b')), model(text('ho'))]],
    ['answered calls and the next message', [model(call('a')), user(done('a')), user(text('next'))]],
    ['answered calls and a message in one turn', [model(call('a')), user(done('a'), text('next'))]],
    [
      'an id used again in a later turn',
      [model(call('a')), user(done('a')), model(call('a')), user(done('a', 'again'))],
    ],
    ['calls without an id', [model(call(), call(undefined, 'edit')), user(done(), done(undefined, 'e', 'edit'))]],
  ])('%s stays the same object', (_, contents) => {
    expect(pairCalls(contents, ERROR)).toBe(contents);
  });

  test.each<[string, Content[], Content[]]>([
    ['a call at the end', [model(call('a'))], [model(call('a')), user(closed('a'))]],
    [
      'a call that a message follows',
      [model(call('a')), user(text('next'))],
      [model(call('a')), user(closed('a'), text('next'))],
    ],
    [
      'a call that a model turn follows',
      [model(call('a')), model(text('x'))],
      [model(call('a')), user(closed('a')), model(text('x'))],
    ],
    [
      'one of two calls',
      [model(call('a'), call('b')), user(done('b')), user(text('next'))],
      [model(call('a'), call('b')), user(closed('a'), done('b'), text('next'))],
    ],
    [
      'responses out of order',
      [model(call('a'), call('b')), user(done('b'), done('a'))],
      [model(call('a'), call('b')), user(done('a'), done('b'))],
    ],
    [
      'responses in two entries',
      [model(call('a'), call('b')), user(done('a')), user(done('b'))],
      [model(call('a'), call('b')), user(done('a'), done('b'))],
    ],
    [
      'a response behind a message',
      [model(call('a')), user(text('next')), user(done('a'))],
      [model(call('a')), user(done('a'), text('next'))],
    ],
    [
      'a message before its response',
      [model(call('a')), user(text('next'), done('a'))],
      [model(call('a')), user(done('a'), text('next'))],
    ],
    ['a second response', [model(call('a')), user(done('a'), done('a', 'twice'))], [model(call('a')), user(done('a'))]],
    [
      'a response without a call',
      [model(text('x')), user(done('a'), text('next'))],
      [model(text('x')), user(text('next'))],
    ],
    ['nothing but a response without a call', [user(done('a')), model(text('x'))], [model(text('x'))]],
    [
      'a response that is a turn too late',
      [model(call('a')), user(text('next')), model(text('x')), user(done('a'))],
      [model(call('a')), user(closed('a'), text('next')), model(text('x'))],
    ],
    [
      'an id used again whose first call dangles',
      [model(call('a')), user(text('next')), model(call('a')), user(done('a'))],
      [model(call('a')), user(closed('a'), text('next')), model(call('a')), user(done('a'))],
    ],
    [
      'a call without an id',
      [model(call(undefined, 'edit'), call('a')), user(done('a'))],
      [model(call(undefined, 'edit'), call('a')), user(closed(undefined, 'edit'), done('a'))],
    ],
    [
      'two calls without an id, by name',
      [model(call(undefined, 'edit'), call(undefined, 'glob')), user(done(undefined, 'g', 'glob'))],
      [model(call(undefined, 'edit'), call(undefined, 'glob')), user(closed(undefined, 'edit'), done(undefined, 'g'))],
    ],
    [
      'a call that an entry without parts follows',
      [model(call('a')), { role: 'user' }],
      [model(call('a')), user(closed('a'))],
    ],
    [
      'a response without a call, beside entries without parts',
      [{ role: 'model' }, user(done('a')), user(text('next'))],
      [{ role: 'model' }, user(text('next'))],
    ],
    [
      'two calls of one id',
      [model(call('a'), call('a')), user(done('a'))],
      [model(call('a'), call('a')), user(done('a'), closed('a'))],
    ],
    [
      'a picture beside a response',
      [model(call('a'), call('b')), user(done('b'), { inlineData: { data: 'x' } })],
      [model(call('a'), call('b')), user(closed('a'), done('b'), { inlineData: { data: 'x' } })],
    ],
  ])('%s', (_, contents, expected) => {
    const before = structuredClone(contents);
    expect(pairCalls(contents, ERROR)).toEqual(expected);
    expect(contents).toEqual(before);
  });

  const part = fc.oneof(
    fc.constantFrom('a', 'b', '').map((id) => call(id)),
    fc.constantFrom('a', 'b', '').map((id) => done(id)),
    fc.constant(text('t')),
  );
  const history = fc.array(
    fc.record({ role: fc.constantFrom('model', 'user'), parts: fc.array(part, { maxLength: 4 }) }),
    { maxLength: 8 },
  );

  test('whatever the history holds', () => {
    fc.assert(
      fc.property(history, (drawn) => {
        // A model answers with calls and text, never with responses; a person with everything but calls.
        const contents = drawn.map(({ role, parts }) => ({
          role,
          parts: parts.filter(
            ({ functionCall, functionResponse }) => !(role === 'model' ? functionResponse : functionCall),
          ),
        }));
        const paired = pairCalls(contents, ERROR);
        for (const [at, { role, parts }] of paired.entries()) {
          const calls =
            role === 'model' ? parts!.flatMap(({ functionCall }) => functionCall?.id ?? (functionCall ? '' : [])) : [];
          const next = paired[at + 1];
          const answers =
            next?.role === 'user'
              ? next.parts!.flatMap(({ functionResponse }) => functionResponse?.id ?? (functionResponse ? '' : []))
              : [];
          if (role === 'model') expect(answers).toEqual(calls);
        }
        const texts = (list: readonly Content[]) => list.flatMap(({ parts }) => parts!.filter((p) => p.text)).length;
        expect(texts(paired)).toBe(texts(contents));
        expect(pairCalls(paired, ERROR)).toBe(paired);
        const answered = paired
          .flatMap(({ parts }) => parts!)
          .filter(({ functionResponse }) => functionResponse).length;
        expect(answered).toBe(contents.flatMap(({ parts }) => parts).filter(({ functionCall }) => functionCall).length);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('[TR-2, TR-9, MD-5] records fold into the API history', () => {
  test('results of one batch are one entry, whatever system records lie between', () => {
    const writer = new Writer()
      .user('u', 'hi')
      .calls('a', ['x', 'y'])
      .result('r', 'x', '1')
      .system('s', 'turn_result')
      .result('q', 'y', '2')
      .says('b', 'end');
    const roles = foldHistory(writer.records).contents.map(({ role, parts }) => `${role} ${parts!.length}`);
    expect(roles).toEqual(['user 1', 'model 2', 'user 2', 'model 1']);
    expect(writer.records[2]!.message!.parts).toHaveLength(1);
  });

  test('a compression takes the place of everything before it', () => {
    const compressedHistory = [user(text('summary')), model(text('understood'))];
    const writer = new Writer()
      .user('u', 'hi')
      .calls('a', ['x'])
      .system('c', 'chat_compression', { compressedHistory })
      .user('v', 'next');
    const { contents, usedCallIds } = foldHistory(writer.records);
    expect(contents).toEqual([...compressedHistory, user(text('next'))]);
    expect([...usedCallIds]).toEqual(['x']);
  });

  test('a compression without a history is none', () => {
    const writer = new Writer().user('u', 'hi').system('c', 'chat_compression', { compressedHistory: 'none' });
    expect(foldHistory(writer.records).contents).toHaveLength(1);
  });

  test("what a session goes on with: the provider's ids, turns, the last result and turn", () => {
    const snapshot = (turn: number) => ({ snapshots: [{ promptId: `s########${turn}` }] });
    const writer = new Writer()
      .user('u', 'one')
      .system('s1', 'file_history_snapshot', snapshot(1))
      .calls('a', ['x'], { providerCallIds: { x: 'call_0', y: null }, usageMetadata: { promptTokenCount: 7 } })
      .result('r', 'x', '1')
      .user('n', 'injected', { subtype: 'notification' })
      .user('v', 'two')
      .system('s2', 'file_history_snapshot', snapshot(3))
      .calls('b', ['y'])
      .says('c', 'three')
      .calls('d', ['z'])
      .result('q', 'z', '2', { toolCallResult: { callId: 'z', status: 'cancelled' }, gitBranch: 'main' })
      .system('t', 'turn_result', { state: 'cancelled' });
    expect(foldHistory(writer.records)).toMatchObject({
      providerCallIds: new Map([
        ['x', 'call_0'],
        ['y', null],
      ]),
      userTurns: 2,
      lastPromptTurn: 3,
      lastPromptTokens: 7,
      lastResult: { callId: 'z', status: 'cancelled' },
      lastTurnState: 'cancelled',
      cwd: '/srv/project',
      gitBranch: undefined,
    });
    const next = foldHistory(writer.user('w', 'three').records);
    expect([next.lastResult, next.lastTurnState]).toEqual([undefined, undefined]);
  });

  const compressedHistory = [user(text('summary'))];
  const snapshots = [{ promptId: 's########9' }];

  test.each<[string, Writer]>([
    ['a system record of the future', new Writer().system('s', 'new', { state: 'x', snapshots, compressedHistory })],
    ['a turn that ended without a state', new Writer().system('s', 'turn_result', { state: 5 })],
    ['a snapshot without prompts', new Writer().system('s', 'file_history_snapshot', { snapshots: 'none' })],
    [
      'snapshots of other prompts',
      new Writer().system('s', 'file_history_snapshot', {
        snapshots: [null, {}, { promptId: 's' }, { promptId: { toString: null } }],
      }),
    ],
    ['a user record without a message', new Writer().add('s', 'user')],
    ['a type of the future', new Writer().add('s', 'new' as 'user', { message: user(text('hi')), systemPayload: {} })],
  ])('[TR-1, TR-4] %s says nothing', (_, writer) => {
    const before = new Writer().calls('a', ['x']).system('t', 'turn_result', { state: 'error' });
    expect(foldHistory([...before.records, ...writer.records])).toEqual(foldHistory(before.records));
  });

  test('[TR-1] what a record says is read from records of its kind only', () => {
    const providerCallIds = { x: 'call_0' };
    const usageMetadata = { promptTokenCount: 7 };
    const toolCallResult = { callId: 'x', status: 'success' } as const;
    const systemPayload = { compressedHistory, state: 'x' };
    const more = { providerCallIds, usageMetadata, toolCallResult, systemPayload, subtype: 'chat_compression' };
    const { contents, ...rest } = foldHistory(new Writer().user('u', 'hi', more).records);
    expect(contents).toEqual([user(text('hi'))]);
    expect(rest.providerCallIds.size).toBe(0);
    expect([rest.lastPromptTokens, rest.lastResult, rest.lastTurnState]).toEqual([undefined, undefined, undefined]);
    expect(lastEntryOf(new Writer().user('u', 'hi', more).records)).toEqual(user(text('hi')));
  });

  test('[TR-4] values of no use count as absent', () => {
    const junk = { promptTokenCount: '7' } as never;
    const writer = new Writer().calls('a', ['x', 'y'], {
      usageMetadata: junk,
      providerCallIds: { x: 5 as never, y: null },
    });
    const { lastPromptTokens, providerCallIds } = foldHistory(writer.records);
    expect(lastPromptTokens).toBeUndefined();
    expect([...providerCallIds]).toEqual([['y', null]]);
    const parts = [null, { text: 'half' }];
    const damaged = [null, 'text', { role: 'user' }, { role: 'user', parts: 'none' }, { role: 'user', parts }];
    writer.system('c', 'chat_compression', { compressedHistory: [...damaged, ...compressedHistory] });
    expect(foldHistory(writer.records).contents).toEqual(compressedHistory);
  });

  test('[TR-4] messages without parts are kept as they are', () => {
    const empty = { message: { role: 'user' } };
    const writer = new Writer().add('u', 'user', empty).add('r', 'tool_result', empty).result('q', 'x', '1');
    expect(foldHistory(writer.records).contents).toEqual([{ role: 'user' }, user(done('x', '1'))]);
  });

  test('calls without an id are kept', () => {
    const { contents } = foldHistory(new Writer().calls('a', ['', 'x']).records);
    expect(contents[0]!.parts).toHaveLength(2);
  });
});

describe('[EL-3, TR-1] a command and its output are no part of the history', () => {
  const item = { type: 'assistant', text: 'Commands' };
  const output = { phase: 'result', rawCommand: '/help', outputHistoryItems: [item] };
  const asked = () =>
    new Writer()
      .calls('a', ['x'])
      .result('r', 'x', '1', { toolCallResult: { callId: 'x', status: 'cancelled' } })
      .system('t', 'turn_result', { state: 'cancelled' });
  const said = (writer: Writer) => {
    const { contents, userTurns, lastResult, lastTurnState } = foldHistory(writer.records);
    expect(lastEntryOf(writer.records)).toEqual(contents.at(-1) ?? null);
    return { contents, userTurns, lastResult, lastTurnState };
  };

  test('what was known before it is known again', () => {
    const before = said(asked());
    const help = asked().user('u', '/help').system('s', 'slash_command', output);
    expect(said(help)).toEqual(before);
    expect(said(help.user('v', '/help').system('o', 'slash_command', output))).toEqual(before);
    expect(said(help.user('w', 'hi')).contents).toEqual([...before.contents, user(text('hi'))]);
    expect(said(help.says('b', 'ho').system('p', 'slash_command', output)).contents.at(-1)).toEqual(model(text('ho')));
  });

  test('it is taken back once, and nothing of a compression is', () => {
    const twice = new Writer().user('u', '/help').user('v', '/help').system('s', 'slash_command', output);
    expect(said(twice.system('t', 'slash_command', output)).contents).toEqual([user(text('/help'))]);
    const compressedHistory = [user(text('summary'))];
    const compressed = new Writer()
      .user('u', '/help')
      .system('c', 'chat_compression', { compressedHistory })
      .system('s', 'slash_command', output);
    expect(said(compressed).contents).toEqual(compressedHistory);
  });

  const person = (message: unknown, more: object = {}) =>
    new Writer().add('u', 'user', { message: message as Content, ...more });
  const help = () => new Writer().user('u', '/help');
  const ends = (writer: Writer, payload: unknown, subtype = 'slash_command') => writer.system('s', subtype, payload);
  test.each<[string, Writer]>([
    ['it is sent to the model', ends(help(), { ...output, sentToModel: true })],
    ['it only begins', ends(help(), { ...output, phase: 'invocation' })],
    ['it is another one', ends(help(), { ...output, rawCommand: '/model' })],
    ['it says nothing', ends(help(), { ...output, outputHistoryItems: [] })],
    ['it has no output', ends(help(), { ...output, outputHistoryItems: undefined })],
    ['it says something else, too', ends(help(), { ...output, outputHistoryItems: [item, { type: 'error' }] })],
    ['it says nothing that can be read', ends(help(), { ...output, outputHistoryItems: [null] })],
    ['it has no payload', ends(help(), null)],
    ['it is a record of the future', ends(help(), output, 'new')],
    ['it is a result', ends(new Writer().add('r', 'tool_result', { message: user(text('/help')) }), output)],
    ['nobody typed it', ends(new Writer().user('u', '/help', { subtype: 'notification' }), output)],
    ['it is no user that says it', ends(person(model(text('/help'))), output)],
    ['it has a picture', ends(person(user(text('/help'), { inlineData: { data: 'x' } })), output)],
    ['it is a thought', ends(person(user({ text: '/help', thought: true })), output)],
    ['it has no text', ends(person(user()), output)],
    ['it has no parts', ends(person({ role: 'user' }), output)],
  ])('unless %s', (_, writer) => {
    expect(said(writer).contents).toHaveLength(1);
  });
});

test('[EL-3] the last entry is that of the last message, unless a compression came after it', () => {
  const writer = new Writer().calls('a', ['x']).system('s', 'turn_result');
  expect(lastEntryOf(writer.records)).toBe(writer.records[0]!.message);
  expect(lastEntryOf(writer.records)).toBe(lastHistoryContentFromRecords(writer.records));
  const summary = model(text('summary'));
  expect(lastEntryOf(writer.system('c', 'chat_compression', { compressedHistory: [summary] }).records)).toEqual(
    summary,
  );
  expect(lastEntryOf(writer.system('d', 'chat_compression', { compressedHistory: [] }).records)).toBeNull();
  expect(lastEntryOf(writer.user('u', 'hi').records)).toEqual(user(text('hi')));
  expect(lastEntryOf([])).toBeUndefined();
});
