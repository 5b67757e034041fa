import type { Content, Part } from '@google/genai';
import { describe, expect, test } from 'vitest';
import { danglingCalls } from '../../src/session/dangling.ts';
import { classifyInterruption } from '../../src/session/interruption.ts';
import { ModelTurn, withProviderCallIds } from '../../src/session/model-turn.ts';
import { recoveredAgentNotice, worktreeNotice } from '../../src/session/notices.ts';

const call = (id: string, name = 'tool', args = {}): Part => ({ functionCall: { id, name, args } });
const response = (id: string): Part => ({ functionResponse: { id, name: 'tool', response: { output: 'x' } } });
const model = (...parts: Part[]): Content => ({ role: 'model', parts });
const user = (...parts: Part[]): Content => ({ role: 'user', parts });
const said = { text: 'hi' };

describe('[BT-5] what the end of the history leaves open', () => {
  test.each<[string, Content[], string[]]>([
    ['nothing in an empty one', [], []],
    ['calls of the last model turn', [user(said), model(call('a'), call('b'))], ['a', 'b']],
    ['the one of two that has no response', [model(call('a'), call('b')), user(response('a'))], ['b']],
    ['none when all are answered', [model(call('a')), user(response('a'))], []],
    ['none when text has overtaken them', [model(call('a')), user(said)], []],
    ['none of an earlier turn', [model(call('a')), user(said), model(said)], []],
    ['calls without an id do not count', [model({ functionCall: { name: 'tool', args: {} } })], []],
    ['nor do those with an empty one', [model(call(''), call('a'))], ['a']],
    ['a response without an id answers none', [model(call('a')), user({ functionResponse: { name: 'tool' } })], ['a']],
    ['an entry that says nothing overtakes none', [model(call('a')), { role: 'user' }], ['a']],
    ['nothing in a model turn without parts', [{ role: 'model' }], []],
  ])('%s', (_, history, expected) => {
    expect(danglingCalls(history).map(({ id }) => id)).toEqual(expected);
  });

  test('each under the name and with the arguments that the model gave', () => {
    const bare = { functionCall: { id: 'b' } };
    expect(danglingCalls([model(call('a', 'glob', { pattern: '*' }), bare)])).toEqual([
      { id: 'a', name: 'glob', args: { pattern: '*' } },
      { id: 'b', name: '', args: {} },
    ]);
  });
});

describe('[RS-8] how a turn was interrupted', () => {
  const over = { lastResult: undefined, lastTurnState: undefined };
  test.each<[string, Content[], Partial<Parameters<typeof classifyInterruption>[0]>, string]>([
    ['an empty history', [], {}, 'none'],
    ['a finished turn', [user(said), model(said)], {}, 'none'],
    ['a message without a reply', [user(said)], {}, 'interrupted_prompt'],
    ['a call without a response', [user(said), model(call('a'))], {}, 'interrupted_turn'],
    ['responses that the model has not seen', [model(call('a')), user(response('a'))], {}, 'interrupted_turn'],
    ['a message that a person cancelled', [user(said)], { lastTurnState: 'cancelled' }, 'none'],
    ['a message whose model failed', [user(said)], { lastTurnState: 'error' }, 'interrupted_prompt'],
    [
      'a declined call',
      [model(call('a')), user(response('a'))],
      { lastResult: { callId: 'a', status: 'cancelled' } },
      'none',
    ],
    [
      'a call after a declined one',
      [model(call('a')), user(response('a'))],
      { lastResult: { callId: 'a', status: 'error', errorType: 'execution_denied' } },
      'none',
    ],
    [
      'a call that failed and went to the model',
      [model(call('a')), user(response('a'))],
      { lastResult: { callId: 'a', status: 'error', errorType: 'no_answer' } },
      'interrupted_turn',
    ],
  ])('%s', (_, contents, more, expected) => {
    expect(classifyInterruption({ contents, ...over, ...more })).toBe(expected);
  });
});

