import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { McpServer } from '@agentclientprotocol/sdk';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { createLog } from '../../src/log.ts';
import type { Tool, ToolContext, ToolOutput } from '../../src/session/ports.ts';
import { connectMcpServers, type McpOptions, type McpToolSet } from '../../src/tools/mcp.ts';
import { bundleProgram, startHttpMcp, startRedirect, startSseMcp, stdioServer } from '../support/mcp.ts';
import { tempFolder } from '../support/temp.ts';

let program = '';
/** A server that the tests share which change nothing of it. */
let shared: McpToolSet;
let sharedCwd = '';
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'qwen-acp-mcp-'));
  program = bundleProgram('mcp-stdio', folder);
  sharedCwd = realpathSync(folder);
  process.env['QWEN_ACP_TEST_SECRET'] = 'secret';
  const server = stdioServer(program, 'test', { GIVEN: 'yes' });
  shared = await connectMcpServers([server], { cwd: folder, log: createLog('silent'), version: '1.2.3' });
  return async () => {
    await shared.close();
    rmSync(folder, { recursive: true, force: true });
  };
});

interface Connected {
  readonly set: McpToolSet;
  readonly cwd: string;
  readonly log: readonly string[];
}

async function connect(servers: readonly McpServer[], options: Partial<McpOptions> = {}): Promise<Connected> {
  const cwd = tempFolder();
  const log: string[] = [];
  const given = { cwd, log: createLog('info', (line) => log.push(line)), version: '1.2.3' };
  const set = await connectMcpServers(servers, { ...given, ...options });
  onTestFinished(() => set.close());
  return { set, cwd, log };
}

function toolOf(set: McpToolSet, name: string): Tool {
  const tool = set.tools.find(({ declaration }) => declaration.name === name);
  if (tool === undefined) throw new Error(`no ${name} in ${names(set)}`);
  return tool;
}

const names = (set: McpToolSet) => set.tools.map(({ declaration }) => declaration.name);

async function call(set: McpToolSet, name: string, args = {}, more: Partial<ToolContext> = {}): Promise<ToolOutput> {
  // The rest of a context is the business of other tools.
  const context = { signal: new AbortController().signal, progress: () => {}, ...more } as ToolContext;
  return (await toolOf(set, name).prepare(args, context)).run();
}

const where = async (set: McpToolSet, name = 'mcp__test__where') => JSON.parse((await call(set, name)).text);

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

test('[TL-2] a server on stdio offers its tools, all pages of them, with their schemas', async () => {
  const set = shared;
  expect(names(set)).toEqual(
    ['echo', 'where', 'fail', 'die', 'wait', 'work', 'grow', 'mixed', 'spawn', 'much'].map(
      (name) => `mcp__test__${name}`,
    ),
  );
  const echo = toolOf(set, 'mcp__test__echo');
  expect(echo).toMatchObject({ effect: 'execute', type: 'mcp' });
  expect(echo.declaration).toEqual({
    name: 'mcp__test__echo',
    description: 'Says it again',
    parametersJsonSchema: { type: 'object', properties: { text: { type: 'string' } } },
  });
  expect(set.warnings).toEqual([]);
  expect(await call(set, 'mcp__test__echo', { text: 'hello' })).toEqual({ text: 'hello', display: 'hello' });
});

test('[TL-2] every call is asked about, whatever a server claims of a tool; always means this tool of this server', async () => {
  const { set } = await connect([stdioServer(program, 'one'), stdioServer(program, 'two')]);
  expect(new Set(set.tools.map(({ effect }) => effect))).toEqual(new Set(['execute']));
  const scopes = await Promise.all(
    ['mcp__one__echo', 'mcp__one__where', 'mcp__two__echo', 'mcp__one__echo'].map(
      async (name) => (await toolOf(set, name).prepare({}, {} as ToolContext)).always,
    ),
  );
  expect(scopes[0]?.label).toBe('echo of the MCP server one');
  expect(new Set(scopes.map((scope) => scope?.key)).size).toBe(3);
  expect(scopes[3]).toEqual(scopes[0]);
});

test('[TL-2] a server runs in the folder of the session with a plain environment and what the client gave', async () => {
  const seen = await where(shared);
  expect(seen.cwd).toBe(sharedCwd);
  expect(seen.env).toMatchObject({ GIVEN: 'yes', PATH: process.env['PATH'] });
  expect(process.env).toHaveProperty('QWEN_ACP_TEST_SECRET');
  expect(seen.env).not.toHaveProperty('QWEN_ACP_TEST_SECRET');
});

test('[TL-2] what a server answers becomes bounded text; its failure is a failed call', async () => {
  const set = shared;
  expect(await call(set, 'mcp__test__fail')).toEqual({ text: 'it went wrong', display: 'it went wrong', ok: false });
  // Its output schema asks for what it does not give: no reason to withhold the answer from the model.
  expect((await call(set, 'mcp__test__mixed')).text).toBe(
    'one\n[image, image/png, about 6 KiB: not shown]\ntwo\n[resource three: file:///three]',
  );
  const much = (await call(set, 'mcp__test__much')).text;
  expect(much.length).toBeLessThan(101_000);
  expect(much).toContain('200000 more characters were left out');
});

