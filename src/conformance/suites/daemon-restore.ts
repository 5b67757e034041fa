import type { Context } from '../context.ts';
import { COLOUR, CUES } from '../model/script.ts';
import { RESTORE } from '../names.ts';
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
  DECLINE,
  expectStatus,
  isIdle,
  listen,
  loadsQuietly,
  nonce,
  stillWaits,
  submit,
  timesSaid,
  timesTold,
} from './daemon-rows.ts';

async function bootAsksNobody(context: Context) {
  const daemon = await context.shared.daemon();
  const { id } = await context.shared.hung();
  expectStatus(await daemon.status(id), 404);
  const list = await daemon.get(`/workspace/${encodeURIComponent(daemon.cwd ?? '')}/sessions`);
  const one = list.body?.sessions?.find(({ sessionId }: Json) => sessionId === id);
  // The list may come in pages, and a saved session in it has no such fields.
  expect(one?.hasActivePrompt !== true && one?.isWaitingForUserQuestion !== true, 'it runs already', list);
}

async function waitsAgain(context: Context) {
  const { before, loaded, waiting } = await askedAgain(context);
  expectEqual(
    [loaded.body.attached, loaded.body.hasActivePrompt],
    [false, true],
    'attached and hasActivePrompt',
    loaded,
  );
  expect(waiting.requestId !== before.requestId, 'the request id is the old one', loaded);
  const { kind, questions } = waiting.interaction;
  expectEqual(kind, 'user_question', 'kind');
  const { answerKey, ...question } = questions[0];
  expectEqual([question, answerKey], [COLOUR, '0'], 'the question and its key');
}

async function hintIsHidden(context: Context) {
  const { loaded } = await askedAgain(context);
  expect(!loaded.text.includes(RESTORE), `the answer has ${RESTORE}`, loaded);
}

async function oldIdIsGone(context: Context) {
  const { daemon, before, waiting } = await askedAgain(context);
  expectStatus(await daemon.vote({ ...waiting, requestId: before.requestId }, submit('Red')), 404);
  await stillWaits(daemon, waiting);
}

async function answerGoesOn(context: Context) {
  const { daemon, model, waiting } = await askedAgain(context);
  const events = await listen(context, daemon, waiting.id, { lastEventId: waiting.admitted.body.lastEventId });
  const word = nonce();
  await accepted(daemon, waiting, submit(word));
  const end = await events.next('turn_complete');
  expectEqual(end.data.stopReason, 'end_turn', 'stopReason', end);
  const told = model.requests.filter(({ last }) => last.results.some(({ text }) => text.includes(word)));
  expectEqual(told.length, 1, 'how often the model was told the answer', end);
  expectEqual(told[0]?.last.texts.join('').trim(), '', 'what a user added to it', end);
  expect(events.said().includes(word), 'the model did not go on', end);
}

async function answeredStaysSo(context: Context) {
  const { daemon, waiting, session } = await askedAgain(context);
  await accepted(daemon, waiting, submit('Red'));
  await daemon.idle(waiting.id);
  await daemon.delete(session);
  const loaded = await loadsQuietly(daemon, session.id);
  const states = (loaded.body.compactedReplay ?? []).flatMap(({ data }: Json) =>
    /^tool_call/.test(data?.update?.sessionUpdate) ? [data.update.status] : [],
  );
  expectEqual(states.at(-1), 'completed', 'the state of the call in the history', loaded);
}

async function declineStaysSo(context: Context) {
  const { daemon, waiting, session } = await askedAgain(context);
  await accepted(daemon, waiting, DECLINE);
  await daemon.idle(waiting.id);
  await daemon.delete(session);
  await loadsQuietly(daemon, session.id);
}

async function unattended(context: Context) {
  const daemon = await context.shared.daemon();
  const before = await context.shared.hung();
  closing(context, daemon, before);
  const loaded = await daemon.load(before.id);
  expectStatus(loaded, 200);
  expect(loaded.body.hasActivePrompt !== true, 'a turn runs after the load', loaded);
  await isIdle(daemon, before.id);
  expect(/"failed"/.test(JSON.stringify(loaded.body.compactedReplay)), 'the history leaves the call open', loaded);
  return { daemon, sessionId: before.id, clientId: loaded.body.clientId };
}

async function nobodyIsAskedWithoutAClient(context: Context) {
  await unattended(context);
}

async function laterEntryAsks(context: Context) {
  const { daemon, sessionId, clientId } = await unattended(context);
  await daemon.delete({ id: sessionId, clientId });
  const waiting = await asksOnLoad(daemon, sessionId);
  await answersCount(daemon, await context.shared.model(), waiting);
}

async function laterClientIsAsked(context: Context) {
  const { daemon, sessionId } = await unattended(context);
  const waiting = await asksOnLoad(daemon, sessionId);
  await answersCount(daemon, await context.shared.model(), waiting);
}

async function resumeAsks(context: Context) {
  const daemon = await context.shared.daemon();
  const before = await context.shared.hung();
  closing(context, daemon, before);
  const resumed = await daemon.resume(before.id, 'kit-loader');
  expectStatus(resumed, 200);
  expectEqual(resumed.body.hasActivePrompt, true, 'hasActivePrompt', resumed);
  expect(!resumed.text.includes(RESTORE), `the answer has ${RESTORE}`, resumed);
  const found = await daemon.waiting(before.id);
  expect(found.requestId !== before.requestId, 'the request id is the old one', resumed);
  const waiting = { id: before.id, clientId: resumed.body.clientId, admitted: resumed, ...found };
  await answersCount(daemon, await context.shared.model(), waiting);
}

