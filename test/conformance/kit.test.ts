import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { listText } from '../../src/conformance/report.ts';
import { envelopeFault, faultIn } from '../../src/conformance/schema.ts';
import { SUITES } from '../../src/conformance/suites/all.ts';
import { parse } from '../../src/conformance/wire.ts';
import { tempFolder } from '../support/temp.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const AGENT = fileURLToPath(new URL('../fixtures/agents/faulty/agent.mjs', import.meta.url));

/** Runs the command line `qwen-acp conformance`. */
async function conformance(...args: string[]): Promise<{ code: number | null; said: string }> {
  const kit = spawn(process.execPath, [CLI, 'conformance', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [kit.stdout, kit.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [code] = await once(kit, 'close');
  return { code, said };
}

const node = (script: string) => ['--', process.execPath, '-e', script];

describe.concurrent('the exit code of the kit', () => {
  test.each<[string, string[], number, RegExp]>([
    ['no agent', [], 2, /command of the agent is missing/],
    ['an unknown option', ['--bogus', '--', 'true'], 2, /Unknown argument: bogus/],
    ['a wrong environment', ['--env', 'x', '--', 'true'], 2, /NAME=value/],
    ['an unknown check', ['--only', 'ACP-NONE', '--', 'true'], 2, /There is no check ACP-NONE/],
    ['a program that is not there', ['--', '/no/such/agent'], 2, /did not start: spawn/],
    ['a program that ends', node('process.exit(3)'), 2, /did not start: .* \(exit code 3\)/],
    [
      'a program that says nothing',
      ['--timeout', '0.2', ...node('setInterval(() => {}, 1000)')],
      2,
      /did not come within 0.6 s/,
    ],
    ['a daemon that ends', ['--serve', 'false'], 2, /daemon did not start: the daemon ended: exit code 1/],
    ['a daemon that is not there', ['--daemon', 'http://127.0.0.1:1'], 2, /daemon did not start: the answer to GET/],
    ['two daemons', ['--daemon', 'http://127.0.0.1:1', '--serve', 'false'], 2, /--daemon or --serve, not both/],
    ['a list of checks', ['--list'], 0, /ACP-INIT-1 .*\n/],
    ['help', ['--help'], 0, /--timeout/],
    [
      'a met requirement',
      ['--only', 'ACP-CALL-1', '--', process.execPath, AGENT],
      0,
      /ACP-CALL-1 +pass .*\n\nConforms: 1 pass\./,
    ],
    [
      'a warning',
      ['--only', 'ACP-INIT-3', '--', process.execPath, AGENT, '--fault', 'no-version'],
      0,
      /ACP-INIT-3 +warn /,
    ],
    [
      'a warning that counts',
      ['--strict', '--only', 'ACP-INIT-3', '--', process.execPath, AGENT, '--fault', 'no-version'],
      1,
      /1 warn/,
    ],
  ])('%s', async (_, args, code, said) => {
    expect(await conformance(...args)).toEqual({ code, said: expect.stringMatching(said) });
  });
});

test('a failure is shown with the frame that decided it, and written as JSON', async () => {
  const file = join(tempFolder(), 'report.json');
  const command = [process.execPath, AGENT, '--fault', 'unknown-is-internal'];
  const { code, said } = await conformance('--json', file, '--only', 'ACP-CALL-1', '--', ...command);
  expect(code).toBe(1);
  expect(said).toMatch(
    /ACP-CALL-1 +FAIL .*\n +the error's code is -32603.*\n +\{"jsonrpc":"2.0",.*\n\nDoes not conform: 1 fail\./,
  );
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    agent: { command, info: { name: 'faulty-agent', version: '1' }, protocolVersion: 1 },
    daemon: null,
    rows: [
      {
        suite: 'acp',
        id: 'ACP-CALL-1',
        requirement: expect.any(String),
        source: 'JSON-RPC 2.0',
        level: 'must',
        profile: 'core',
        status: 'fail',
        reason: expect.any(String),
        frame: expect.stringMatching(/^\{"jsonrpc":"2.0",/),
        ms: expect.any(Number),
      },
    ],
    summary: { pass: 0, fail: 1, warn: 0, 'not advertised': 0, skipped: 0 },
    ok: false,
  });
});

test('an agent that is silent after its start is judged to the end, and ended', async () => {
  const script = `process.stdin.once('data', () => console.log(JSON.stringify({
    jsonrpc: '2.0', id: 2, result: { protocolVersion: 1, agentCapabilities: {} } }))); console.error(process.pid)`;
  const { code, said } = await conformance(
    '--timeout',
    '0.4',
    '--only',
    'ACP-CALL-1,ACP-SESSION-1,ACP-SESSION-8',
    ...node(script),
  );
  expect(code).toBe(1);
  expect(said).toMatch(/ACP-CALL-1 +FAIL/);
  expect(said).toMatch(/ACP-SESSION-1 +skipped .*\n +it opens no session/);
  expect(said).toMatch(/ACP-SESSION-8 +(not advertised|skipped) /);
});

test('ids and sentences of checks are their own, and the page about the kit lists them', () => {
  const checks = SUITES.flatMap((suite) => suite.checks);
  expect(checks.length).toBeGreaterThan(100);
  for (const of of [checks.map(({ id }) => id), checks.map(({ requirement }) => requirement)]) {
    expect(of.filter((one, index) => of.indexOf(one) !== index)).toEqual([]);
  }
  const page = readFileSync(new URL('../../docs/CONFORMANCE.md', import.meta.url), 'utf8');
  for (const suite of SUITES) expect(page).toContain(listText([suite], true));
});

describe('a frame that does not fit is told by what is wrong with it', () => {
  test.each<[string, string | undefined]>([
    ['{"jsonrpc":"2.0","method":"x"}', undefined],
    ['{"jsonrpc":"2.0","id":1,"result":{}}', undefined],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}', undefined],
    ['hello', 'it is no JSON object'],
    ['[]', 'it is no JSON object'],
    ['{"id":1,"result":{}}', 'jsonrpc is not "2.0"'],
    ['{"jsonrpc":"2.0","method":5}', 'method is no string'],
    ['{"jsonrpc":"2.0","result":{}}', 'it has neither a method nor an id'],
    ['{"jsonrpc":"2.0","id":1}', 'it has not exactly one of result and error'],
    [
      '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
      'it has not exactly one of result and error',
    ],
  ])('%s', (text, fault) => {
    expect(envelopeFault({ dir: 'in', text, value: parse(text), at: 0 })).toBe(fault);
  });

  test.each<[string, unknown, string | undefined]>([
    ['PromptResponse', { stopReason: 'end_turn' }, undefined],
    ['PromptResponse', { stopReason: 'tired' }, 'stopReason'],
    [
      'SessionNotification',
      { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '' } } },
      undefined,
    ],
    [
      'SessionNotification',
      { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text' } } },
      'update.content.text',
    ],
    [
      'SessionNotification',
      { sessionId: 's', update: { sessionUpdate: 'tool_call', toolCallId: 't' } },
      'update.title',
    ],
    [
      'RequestPermissionRequest',
      { sessionId: 's', toolCall: { toolCallId: 't' }, options: [{ optionId: 'o', name: 'n', kind: 'perhaps' }] },
      'options.0.kind',
    ],
  ])('%s %j', (definition, value, path) => {
    const fault = faultIn(definition, value);
    if (path === undefined) expect(fault).toBeUndefined();
    else expect(fault?.split(':')[0]).toBe(path);
  });
});
