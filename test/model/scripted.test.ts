import { readFileSync } from 'node:fs';
import type { Content } from '@google/genai';
import { describe, expect, test } from 'vitest';
import { parseJsonWithComments } from '../../src/jsonc.ts';
import { DEMO_SCRIPT } from '../../src/model/demo-script.ts';
import { parseScript } from '../../src/model/script.ts';
import { createScriptedModel } from '../../src/model/scripted.ts';
import { ProviderFault } from '../../src/session/faults.ts';
import { collect, modelRequest, partsOf, rejection } from '../support/collect.ts';

const model = (...rules: unknown[]) => createScriptedModel(parseScript({ rules }));
const say = (text: string) => ({ steps: [{ text }] });
const textOf = async (of: ReturnType<typeof model>, request: ReturnType<typeof modelRequest>) =>
  partsOf(await collect(of, request))
    .map((part) => part.text ?? '')
    .join('');

const user = (text: string): Content => ({ role: 'user', parts: [{ text }] });
const answer = (output: string, name = 'ask_user_question'): Content => ({
  role: 'user',
  parts: [{ functionResponse: { id: '1', name, response: { output } } }],
});

describe('conditions', () => {
  test.each<[string, object, Content[], boolean]>([
    ['no condition', {}, [user('x')], true],
    ['text contained', { text: 'ell' }, [user('hello')], true],
    ['text elsewhere in the history', { text: 'ell' }, [user('hello'), user('bye')], false],
    ['text in another case', { text: 'ELL' }, [user('hello')], false],
    ['a pattern with flags', { pattern: '^HEL', flags: 'i' }, [user('hello')], true],
    ['a response of any function', { response: true }, [answer('a', 'glob')], true],
    ['a response where there is none', { response: true }, [user('x')], false],
    ['no response wanted', { response: false }, [answer('a')], false],
    ['a response of this function', { response: 'ask_user_question' }, [answer('a')], true],
    ['a response of another', { response: 'ask_user_question' }, [answer('a', 'glob')], false],
    ['text of the response', { responseText: 'Blue' }, [answer('**Colour**: Blue')], true],
    [
      'text of an error response',
      { responseText: 'gone' },
      [{ role: 'user', parts: [{ functionResponse: { name: 'f', response: { error: 'file is gone' } } }] }],
      true,
    ],
    ['the second turn', { turn: 2 }, [user('a'), { role: 'model', parts: [{ text: 'b' }] }, user('c')], true],
    ['responses are no turns', { turn: 1 }, [user('a'), answer('b')], true],
    ['two conditions of which one fails', { text: 'a', turn: 3 }, [user('a')], false],
  ])('[MD-3] %s', async (_, when, contents, fits) => {
    const played = await textOf(model({ when, steps: [{ text: 'fits' }] }, say('not')), modelRequest(contents));
    expect(played).toBe(fits ? 'fits' : 'not');
  });

  test('[MD-3] the n-th call and the number of times count in this model', async () => {
    const counted = model(
      { when: { call: 2 }, steps: [{ text: 'second' }] },
      { when: { times: 1 }, steps: [{ text: 'once' }] },
      say('other'),
    );
    const replies = [];
    for (let i = 0; i < 3; i += 1) replies.push(await textOf(counted, modelRequest('x')));
    expect(replies).toEqual(['once', 'second', 'other']);
  });

  test('[MD-3] a request that no rule fits is a fault that shows the request', async () => {
    const error = await rejection(collect(model({ when: { text: 'z' }, steps: [] }), modelRequest('what now')));
    expect(error).toMatchObject({ kind: 'bad_request', message: expect.stringContaining('what now') });
  });
});

