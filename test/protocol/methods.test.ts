import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CWD, RESTORE } from '../support/peer.ts';
import { call, type Frame, RawChild } from '../support/raw-child.ts';

const NOBODY = '11111111-1111-4111-8111-111111111111';
const TEXT = [{ type: 'text', text: 'hello' }];

const refused = (code: number, path?: string) =>
  expect.objectContaining({
    code,
    ...(path !== undefined && { data: { issues: expect.arrayContaining([expect.objectContaining({ path })]) } }),
  });

/** A child with one live session. */
async function childWithSession(options: ConstructorParameters<typeof RawChild>[0] = {}) {
  const child = new RawChild(options);
  const { result } = await child.call('new', 'session/new', { cwd: CWD, mcpServers: [] });
  return { child, sessionId: result.sessionId as string };
}

/** The answers to these calls, in their order. */
async function answers(
  child: RawChild,
  calls: readonly (readonly [string, unknown, ...unknown[]])[],
): Promise<Frame[]> {
  const found: Frame[] = [];
  for (const [at, [method, params]] of calls.entries()) found.push(await child.call(`c${at}`, method, params));
  return found;
}

test('[ACP-4, TR-6, K072] every method answers an unknown session with -32002 that names it, whatever its id looks like', async () => {
  const { child } = await childWithSession();
  child.home.place('c0.dangling');
  const names: readonly (readonly [string, object?])[] = [
    ['session/load', { cwd: CWD }],
    ['session/resume', { cwd: CWD, mcpServers: [] }],
    ['session/prompt', { prompt: TEXT }],
    ['session/prompt', { prompt: [], _meta: { [RESTORE]: true } }],
    ['session/close'],
    ['session/set_mode', { modeId: 'plan' }],
    ['session/set_config_option', { configId: 'mode', value: 'plan' }],
    ...['continue', 'close'].map((name) => [`qwen/control/session/${name}`] as const),
    ['qwen/control/session/branch', { cwd: CWD }],
    ['qwen/session/sources/copy', { targetSessionId: NOBODY }],
    ['qwen/control/session/goal/get'],
    ['qwen/status/session/transcript', { cwd: CWD }],
    ...['context', 'context_usage', 'stats', 'tasks', 'agents', 'supported_commands'].map(
      (name) => [`qwen/status/session/${name}`] as const,
    ),
    ['craft/cancelPendingPrompt'],
    ['_craft/cancelPendingPrompt'],
    ['_qwen/control/session/continue'],
  ];
  for (const sessionId of [NOBODY, NOBODY.replace('1', 'A'), 'no uuid', '../../../etc/passwd', '']) {
    const found = await answers(
      child,
      names.map(([name, more]) => [name, { sessionId, ...more }]),
    );
    for (const [at, { error }] of found.entries()) {
      expect(error, names[at]?.[0]).toMatchObject({
        code: -32002,
        message: `Resource not found: session:${sessionId}`,
        data: { uri: `session:${sessionId}`, sessionId },
      });
    }
    const exempt = await answers(child, [
      ['qwen/session/loadUpdates', { sessionId, cwd: CWD }],
      ['_qwen/session/loadUpdates', { sessionId, cwd: CWD }],
      ['session/delete', { sessionId }],
    ]);
    expect(exempt.map(({ result }) => result)).toEqual([{ updates: [] }, { updates: [] }, {}]);
  }
  expect(child.stderr).toBe('');
});

test('[ACP-2, ACP-4] wrong params are -32602 that names the path; missing MCP servers are none', async () => {
  const { child, sessionId } = await childWithSession();
  const fork = { sessionId, cwd: 'relative' };
  const rows: readonly (readonly [string, unknown, string])[] = [
    ['session/new', { cwd: 'relative', mcpServers: [] }, '/cwd'],
    ['session/load', fork, '/cwd'],
    ['session/resume', fork, '/cwd'],
    ['session/list', { cwd: './relative' }, '/cwd'],
    ['qwen/session/loadUpdates', fork, '/cwd'],
    ['qwen/control/session/branch', fork, '/cwd'],
    ['session/new', { cwd: 5 }, '/cwd'],
    ['session/new', { mcpServers: [] }, ''],
    ['session/new', { cwd: CWD, mcpServers: 'none' }, '/mcpServers'],
    ['session/new', [CWD], ''],
    ['session/new', 'text', ''],
    ['session/load', { cwd: CWD, sessionId: 7 }, '/sessionId'],
    ['session/prompt', { sessionId }, ''],
    ['session/prompt', { sessionId, prompt: 'text' }, '/prompt'],
    ['session/prompt', { sessionId, prompt: [{ type: 'text' }] }, '/prompt/0'],
    ['session/prompt', { sessionId, prompt: [...TEXT, { type: 'smell' }] }, '/prompt/1'],
    ['session/set_mode', { sessionId, modeId: 'no mode' }, '/modeId'],
    ['session/set_mode', { sessionId }, ''],
    ['session/set_config_option', { sessionId, configId: 'colour', value: 'red' }, '/configId'],
    ['session/set_config_option', { sessionId, configId: 'mode', value: 'no mode' }, '/value'],
    ['qwen/session/loadUpdates', { sessionId }, '/cwd'],
    ['qwen/control/session/continue', {}, '/sessionId'],
    ['qwen/control/session/close', null, ''],
    ['craft/cancelPendingPrompt', { sessionId: null }, '/sessionId'],
    ['qwen/status/channel/ping', { v: 1 }, '/nonce'],
  ];
  const found = await answers(child, rows);
  for (const [at, { error }] of found.entries()) {
    const [method, params, path] = rows[at] as (typeof rows)[number];
    expect(error, `${method} ${JSON.stringify(params)}`).toEqual(refused(-32602, path));
  }
  const fine = await answers(child, [
    ['session/new', { cwd: CWD }],
    ['session/new', { cwd: CWD, mcpServers: null }],
    ['session/list', null],
  ]);
  for (const { result } of fine) expect(result).toBeTypeOf('object');
  expect(child.stderr).toBe('');
});

