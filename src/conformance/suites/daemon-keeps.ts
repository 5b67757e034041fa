import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { CUES } from '../model/script.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Json } from '../wire.ts';
import {
  accepted,
  answersCount,
  askedAgain,
  asksOnLoad,
  better,
  closing,
  core,
  expectStatus,
  isIdle,
  listen,
  loadsQuietly,
  nonce,
  submit,
  timesTold,
} from './daemon-rows.ts';

async function cancelOnlyEndsTheTurn(context: Context) {
  const { daemon, waiting, session } = await askedAgain(context);
  expectStatus(await daemon.post(`/session/${session.id}/cancel`, {}, session.clientId), 204);
  await daemon.idle(session.id);
  expectStatus(await daemon.vote(waiting, submit('Red')), 404);
  const fork = await daemon.post(`/session/${session.id}/branch`, {}, session.clientId);
  expectStatus(fork, 201);
  closing(context, daemon, { id: fork.body.sessionId, clientId: fork.body.clientId });
  await isIdle(daemon, fork.body.sessionId);
  await daemon.delete(session);
  await asksOnLoad(daemon, session.id, waiting.requestId);
}

async function closeKeepsIt(context: Context) {
  const { daemon, waiting, session, model } = await askedAgain(context);
  expectStatus(await daemon.delete(session), 204);
  const again = await asksOnLoad(daemon, session.id, waiting.requestId);
  await answersCount(daemon, model, again);
}

async function closeKeepsAFirst(context: Context) {
  const daemon = await context.shared.daemon();
  const session = await daemon.newSession();
  closing(context, daemon, session);
  const waiting = await daemon.ask(session, CUES.askOne);
  expectStatus(await daemon.delete(session), 204);
  const again = await asksOnLoad(daemon, session.id, waiting.requestId);
  await answersCount(daemon, await context.shared.model(), again);
}

/** A question on a daemon of the check's own. */
async function ownQuestion(context: Context, options: Parameters<Context['serve']>[0] = {}, cue: string = CUES.askOne) {
  const daemon = await context.serve(options);
  const waiting = await daemon.ask(await daemon.newSession(), cue);
  return { daemon, waiting };
}

async function deadChildIsReplaced(context: Context) {
  const { daemon, waiting } = await ownQuestion(context);
  const events = await listen(context, daemon, waiting.id);
  await pause(context.options.thinking);
  await daemon.killChildren();
  await events.next('session_died');
  expectStatus(await daemon.get('/health'), 200);
  const again = await asksOnLoad(daemon, waiting.id, waiting.requestId);
  expectStatus(await daemon.vote({ ...again, requestId: waiting.requestId }, submit('Red')), 404);
  await answersCount(daemon, context.model, again);
}

async function switchedOffAsksNobody(context: Context) {
  const { daemon, waiting } = await ownQuestion(context, { switchedOff: true });
  await pause(context.options.thinking);
  await daemon.killChildren();
  // The daemon may not know at once that its agent is gone.
  const deadline = performance.now() + context.patience;
  while ((await daemon.status(waiting.id)).status !== 404 && performance.now() < deadline) await pause(25);
  await loadsQuietly(daemon, waiting.id);
}

async function stopKeepsAFirst(context: Context) {
  const { daemon, waiting } = await ownQuestion(context);
  await pause(context.options.thinking);
  await daemon.stop('SIGTERM');
  const again = await asksOnLoad(await context.serve(), waiting.id);
  expect(again.requestId !== waiting.requestId, 'the request id is the old one', again.admitted);
}

async function stopKeepsIt(context: Context) {
  const { daemon, waiting } = await ownQuestion(context);
  await context.crash(daemon);
  const second = await context.serve();
  const restored = await asksOnLoad(second, waiting.id);
  await second.stop('SIGTERM');
  const third = await context.serve();
  const again = await asksOnLoad(third, waiting.id, restored.requestId);
  expect(
    again.admitted.body.eventEpoch !== restored.admitted.body.eventEpoch,
    'eventEpoch is that of the daemon before',
    again.admitted,
  );
  await answersCount(third, context.model, again);
}

async function timeoutKeepsAFirst(context: Context) {
  const { daemon, waiting } = await ownQuestion(context, TIMEOUT);
  await daemon.idle(waiting.id);
  const again = await asksOnLoad(daemon, waiting.id, waiting.requestId);
  await answersCount(daemon, context.model, again);
}