describe('steps', () => {
  const partsFrom = async (...steps: unknown[]) => partsOf(await collect(model({ steps }), modelRequest('hi')));

  test('[MD-3] text is cut into deltas between code points', async () => {
    expect(await partsFrom({ text: 'a🙂b', deltas: 3 })).toEqual([{ text: 'a' }, { text: '🙂' }, { text: 'b' }]);
    expect(await partsFrom({ text: 'ab', deltas: 9 })).toEqual([{ text: 'a' }, { text: 'b' }]);
  });

  test('[MD-3] a repeated text is a long stream', async () => {
    expect(await partsFrom({ text: 'x', repeat: 2000 })).toHaveLength(2000);
  });

  test('[MD-3] thoughts, calls and verbatim parts', async () => {
    const part = { functionCall: { name: 'f' }, thoughtSignature: 'c2ln', unknown: 1 };
    const parts = await partsFrom(
      { thought: 'hm' },
      { call: 'a', args: { x: 1 }, id: 'same' },
      { call: 'a', id: 'same' },
      { call: 'b', id: null },
      { call: 'c' },
      { part },
    );
    expect(parts.slice(0, 4)).toEqual([
      { text: 'hm', thought: true },
      { functionCall: { id: 'same', name: 'a', args: { x: 1 } } },
      { functionCall: { id: 'same', name: 'a', args: {} } },
      { functionCall: { name: 'b', args: {} } },
    ]);
    expect(parts[4]?.functionCall?.id).toMatch(/^call_[0-9a-f-]{36}$/);
    expect(parts[5]).toEqual(part);
  });

  test('[MD-3] placeholders show the prompt, the response, the turn and the call', async () => {
    const echo = model(say('{{prompt}}|{{response}}|{{turn}}|{{call}}|{{other}}'));
    expect(await textOf(echo, modelRequest('say {{turn}}'))).toBe('say {{turn}}||1|1|{{other}}');
    expect(await textOf(echo, modelRequest([user('q'), answer('Blue')]))).toBe('|Blue|1|2|{{other}}');
  });

  test('[MD-3] usage and the finish reason come as written, and nothing after the finish', async () => {
    const steps = [{ usage: { totalTokenCount: 3 } }, { finish: 'max_tokens' }, { text: 'never' }];
    expect(await collect(model({ steps }), modelRequest('x'))).toEqual([
      { kind: 'usage', usage: { totalTokenCount: 3 } },
      { kind: 'finish', reason: 'max_tokens' },
    ]);
  });

  test('[MD-3, MD-4] a fault comes after what was streamed before it', async () => {
    const steps = [{ text: 'a' }, { fault: 'rate_limit', status: 429, retryAfterMs: 1500, message: 'slow down' }];
    const stream = model({ steps }).stream(modelRequest('x'))[Symbol.asyncIterator]();
    expect(await stream.next()).toMatchObject({ value: [{ part: { text: 'a' } }] });
    const error = await rejection(stream.next());
    expect(error).toBeInstanceOf(ProviderFault);
    expect(error).toMatchObject({ kind: 'rate_limit', status: 429, retryAfterMs: 1500, message: 'slow down' });
  });

  test.each([[{ wait: 'abort' }], [{ wait: 600_000 }], [{ text: 'x', repeat: 1_000_000 }]])(
    '[MD-3] an abort ends %j at once with its reason',
    async (step) => {
      const controller = new AbortController();
      const reason = new Error('stop');
      const stream = model({ steps: [{ text: 'first' }, step] }).stream(modelRequest('x', controller.signal));
      const events = stream[Symbol.asyncIterator]();
      await events.next();
      const next = events.next().then(() => events.next());
      controller.abort(reason);
      expect(await rejection(next)).toBe(reason);
    },
  );

  test('[MD-3] what a session does to a part leaves the script as it was', async () => {
    const twice = model({ steps: [{ call: 'f', args: { list: [1] }, id: 'x' }, { part: { text: 'p' } }] });
    for (const part of partsOf(await collect(twice, modelRequest('a')))) {
      (part.functionCall?.args?.['list'] as number[] | undefined)?.push(2);
      part.text = 'changed';
    }
    expect(partsOf(await collect(twice, modelRequest('a')))).toEqual([
      { functionCall: { id: 'x', name: 'f', args: { list: [1] } } },
      { text: 'p' },
    ]);
  });
});