test('[TL-2] progress is shown, and an abort reaches the server and is thrown as its reason', async () => {
  const set = shared;
  const cwd = tempFolder();
  const shown: string[] = [];
  expect(await call(set, 'mcp__test__work', {}, { progress: (text) => shown.push(text) })).toMatchObject({
    text: 'done',
  });
  expect(shown).toEqual(['1/2 step 1', '2/2 step 2']);
  const controller = new AbortController();
  const reason = new Error('stopped');
  const file = join(cwd, 'cancelled');
  const waiting = call(
    set,
    'mcp__test__wait',
    { file },
    {
      signal: controller.signal,
      progress: () => controller.abort(reason),
    },
  );
  await expect(waiting).rejects.toBe(reason);
  await vi.waitUntil(() => existsSync(file), { timeout: 5000 });
  expect(await call(set, 'mcp__test__echo', { text: 'still there' })).toMatchObject({ text: 'still there' });
});

test('[TL-2] a call without a sign of life ends in time, with a fault that names the server', async () => {
  const { set, cwd } = await connect([stdioServer(program)], { callTimeoutMs: 200 });
  await expect(call(set, 'mcp__test__wait', { file: join(cwd, 'x') })).rejects.toMatchObject({
    name: 'ToolFault',
    type: 'mcp_tool_error',
    message: expect.stringContaining('The MCP server test did not answer in time'),
  });
});

test('[TL-2] tools that a server gets later are offered later', async () => {
  const { set } = await connect([stdioServer(program)]);
  const before = set.tools;
  expect(set.tools).toBe(before);
  await call(set, 'mcp__test__grow');
  await vi.waitUntil(() => names(set).includes('mcp__test__grown'), { timeout: 5000 });
  expect(set.tools).toHaveLength(before.length + 1);
});

test('[TL-2] a server that dies fails that call and is started again for the next, a few times', async () => {
  const { set, log } = await connect([stdioServer(program)]);
  const first = (await where(set)).pid;
  await expect(call(set, 'mcp__test__die')).rejects.toMatchObject({
    type: 'mcp_tool_error',
    message: expect.stringMatching(/^The MCP server test was lost during the call.*I cannot go on/),
  });
  expect((await where(set)).pid).not.toBe(first);
  expect(log.filter((line) => line.includes('warn: MCP server test'))).toHaveLength(1);
  const deaths: string[] = [];
  for (let round = 0; round < 5; round += 1)
    deaths.push(await call(set, 'mcp__test__die').catch(({ message }) => message));
  expect(deaths.map((message) => /was lost|started again 3 times in vain/.exec(message)?.[0])).toEqual([
    ...Array(4).fill('was lost'),
    'started again 3 times in vain',
  ]);
});

test('[TL-2] servers that do not start are warnings that say why; the others work', async () => {
  const { set, log } = await connect([
    { name: 'missing', command: '/nowhere/to/be/found', args: [], env: [] },
    stdioServer(program, 'exits', { MODE: 'exit' }),
    stdioServer(program, 'flood', { MODE: 'flood' }),
    { type: 'http', name: 'refused', url: 'http://127.0.0.1:9/mcp', headers: [] },
    { type: 'sse', name: 'unreadable', url: 'no address', headers: [] },
    stdioServer(program, 'good'),
  ]);
  expect(names(set)).toContain('mcp__good__echo');
  expect(names(set).filter((name) => !name.startsWith('mcp__good__'))).toEqual([]);
  const why = ['ENOENT', 'Connection closed; it said: .*no licence', 'Connection closed', 'bad port', 'Invalid URL'];
  expect(set.warnings).toHaveLength(why.length);
  for (const [index, reason] of why.entries()) {
    expect(set.warnings[index]).toMatch(new RegExp(`^The MCP server \\w+ is not available: .*${reason}`));
  }
  expect(log.filter((line) => line.includes('did not start'))).toHaveLength(why.length);
  expect(log.join('')).not.toContain('\u001b');
});

test('[TL-2] garbage on stdout is a warning in the log, once, and not the end', async () => {
  const { set, log } = await connect([stdioServer(program, 'noisy', { MODE: 'noise' })]);
  expect(await call(set, 'mcp__noisy__echo', { text: 'all the same' })).toMatchObject({ text: 'all the same' });
  expect(log.filter((line) => line.includes('Welcome to the server!'))).toHaveLength(1);
  expect(log.filter((line) => line.includes('what is no message'))).toHaveLength(1);
});

test('[TL-2] a slow server does not hold the session up; its failure comes later', async () => {
  const http = await startHttpMcp();
  onTestFinished(() => http.close());
  const { set } = await connect(
    [stdioServer(program, 'mute', { MODE: 'mute' }), { type: 'http', name: 'web', url: http.url, headers: [] }],
    { waitMs: 1500, startTimeoutMs: 2000 },
  );
  expect(names(set)).toContain('mcp__web__echo');
  expect(set.warnings).toEqual([]);
  await vi.waitUntil(() => set.warnings.length === 1, { timeout: 5000 });
  expect(set.warnings[0]).toContain('no answer within 2 s');
});