async function loadsAreOne(context: Context) {
  const daemon = await context.shared.daemon();
  const before = await context.shared.hung();
  closing(context, daemon, before);
  const loads = await Promise.all(
    Array.from({ length: 5 }, (_, index) => daemon.load(before.id, `kit-loader-${index}`)),
  );
  for (const loaded of loads) {
    expectStatus(loaded, 200);
    expectEqual(loaded.body.hasActivePrompt, true, 'hasActivePrompt', loaded);
  }
  const { requestId } = await daemon.waiting(before.id);
  const [first] = loads;
  const { lastEventId } = loads.map(({ body }) => body).sort((a, b) => a.lastEventId - b.lastEventId)[0];
  const events = await listen(context, daemon, before.id, { lastEventId });
  await events.next('replay_complete');
  const ids = events.of('permission_request').map(({ data }) => data.requestId);
  expectEqual(ids, [requestId], 'the ids under which it was asked', first);
  await answersCount(daemon, await context.shared.model(), { ...before, clientId: '', requestId });
}

async function secondLoadSeesIt(context: Context) {
  const { daemon, waiting } = await askedAgain(context);
  const again = await daemon.load(waiting.id, 'kit-second');
  expectStatus(again, 200);
  expectEqual([again.body.attached, again.body.hasActivePrompt], [true, true], 'attached and hasActivePrompt', again);
  await stillWaits(daemon, waiting);
}

async function promptIsQueued(context: Context) {
  const { daemon, waiting, session, model } = await askedAgain(context);
  const word = nonce();
  expectStatus(await daemon.prompt(session, `${CUES.say} ${word}`), 202);
  await stillWaits(daemon, waiting);
  expectEqual(timesSaid(model, word), 0, 'how often the model was given the prompt by then', waiting.admitted);
  const answer = nonce();
  await accepted(daemon, waiting, submit(answer));
  await daemon.idle(waiting.id);
  const texts = model.requests.map(({ last }) => JSON.stringify(last));
  const [told, said] = [answer, `${word}`].map((one) => texts.findIndex((text) => text.includes(one)));
  expect(
    (told ?? -1) >= 0 && (said ?? -1) > (told ?? -1),
    'the answer did not come before the prompt',
    waiting.admitted,
  );
}

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
  await new Promise((resolve) => setTimeout(resolve, context.options.thinking));
  await daemon.killChildren();
  await events.next('session_died');
  expectStatus(await daemon.get('/health'), 200);
  const again = await asksOnLoad(daemon, waiting.id, waiting.requestId);
  expectStatus(await daemon.vote({ ...again, requestId: waiting.requestId }, submit('Red')), 404);
  await answersCount(daemon, context.model, again);
}

async function switchedOffAsksNobody(context: Context) {
  const { daemon, waiting } = await ownQuestion(context, { switchedOff: true });
  await new Promise((resolve) => setTimeout(resolve, context.options.thinking));
  await daemon.killChildren();
  // The daemon may not know at once that its agent is gone.
  const deadline = performance.now() + context.patience;
  while ((await daemon.status(waiting.id)).status !== 404 && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 25));
  await loadsQuietly(daemon, waiting.id);
}

async function stopKeepsAFirst(context: Context) {
  const { daemon, waiting } = await ownQuestion(context);
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

export const RESTORES: readonly Check[] = [
  ...core(
    'hung',
    ['BOOT-1', 'DM-6', 'After a kill -9 of daemon and agent a new daemon resumes nothing of itself.', bootAsksNobody],
    ['LOAD-1', 'DM-3', 'A load with a client id has the question wait again, under a new id.', waitsAgain],
    ['LOAD-2', 'DM-3', 'No client sees the hint.', hintIsHidden],
    ['LOAD-3', 'DM-8', 'The old id is a 404.', oldIdIsGone],
    ['LOAD-4', 'RS-4', 'The answer goes to the model as its result, and the same turn goes on.', answerGoesOn],
    ['LOAD-5', 'RS-4', 'It is not asked again after that; the history has it completed.', answeredStaysSo],
    ['LOAD-6', 'RS-5', 'A decline is for good.', declineStaysSo],
    [
      'LOAD-7',
      'DM-4',
      'A load without a client id asks nobody; the history has the call failed.',
      nobodyIsAskedWithoutAClient,
    ],
    ['LOAD-8', 'DM-4', 'That decides nothing: closed and loaded with one, it is asked.', laterEntryAsks],
    ['LOAD-9', 'DM-3', 'A resume with a client id asks again, too.', resumeAsks],
    ['LOAD-10', 'DM-3', 'Five loads at once ask once.', loadsAreOne],
    ['LOAD-11', 'DM-7', 'A load while it waits again sees the same request id.', secondLoadSeesIt],
    ['LOAD-12', 'RS-9', 'A prompt while it waits again is queued, and runs after the answer.', promptIsQueued],
    [
      'KEEP-1',
      'RS-6',
      'A cancelled turn decides nothing: closed and loaded it is asked again, in no branch.',
      cancelOnlyEndsTheTurn,
    ],
    ['KEEP-2', 'RS-6', 'So does DELETE while it waits again.', closeKeepsIt],
  ),
  ...better('hung', [
    'LOAD-13',
    'BT-10',
    'After a load without a client a load with one asks, without a close between.',
    laterClientIsAsked,
  ]),
  ...core(
    'restoring',
    [
      'KEEP-3',
      'DM-10',
      'An agent that is killed is told and replaced, and its question asked again.',
      deadChildIsReplaced,
    ],
    ['KEEP-4', 'RS-6', 'A question that waits again survives SIGTERM of the daemon.', stopKeepsIt],
    ['KEEP-5', 'DM-8', 'It survives a timeout.', timeoutKeepsIt],
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