describe('the file', () => {
  const one = (step: unknown) => ({ rules: [{ steps: [step] }] });
  test.each<[string, unknown]>([
    ['script: must be an object', []],
    ['rules: must be a list', {}],
    ['script.rule: is not known here', { rules: [], rule: 1 }],
    ['contextWindow: must be a whole number, 1 or more', { rules: [], contextWindow: 0 }],
    ['rules[0].steps: must be a list', { rules: [{}] }],
    ['rules[0].when: must be an object', { rules: [{ when: 'x', steps: [] }] }],
    ['rules[0].when.txt: is not known here', { rules: [{ when: { txt: 'x' }, steps: [] }] }],
    ['rules[0].when.turn: must be a whole number', { rules: [{ when: { turn: '1' }, steps: [] }] }],
    ['rules[0].when.pattern: Invalid regular expression', { rules: [{ when: { pattern: '(' }, steps: [] }] }],
    ['rules[0].when.flags: belongs to a pattern', { rules: [{ when: { flags: 'i' }, steps: [] }] }],
    ['rules[0].when.flags: must not have g', { rules: [{ when: { pattern: 'a', flags: 'g' }, steps: [] }] }],
    ['rules[0].when.response: must be true, false', { rules: [{ when: { response: 1 }, steps: [] }] }],
    ['rules[0].steps[0]: must have exactly one of', one({})],
    ['rules[0].steps[0]: must have exactly one of', one({ text: 'a', call: 'b' })],
    ['rules[0].steps[0].delta: is not known here', one({ text: 'a', delta: 2 })],
    ['rules[0].steps[0].deltas: must be a whole number', one({ text: 'a', deltas: 0 })],
    ['rules[0].steps[0].repeat: must be at most', one({ text: 'a', repeat: 1e9 })],
    ['rules[0].steps[0].args: must be an object', one({ call: 'f', args: 'x' })],
    ['rules[0].steps[0].id: must be a string', one({ call: 'f', id: 7 })],
    ['rules[0].steps[0].part: must be an object', one({ part: null })],
    ['rules[0].steps[0].wait: must be milliseconds or "abort"', one({ wait: 'forever' })],
    ['rules[0].steps[0].fault: must be one of auth', one({ fault: 'bad' })],
    ['rules[0].steps[0].retryAfterMs: must be a whole number', one({ fault: 'server', retryAfterMs: -1 })],
    ['rules[0].steps[0].usage: must be an object', one({ usage: 3 })],
    ['rules[0].steps[0].finish: must be one of stop', one({ finish: 'STOP' })],
  ])('[MD-3] a wrong one is refused with "%s"', (message, script) => {
    expect(() => parseScript(script)).toThrow(message);
  });
});

test('[MD-3] the example in the documentation is a script, and the documentation names every step and condition', () => {
  const text = readFileSync(new URL('../../docs/SCRIPT.md', import.meta.url), 'utf8');
  const example = /```jsonc\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
  expect(parseScript(parseJsonWithComments(example)).rules).toHaveLength(4);
  const known = (script: unknown) => /(?:one of|known:) (.*)/.exec(complaint(script))?.[1]?.split(', ') ?? [];
  const steps = known({ rules: [{ steps: [{}] }] });
  const conditions = known({ rules: [{ when: { nonsense: 1 }, steps: [] }] });
  expect([steps.length, conditions.length]).toEqual([8, 8]);
  for (const key of [...steps, ...conditions]) expect(text).toContain(`\`${key}\``);
});

function complaint(script: unknown): string {
  try {
    parseScript(script);
  } catch (error) {
    return String(error);
  }
  throw new Error('the script is right');
}

describe('the demo script', () => {
  const demo = createScriptedModel(DEMO_SCRIPT);

  test.each([
    ['an ordinary message', [user('hello')]],
    ['a request for a question', [user('Please ASK me')]],
    ['an answer', [user('ask'), answer('**Colour**: Green')]],
  ])('[CLI-6, MD-3] the reply to %s says what it is and how to get a real model', async (_, contents) => {
    const text = await textOf(demo, modelRequest(contents));
    expect(text).toMatch(/scripted demo model/);
    expect(text).toMatch(/--auth-type gemini/);
  });

  test('[MD-3] it asks one well-formed question when asked to, and echoes the answer', async () => {
    const calls = partsOf(await collect(demo, modelRequest('ask me'))).flatMap((part) => part.functionCall ?? []);
    expect(calls.map((call) => call.name)).toEqual(['ask_user_question']);
    expect(calls[0]?.args?.['questions']).toMatchObject([{ header: 'Colour', options: [{}, {}] }]);
    const echoed = await textOf(demo, modelRequest([user('ask me'), answer('**Colour**: Orange')]));
    expect(echoed).toContain('**Colour**: Orange');
  });
});
