import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { send } from '../support/daemon.ts';
import { tempFolder } from '../support/temp.ts';
import { OUR_CLI, PACKAGE_ROOT } from './programs.ts';

const run = promisify(execFile);
const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { version: string };

/** The environment of somebody who has just installed it. */
const bare = (): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOME: tempFolder(),
  QWEN_ACP_INTEROP_RUN: process.env['QWEN_ACP_INTEROP_RUN'] ?? 'by hand',
});

function ended(child: ChildProcess): void {
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
}

/** The registry's rule: the first line on stdout answers `initialize`, and somebody without anything can sign in. */
async function admitted(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, [...args, '--acp'], { env: bare(), cwd: tempFolder() });
  ended(child);
  const lines = createInterface({ input: child.stdout });
  const clientCapabilities = { fs: { readTextFile: true, writeTextFile: true }, terminal: true };
  const params = { protocolVersion: 1, clientCapabilities };
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
  const [line] = await once(lines, 'line');
  const answer = JSON.parse(line);
  expect(answer).toMatchObject({ jsonrpc: '2.0', id: 1, result: { protocolVersion: 1 } });
  const { authMethods } = answer.result;
  expect(authMethods.length).toBeGreaterThan(0);
  for (const { id, name } of authMethods) expect([typeof id, typeof name]).toEqual(['string', 'string']);
  child.stdin.end();
  expect(await once(child, 'exit')).toEqual([0, null]);
}

test("[ACP-1, CLI-1, CLI-4] the build passes the registry's rule in an empty home", async () => {
  await admitted(process.execPath, [OUR_CLI]);
});

describe('the packed tarball, installed', () => {
  test('[CLI-1, CLI-4, ACP-1, DM-1] passes the rule, says its version, serves, and holds nothing of the tests', async () => {
    const folder = tempFolder();
    // Its own scripts would build once more.
    const packed = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
      cwd: PACKAGE_ROOT,
    });
    // npm 12 answers an object by name, older ones a list.
    const [{ files }] = Object.values(JSON.parse(packed.stdout)) as [{ files: { path: string }[] }];
    const tops = new Set(files.map(({ path }) => path.split('/')[0]));
    expect([...tops].toSorted()).toEqual(['LICENSE', 'README.md', 'dist', 'docs', 'package.json']);
    const tarball = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz')) as string);
    const prefix = tempFolder({ 'package.json': '{"private":true}' });
    await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts', tarball], {
      cwd: prefix,
    });

    const program = join(prefix, 'node_modules/.bin/qwen-acp');
    await admitted(program, []);
    expect((await run(program, ['--version'], { env: bare() })).stdout.trim()).toBe(version);
    // What a registry starts: npx, here with what is installed.
    await admitted('npx', ['--no-install', '--prefix', prefix, 'qwen-acp']);
    await serves(program);
  });
});

async function serves(program: string): Promise<void> {
  const daemon = spawn(program, ['serve', '--port', '0'], { env: bare(), cwd: tempFolder() });
  ended(daemon);
  const [line] = await once(createInterface({ input: daemon.stdout }), 'line');
  const url = /http:\/\/\S+/.exec(line)?.[0];
  expect(await send(`${url}/health`, 'GET')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect(await send(`${url}/session`, 'POST', {})).toMatchObject({ status: 200 });
  daemon.kill('SIGTERM');
  expect(await once(daemon, 'exit')).toEqual([0, null]);
}
