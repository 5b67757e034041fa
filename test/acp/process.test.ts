import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { bundle } from '../support/child.ts';
import { call } from './raw-peer.ts';

// Beside the sources, so that the bundle finds its packages.
const folder = mkdtempSync(join(import.meta.dirname, '.program-'));
const program = bundle(new URL('./stdio-program.ts', import.meta.url), folder);
afterAll(() => rmSync(folder, { recursive: true }));

function start(...args: string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [program, ...args]);
  child.stdin.on('error', () => {});
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

const send = (child: ChildProcessWithoutNullStreams, frame: object) => child.stdin.write(`${JSON.stringify(frame)}\n`);

/** How it ended, and after how many milliseconds from now. */
async function end(child: ChildProcessWithoutNullStreams) {
  const from = performance.now();
  const [code, signal] = await once(child, 'exit');
  return { code, signal, ms: performance.now() - from };
}

test('[ACP-9] at EOF the process answers what runs and ends by itself', async () => {
  const child = start();
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  send(child, call(1, 'echo'));
  await lines.next();
  send(child, call(2, 'hang'));
  child.stdin.end();
  const ended = end(child);
  expect(JSON.parse((await lines.next()).value)).toEqual({
    jsonrpc: '2.0',
    id: 2,
    error: { code: -32800, message: 'Request cancelled' },
  });
  expect(await ended).toMatchObject({ code: 0, signal: null });
});

test('[ACP-9] hanging up on a signal ends the process though its stdin stays open', async () => {
  const child = start();
  send(child, call(1, 'echo'));
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  expect(await end(child)).toMatchObject({ code: 0, signal: null });
});

test('[ACP-9] a client that closes its reading end while keeping stdin open ends the process', async () => {
  const child = start();
  send(child, call(1, 'flood'));
  await once(child.stdout, 'data');
  child.stdout.destroy();
  const { code, ms } = await end(child);
  expect(code).toBe(0);
  expect(ms).toBeLessThan(2000);
});

test('[ACP-9] a client that never reads does not keep the connection from ending on a signal', async () => {
  // A write to stdout that nobody takes can be given up only by leaving the process.
  const child = start('--exit');
  send(child, call(1, 'echo'));
  await once(child.stdout, 'data');
  child.stdout.pause();
  send(child, call(2, 'flood'));
  await once(child.stderr, 'data');
  child.kill('SIGTERM');
  expect(await end(child)).toMatchObject({ code: 0, signal: null });
});