test('[ACP-2] unknown methods are -32601, unknown notifications are ignored', async () => {
  const { child, sessionId } = await childWithSession();
  const names = [
    'session/fork',
    'no/such',
    'qwen/no/such',
    '_craft/drainMidTurnQueue',
    'session/update',
    'toString',
    '',
  ];
  const found = await answers(
    child,
    names.map((name) => [name, { sessionId }]),
  );
  expect(found.map(({ error }) => error)).toEqual(names.map(() => refused(-32601)));
  for (const method of ['no/such', '$/no/such', 'session/load', 'qwen/no/such']) {
    child.send({ jsonrpc: '2.0', method, params: { sessionId } });
  }
  child.send({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: NOBODY } });
  child.send({ jsonrpc: '2.0', method: 'session/cancel', params: {} });
  child.send(call('last', 'session/list'));
  expect((await child.until('last')).map(({ id }) => id)).toEqual(['last']);
});

test('[ACP-14] a prompt without content is -32602 and writes nothing, unless it asks again or goes on', async () => {
  for (const restore of [true, false]) {
    const { child, sessionId } = await childWithSession({ restore });
    const empty = [{ prompt: [] }, { prompt: [{ type: 'text', text: '' }] }];
    const found = await answers(
      child,
      empty.map((params) => ['session/prompt', { sessionId, ...params }]),
    );
    expect(found.map(({ error }) => error)).toEqual(empty.map(() => refused(-32602, '/prompt')));
    const [again, on] = await answers(
      child,
      [RESTORE, 'qwen.daemon.continueLastTurn'].map((key) => [
        'session/prompt',
        { sessionId, prompt: [], _meta: { [key]: true } },
      ]),
    );
    expect(again).toMatchObject(restore ? { result: { stopReason: 'end_turn' } } : { error: { code: -32602 } });
    expect(on.result).toEqual({ stopReason: 'end_turn' });
    expect(existsSync(child.home.file(sessionId))).toBe(false);
  }
});

test('[ACP-2] a mode is set by either method and announced by both updates', async () => {
  const { child, sessionId } = await childWithSession();
  child.send(call(1, 'session/set_mode', { sessionId, modeId: 'plan' }));
  const first = await child.until(1);
  child.send(call(2, 'session/set_config_option', { sessionId, configId: 'mode', value: 'yolo' }));
  const second = await child.until(2);
  for (const [frames, mode] of [
    [first, 'plan'],
    [second, 'yolo'],
  ] as const) {
    const updates = frames.slice(0, -1).map(({ params }) => params.update);
    const aboutMode = updates.filter(({ sessionUpdate }) => sessionUpdate !== 'available_commands_update');
    expect(aboutMode).toEqual([
      { sessionUpdate: 'current_mode_update', currentModeId: mode },
      { sessionUpdate: 'config_option_update', configOptions: [expect.objectContaining({ currentValue: mode })] },
    ]);
  }
  expect(first.at(-1).result).toEqual({});
  expect(second.at(-1).result.configOptions).toEqual([expect.objectContaining({ id: 'mode', currentValue: 'yolo' })]);
  await child.call(3, 'session/prompt', { sessionId, prompt: TEXT });
  expect((await child.call(4, 'session/load', { sessionId, cwd: CWD })).result.modes.currentModeId).toBe('yolo');
});

test('[ACP-2] authenticate takes the methods that were offered; one that lacks its key says which variable to set', async () => {
  const { child } = await childWithSession();
  const found = await answers(
    child,
    ['scripted', 'gemini', 'no such method'].map((methodId) => ['authenticate', { methodId }]),
  );
  expect(found[0].result).toEqual({});
  expect(found[1].error).toMatchObject({ code: -32000, message: expect.stringContaining('GEMINI_API_KEY') });
  expect(found[2].error).toEqual(refused(-32602));
});

test('[ACP-12, TR-6] a session can be given its id; one that is no UUID or is taken is refused', async () => {
  const { child, sessionId } = await childWithSession();
  const saved = child.home.place('c0.dangling');
  const create = (id: string) => ['session/new', { cwd: CWD, _meta: { 'qwen-code/sessionId': id } }] as const;
  const found = await answers(
    child,
    [NOBODY.replace('1', 'A'), NOBODY, sessionId, saved, saved.toUpperCase(), '../x'].map(create),
  );
  expect(found[0].result.sessionId).toBe(NOBODY.replace('1', 'a'));
  expect(found[1].result.sessionId).toBe(NOBODY);
  for (const { error } of found.slice(2)) expect(error).toEqual(refused(-32602));
});