describe('[MD-5] a model turn keeps what the provider sent', () => {
  const turn = (used: string[] = []) => {
    let n = 0;
    return new ModelTurn({ isUsed: (id) => used.includes(id), fresh: () => `fresh-${++n}` });
  };
  const collect = (parts: Part[], used: string[] = []) => {
    const collected = turn(used);
    for (const part of parts) collected.add(part);
    return collected;
  };

  test('plain text is joined, by kind', () => {
    const { parts } = collect([
      { text: 'a' },
      { text: 'b' },
      { text: 't', thought: true },
      { text: 'u', thought: true },
      { text: 'c' },
    ]).content();
    expect(parts).toEqual([{ text: 'ab' }, { text: 'tu', thought: true }, { text: 'c' }]);
  });

  test('signatures and unknown fields stay with their part, empty texts among them', () => {
    const signed = { text: '', thoughtSignature: 'sig' };
    const strange = { text: 'x', somethingNew: { a: 1 } } as Part;
    const signedCall = { ...call('a'), thoughtSignature: 'sig2' };
    expect(collect([{ text: 'a' }, signed, strange, signedCall]).content().parts).toEqual([
      { text: 'a' },
      signed,
      strange,
      signedCall,
    ]);
  });

  test('a missing id is made up, a repeated one made distinct, and the provider gets its own back', () => {
    const idless: Part = { functionCall: { name: 'tool', args: {} } };
    const collected = collect([call('used'), idless, call('new'), call('new')], ['used']);
    expect(collected.calls.map(({ id }) => id)).toEqual(['fresh-1', 'fresh-2', 'new', 'fresh-3']);
    expect(collected.providerCallIds).toEqual({ 'fresh-1': 'used', 'fresh-2': null, 'fresh-3': 'new' });
    const ids = new Map(Object.entries(collected.providerCallIds));
    const sent = withProviderCallIds([collected.content(), user(response('fresh-1'), response('fresh-2'))], ids);
    expect(sent[0]?.parts).toEqual([call('used'), idless, call('new'), call('new')]);
    expect(sent[1]?.parts).toEqual([
      response('used'),
      { functionResponse: { name: 'tool', response: { output: 'x' } } },
    ]);
  });

  test('contents that need no other ids are passed on as they are', () => {
    const contents = [user(said)];
    expect(withProviderCallIds(contents, new Map())).toBe(contents);
  });

  test('[ACP-7] what was said is kept without the calls that did not run', () => {
    expect(collect([{ text: 'a' }, call('x')]).spoken()).toEqual(model({ text: 'a' }));
  });
});

describe('[RS-4] notices', () => {
  test.each<[string, { cwd?: string; gitBranch?: string }, { cwd?: string; gitBranch?: string }, RegExp | undefined]>([
    ['nothing changed', { cwd: '/a', gitBranch: 'main' }, { cwd: '/a', gitBranch: 'main' }, undefined],
    ['another directory', { cwd: '/a' }, { cwd: '/b' }, /\/a.*\/b/],
    ['another branch', { cwd: '/a', gitBranch: 'main' }, { cwd: '/a', gitBranch: 'fix' }, /main.*fix/],
    ['the repository is gone', { gitBranch: 'main' }, {}, /main.*none/],
    ['nothing was recorded', {}, { cwd: '/b', gitBranch: 'fix' }, undefined],
  ])('worktree: %s', (_, recorded, now, expected) => {
    const at = ({ cwd, gitBranch }: { cwd?: string; gitBranch?: string }) => ({ cwd, gitBranch });
    const notice = worktreeNotice(at(recorded), at(now));
    if (expected === undefined) expect(notice).toBeUndefined();
    else expect(notice).toMatch(expected);
  });

  test('background work of the unfinished turn is named, that of earlier turns is not', () => {
    const background = (command: string) => call('b', 'run_shell_command', { command, is_background: true });
    const history = [
      user(said),
      model(background('old server')),
      user(response('b')),
      user(said),
      model(background('npm start')),
      user(response('b')),
      model(call('q', 'ask_user_question')),
      user(response('q')),
    ];
    expect(recoveredAgentNotice(history)).toMatch(/npm start/);
    expect(recoveredAgentNotice(history)).not.toMatch(/old server/);
    expect(recoveredAgentNotice([user(said), model(call('q'))])).toBeUndefined();
  });
});