/** Long enough for a vote, short enough to wait for. */
const TIMEOUT = { args: ['--permission-response-timeout-ms', '1500'] };

async function timeoutKeepsIt(context: Context) {
  const { daemon, waiting } = await ownQuestion(context);
  await context.crash(daemon);
  const second = await context.serve(TIMEOUT);
  const restored = await asksOnLoad(second, waiting.id);
  await second.idle(waiting.id);
  await second.delete({ id: waiting.id, clientId: restored.clientId });
  const again = await asksOnLoad(second, waiting.id, restored.requestId);
  await answersCount(second, context.model, again);
}

async function acceptedIsKept(context: Context) {
  const { daemon, waiting } = await ownQuestion(context);
  await context.crash(daemon);
  const second = await context.serve();
  const restored = await asksOnLoad(second, waiting.id);
  const word = nonce();
  await accepted(second, restored, submit(word));
  await second.kill();
  const third = await context.serve();
  const loaded = await third.load(waiting.id, 'kit-loader');
  expectStatus(loaded, 200);
  const askedAgain = third.waiting(waiting.id).then(() => true);
  askedAgain.catch(() => {});
  const asks = await Promise.race([third.idle(waiting.id).then(() => false), askedAgain]);
  expect(!asks, 'it is asked again', loaded);
  // Where the answer was on its way already when the agent died, the model is told with the next prompt.
  await third.start({ id: waiting.id, clientId: loaded.body.clientId }, CUES.say);
  const status = await third.idle(waiting.id);
  const told = context.model.requests.some(({ turns }) => JSON.stringify(turns).includes(word));
  expect(told, 'the answer is lost', status);
}

async function halfOfABatchIsKept(context: Context) {
  const { daemon, waiting } = await ownQuestion(context, {}, CUES.askTwo);
  const words = [nonce(), nonce()];
  await accepted(daemon, waiting, submit(words[0]));
  const second = await daemon.waiting(waiting.id, waiting.requestId);
  await context.crash(daemon);
  const next = await context.serve();
  const again = await asksOnLoad(next, waiting.id, second.requestId);
  const asked = again.interaction.questions.map(({ header }: Json) => header);
  expectEqual(asked, ['Size'], 'what is asked again', again.admitted);
  await accepted(next, again, submit(words[1]));
  const status = await next.idle(waiting.id);
  for (const word of words)
    expectEqual(timesTold(context.model, word ?? ''), 1, 'how often the model was told it', status);
}

export const KEEPS: readonly Check[] = [
  ...core(
    'hung',
    [
      'KEEP-1',
      'RS-6',
      'A cancelled turn decides nothing: closed and loaded it is asked again, in no branch.',
      cancelOnlyEndsTheTurn,
    ],
    ['KEEP-2', 'RS-6', 'So does DELETE while it waits again.', closeKeepsIt],
  ),
  ...core(
    'restoring',
    [
      'KEEP-3',
      'DM-10',
      'An agent that is killed is told and replaced, and its question asked again.',
      deadChildIsReplaced,
    ],
    ['KEEP-4', 'RS-6', 'A question that waits again survives SIGTERM of the daemon.', stopKeepsIt],
    ['KEEP-5', 'DM-8', 'It survives the timeout of its request.', timeoutKeepsIt],
    ['KEEP-6', 'LS-5', 'With the switch off a load asks nobody.', switchedOffAsksNobody],
  ),
  ...better(
    'restoring',
    ['KEEP-7', 'BT-1', 'A question that is asked for the first time survives SIGTERM of the daemon.', stopKeepsAFirst],
    ['KEEP-8', 'BT-1', 'It survives DELETE of its session.', closeKeepsAFirst],
    ['KEEP-9', 'BT-1, BT-10', 'It survives a timeout, and is asked by the next load.', timeoutKeepsAFirst],
    [
      'KEEP-10',
      'BT-4',
      'An answer that was accepted survives a kill -9 right after; nobody is asked again.',
      acceptedIsKept,
    ],
    ['KEEP-11', 'BT-4', 'Of two questions only the one without an answer is asked again.', halfOfABatchIsKept],
  ),
];
