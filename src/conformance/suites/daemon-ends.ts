import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from '../context.ts';

import { CUES } from '../model/script.ts';
import { isRunning } from '../processes.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { accepted, better, CANCELLED, core, expectStatus, isIdle, listen, stillWaits, submit } from './daemon-rows.ts';

/** How long it may take to stop, in ms. */
const STOP = 5_000;
/** How long an agent may outlive its daemon, in ms. */
const LINGER = 5_000;

const stops = (signal: NodeJS.Signals) => async (context: Context) => {
  const daemon = await context.serve();
  const waiting = await daemon.ask(await daemon.newSession(), CUES.askOne);
  const events = await listen(context, daemon, waiting.id);
  const children = await daemon.children();
  expectEqual(await daemon.stop(signal, STOP), { code: 0, signal: null }, 'how it ended');
  await events.next('session_died');
  await events.end();
  await areGone(children);
};

async function areGone(pids: readonly number[]): Promise<void> {
  const deadline = performance.now() + LINGER;
  const anyRuns = async () => (await Promise.all(pids.map(isRunning))).includes(true);
  while ((await anyRuns()) && performance.now() < deadline) await pause(20);
  expect(!(await anyRuns()), 'processes that it started still run');
}

async function crashLeavesNobody(context: Context) {
  const daemon = await context.serve();
  await daemon.newSession();
  const children = await daemon.children();
  expect(children.length > 0, 'it has started no agent');
  await daemon.program?.kill();
  await areGone(children);
}

/** A daemon with a policy in its settings, a question there, and a second client that was there when it was asked. */
async function withPolicy(context: Context, policy: object) {
  const file = join(context.home.path, '.qwen/settings.json');
  const settings = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify({ ...settings, policy }));
  const daemon = await context.serve();
  const session = await daemon.newSession();
  const loaded = await daemon.load(session.id, 'kit-second');
  expectStatus(loaded, 200);
  const events = await listen(context, daemon, session.id);
  const waiting = await daemon.ask(session, CUES.askOne);
  return { daemon, events, waiting, second: { ...waiting, clientId: loaded.body.clientId as string } };
}

async function designatedDecides(context: Context) {
  const { daemon, waiting, second } = await withPolicy(context, { permissionStrategy: 'designated' });
  expectStatus(await daemon.vote(second, submit('Red')), 403, 'permission_forbidden');
  await stillWaits(daemon, waiting);
  await accepted(daemon, waiting, submit('Red'));
  await daemon.idle(waiting.id);
}

async function agreementDecides(context: Context) {
  const { daemon, waiting, second, events } = await withPolicy(context, CONSENSUS);
  await accepted(daemon, waiting, submit('Red'));
  await stillWaits(daemon, waiting);
  const partial = await events.next('permission_partial_vote');
  expectEqual(partial.data.requestId, waiting.requestId, 'requestId', partial);
  await accepted(daemon, second, submit('Red'));
  await daemon.idle(waiting.id);
}

async function answersMustAgree(context: Context) {
  const { daemon, waiting, second } = await withPolicy(context, CONSENSUS);
  await accepted(daemon, waiting, submit('Red'));
  expectStatus(await daemon.vote(second, submit('Blue')), 200);
  await stillWaits(daemon, waiting);
  await accepted(daemon, waiting, submit('Blue'));
  const status = await daemon.idle(waiting.id);
  const told = context.model.told.some(({ last }) => last.results.some(({ text }) => text.includes('Blue')));
  expect(told, 'the model was not told the answer', status);
}

const CONSENSUS = { permissionStrategy: 'consensus' };

async function anyoneMayDecline(context: Context) {
  const { daemon, waiting, second } = await withPolicy(context, CONSENSUS);
  await accepted(daemon, second, CANCELLED);
  await daemon.idle(waiting.id);
  await isIdle(daemon, waiting.id);
}

async function localMayVote(context: Context) {
  const { daemon, waiting, second } = await withPolicy(context, { permissionStrategy: 'local-only' });
  await accepted(daemon, second, submit('Red'));
  await daemon.idle(waiting.id);
}

export const ENDS: readonly Check[] = [
  ...core(
    'asking',
    [
      'STOP-1',
      'DM-11',
      'SIGTERM while a question waits: subscribers are told, it ends with 0 within 5 s, and nobody outlives it.',
      stops('SIGTERM'),
    ],
    ['STOP-2', 'DM-11', 'So does SIGINT.', stops('SIGINT')],
    ['STOP-3', 'DM-11', 'So does SIGHUP.', stops('SIGHUP')],
  ),
  ...core('served', [
    'STOP-4',
    'DM-11',
    'After a kill -9 of the daemon its agent is gone within 5 s.',
    crashLeavesNobody,
  ]),
  ...core(
    'asking',
    ['POLICY-1', 'DM-7', "designated: another client's vote is a 403, that of the asker counts.", designatedDecides],
    [
      'POLICY-2',
      'DM-7',
      'consensus: a vote short of it is told, and the question waits for the second.',
      agreementDecides,
    ],
    ['POLICY-3', 'DM-7', 'A cancel ends it under consensus, too.', anyoneMayDecline],
    ['POLICY-4', 'DM-7', 'local-only: a client on this machine decides.', localMayVote],
  ),
  ...better('asking', [
    'POLICY-5',
    'BT-3',
    'consensus: different answers have not agreed, and a voter may vote again.',
    answersMustAgree,
  ]),
];
