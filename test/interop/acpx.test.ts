import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from './daemon.ts';
import { linesOf, Place } from './place.ts';
import { ACPX, NODE_22, OUR_CLI } from './programs.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames of every form
type Json = any;

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command of acpx with our child as its agent. */
async function acpx(place: Place, ...args: string[]): Promise<Run> {
  const agent = `${process.execPath} ${OUR_CLI} --acp --restore-ask-user-question`;
  const child = spawn(NODE_22, [ACPX, '--agent', agent, '--cwd', place.cwd, '--timeout', '60', ...args], {
    env: place.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, stdout, stderr };
}

/** The frames that a prompt made, which has to succeed. */
async function frames(place: Place, ...args: string[]): Promise<Json[]> {
  const run = await acpx(place, '--format', 'json', ...args);
  expect(run).toMatchObject({ code: 0 });
  return linesOf(run.stdout);
}

/** How the last question of a prompt was closed. */
const cardStatus = (all: readonly Json[]): unknown =>
  all.findLast(({ params }) => params?.update?.sessionUpdate === 'tool_call_update')?.params.update.status;

const sessionOf = (all: readonly Json[]): string =>
  all.find(({ method }) => method === 'session/prompt')?.params.sessionId;

test('[ACP-2, ACP-3, RS-5, RS-7] acpx: a session, prompts, its policies, modes, lists, resume and close', async () => {
  const place = await Place.make();
  expect(await acpx(place, 'sessions', 'new')).toMatchObject({ code: 0 });
  const first = await frames(place, '--ttl', '60', 'prompt', 'hi');
  const sessionId = sessionOf(first);
  expect(first.at(-1)).toMatchObject({ result: { stopReason: 'end_turn' } });

  // It can press a button and cannot answer, which is an error that the model hears of.
  const submitted = await frames(place, '--approve-all', 'prompt', '[[ask]] which');
  expect(cardStatus(submitted)).toBe('failed');
  expect(place.model.asked.at(-1)?.responses).toHaveLength(1);
  const before = place.model.asked.length;
  const declined = await frames(place, '--deny-all', 'prompt', '[[ask]] which');
  expect(cardStatus(declined)).toBe('failed');
  expect(declined.at(-1)).toMatchObject({ result: { stopReason: 'end_turn' } });
  expect(place.model.asked.length).toBe(before + 1);
  const statuses = place.records(sessionId).flatMap(({ toolCallResult }) => toolCallResult?.status ?? []);
  expect(statuses.at(-1)).toBe('cancelled');

  expect(await acpx(place, 'set-mode', 'plan')).toMatchObject({ code: 0 });
  const listed = await acpx(place, 'sessions', 'list');
  expect(listed.stdout).toContain(sessionId);
  expect((await acpx(place, 'status')).stdout).toContain('status: running');

  // The agent is gone; the next prompt goes on in the same session.
  place.endProcesses();
  await until(() => place.processes().length === 0);
  const resumed = await frames(place, '--ttl', '60', 'prompt', 'again');
  expect(sessionOf(resumed)).toBe(sessionId);
  expect(resumed.some(({ method }) => method === 'session/new')).toBe(false);
  expect(place.text(sessionId)).toContain('again');

  expect(await acpx(place, 'sessions', 'close')).toMatchObject({ code: 0 });
  await until(() => place.processes().length === 0);
});

test('[ACP-7] acpx: a cancel ends the running prompt, and a prompt without a session is answered', async () => {
  const place = await Place.make();
  expect(await acpx(place, 'exec', 'hello')).toMatchObject({ code: 0, stdout: expect.stringContaining('PLAIN REPLY') });
  expect(await acpx(place, 'sessions', 'new')).toMatchObject({ code: 0 });
  const running = frames(place, '--ttl', '60', 'prompt', '[[sleep]]');
  await until(() => place.model.asked.some(({ text }) => text.includes('[[sleep]]')));
  expect(await acpx(place, 'cancel')).toMatchObject({ code: 0, stdout: expect.stringContaining('cancel requested') });
  expect((await running).at(-1)).toMatchObject({ result: { stopReason: 'cancelled' } });
  expect(await acpx(place, 'sessions', 'close')).toMatchObject({ code: 0 });
  await until(() => place.processes().length === 0);
});

test('[TL-1] acpx: its policies decide whether a file is written', async () => {
  const place = await Place.make();
  expect(await acpx(place, 'exec', 'hello')).toMatchObject({ code: 0 });
  expect(place.model.offered()).toContain('write_file');
  const [denied, written] = ['denied.txt', 'written.txt'].map((name) => join(place.cwd, name)) as [string, string];
  await acpx(place, '--deny-all', 'exec', `[[write]] ${denied}`);
  expect(existsSync(denied)).toBe(false);
  expect(await acpx(place, '--approve-all', 'exec', `[[write]] ${written}`)).toMatchObject({ code: 0 });
  expect(existsSync(written)).toBe(true);
  await until(() => place.processes().length === 0);
});