test('[TL-2] close leaves nothing of a server, be it stubborn or with children of its own', async () => {
  const { set } = await connect([stdioServer(program, 'stubborn', { MODE: 'stubborn' }), stdioServer(program)]);
  const pids = [
    (await where(set)).pid,
    (await where(set, 'mcp__stubborn__where')).pid,
    Number((await call(set, 'mcp__test__spawn')).text),
    Number((await call(set, 'mcp__stubborn__spawn')).text),
  ];
  expect(pids.map(lives)).toEqual([true, true, true, true]);
  const started = Date.now();
  await set.close();
  expect(Date.now() - started).toBeLessThan(1900);
  // A killed process is gone for the system a moment later.
  await vi.waitUntil(() => !pids.some(lives), { timeout: 1000, interval: 10 });
  await expect(call(set, 'mcp__test__echo', { text: 'x' })).rejects.toMatchObject({ type: 'mcp_tool_error' });
});

test('[TL-2] a process that leaves without closing takes its servers along, with what they started', async () => {
  const host = fork(bundleProgram('mcp-host', tempFolder()), [program]);
  const left = once(host, 'exit');
  const [pids] = (await once(host, 'message')) as [number[]];
  expect(pids).toHaveLength(2);
  expect(await left).toEqual([0, null]);
  await vi.waitUntil(() => !pids.some(lives), { timeout: 1000, interval: 10 });
});

test('[TL-2] close ends servers that are still starting', async () => {
  const { set, log } = await connect([stdioServer(program, 'mute', { MODE: 'mute' })], { waitMs: 0 });
  await set.close();
  expect(log).toEqual([]);
});

test('[TL-2] streamable HTTP: headers go with every request, calls and changes come back, the session is ended', async () => {
  const http = await startHttpMcp();
  onTestFinished(() => http.close());
  const { set } = await connect([
    { type: 'http', name: 'web', url: http.url, headers: [{ name: 'x-token', value: 't1' }] },
  ]);
  expect(await call(set, 'mcp__web__echo', { text: 'over http' })).toMatchObject({ text: 'over http' });
  await call(set, 'mcp__web__grow');
  await vi.waitUntil(() => names(set).includes('mcp__web__grown'), { timeout: 5000 });
  await set.close();
  expect(http.seen.map(({ headers }) => headers['x-token'])).toEqual(http.seen.map(() => 't1'));
  expect(http.seen.at(-1)?.method).toBe('DELETE');
});

test('[TL-2] streamable HTTP: a server that forgot the session is connected to anew, and the call repeated', async () => {
  const http = await startHttpMcp();
  onTestFinished(() => http.close());
  const { set } = await connect([{ type: 'http', name: 'web', url: http.url, headers: [] }]);
  http.forget();
  expect(await call(set, 'mcp__web__echo', { text: 'again' })).toMatchObject({ text: 'again' });
});

test('[TL-2] streamable HTTP: a connection that is cut during a call fails the call, and the next one works', async () => {
  const http = await startHttpMcp();
  onTestFinished(() => http.close());
  const { set, cwd } = await connect([{ type: 'http', name: 'web', url: http.url, headers: [] }]);
  const waiting = call(set, 'mcp__web__wait', { file: join(cwd, 'x') }, { progress: () => http.cut() });
  await expect(waiting).rejects.toMatchObject({ type: 'mcp_tool_error' });
  expect(await call(set, 'mcp__web__echo', { text: 'again' })).toMatchObject({ text: 'again' });
});

test('[TL-2] streamable HTTP: a redirect to another origin is not followed, with headers that are a secret', async () => {
  const [other, http] = [await startHttpMcp(), await startRedirect()];
  onTestFinished(() => Promise.all([other.close(), http.close()]).then(() => {}));
  http.to(other.url);
  const { set } = await connect([
    { type: 'http', name: 'web', url: http.url, headers: [{ name: 'x-token', value: 't3' }] },
  ]);
  expect(set.warnings).toHaveLength(1);
  expect(other.seen).toEqual([]);
});

test('[TL-2] server-sent events: the older transport works the same', async () => {
  const sse = await startSseMcp();
  onTestFinished(() => sse.close());
  const { set, cwd } = await connect([
    { type: 'sse', name: 'old', url: sse.url, headers: [{ name: 'x-token', value: 't2' }] },
  ]);
  expect(await call(set, 'mcp__old__echo', { text: 'over events' })).toMatchObject({ text: 'over events' });
  expect(sse.seen.map(({ headers }) => headers['x-token'])).toEqual(sse.seen.map(() => 't2'));
  const waiting = call(set, 'mcp__old__wait', { file: join(cwd, 'x') }, { progress: () => sse.cut() });
  await expect(waiting).rejects.toMatchObject({ type: 'mcp_tool_error' });
  expect(await call(set, 'mcp__old__echo', { text: 'again' })).toMatchObject({ text: 'again' });
});
