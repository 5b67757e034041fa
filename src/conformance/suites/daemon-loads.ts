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

export const LOADS_BY_CLIENTS: readonly Check[] = [
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
  ),
  ...better('hung', [
    'LOAD-13',
    'BT-10',
    'After a load without a client a load with one asks, without a close between.',
    laterClientIsAsked,
  ]),
];
