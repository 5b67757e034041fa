// Makes V8's code cache for dist/main.js: has a process do what a child does first (open, prompt, ask, load, resume), and
// keeps every function that V8 compiled for that.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const RUNNER = fileURLToPath(new URL('code-cache.cjs', import.meta.url));
const RESTORE = 'qwen.daemon.restoreAskUserQuestion';

/** Writes the code cache of the bundle `main`, unless it is there. Without one every start compiles, as Node always does. */
export async function makeCodeCache(main, cache) {
  if (existsSync(cache)) return;
  const home = await mkdtemp(join(tmpdir(), 'qwen-acp-build-'));
  const temporary = `${cache}.${process.pid}`;
  try {
    await runAgent([RUNNER, main, temporary], home);
    await rename(temporary, cache);
  } catch (error) {
    console.warn(`No code cache was made: ${error.message}`);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function runAgent(args, home) {
  const agent = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, HOME: home, QWEN_HOME: home },
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 20_000,
    killSignal: 'SIGKILL',
  });
  const exited = once(agent, 'exit');
  const send = (message) => agent.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const waiting = new Map();
  createInterface({ input: agent.stdout }).on('line', (line) => {
    const { id, method, result } = JSON.parse(line);
    if (method === undefined) waiting.get(id)?.(result);
    else if (id !== undefined) {
      send({ id, result: { outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { 0: 'Green' } } });
    }
  });
  const request = (method, params) =>
    Promise.race([
      new Promise((resolve) => {
        const id = waiting.size + 1;
        waiting.set(id, resolve);
        send({ id, method, params });
      }),
      exited.then(() => Promise.reject(new Error(`the agent ended before it answered ${method}`))),
    ]);
  await play(request, home);
  agent.stdin.end();
  await exited;
}

async function play(request, cwd) {
  await request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await request('session/new', { cwd, mcpServers: [] });
  const say = (text) => request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  await say('hello');
  await say('ask me');
  const where = { sessionId, cwd, mcpServers: [] };
  await request('session/load', where);
  await request('session/load', { ...where, _meta: { 'qwen.session.loadReplayMode': 'bulk' } });
  await request('session/resume', where);
  await request('session/prompt', { sessionId, prompt: [], _meta: { [RESTORE]: true } });
}
