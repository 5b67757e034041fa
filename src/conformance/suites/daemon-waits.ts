import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from '../context.ts';
import type { Event } from '../events.ts';
import { CUES } from '../model/script.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import {
  accepted,
  asking,
  better,
  core,
  expectStatus,
  isIdle,
  listen,
  nonce,
  stillWaits,
  submit,
  timesSaid,
  timesTold,
} from './daemon-rows.ts';

/** In ms. */
const POLL = 25;

async function leavingDecidesNothing(context: Context) {
  const { daemon, waiting, session, events, model } = await asking(context);
  events.close();
  expectStatus(await daemon.post(`/session/${session.id}/detach`, {}, session.clientId), 204);
  await stillWaits(daemon, waiting);
  const word = nonce();
  await accepted(daemon, { ...waiting, clientId: '' }, submit(word));
  // A session that has nobody left may be closed when its turn ends.
  const goesOn = async () => (await daemon.status(session.id)).body?.hasActivePrompt === true;
  const deadline = performance.now() + context.patience;
  while ((await goesOn()) && performance.now() < deadline) await pause(POLL);
  expectEqual(timesTold(model, word), 1, 'how often the model was told the answer', waiting.admitted);
}

async function secondClientSeesIt(context: Context) {
  const { daemon, waiting, events } = await asking(context);
  const loaded = await daemon.load(waiting.id, 'kit-second');
  expectStatus(loaded, 200);
  expectEqual(
    [loaded.body.attached, loaded.body.hasActivePrompt],
    [true, true],
    'attached and hasActivePrompt',
    loaded,
  );
  await stillWaits(daemon, waiting);
  expectEqual(events.of('permission_request').length, 1, 'how often it was asked', loaded);
  await accepted(daemon, { ...waiting, clientId: loaded.body.clientId }, submit('Red'));
  await daemon.idle(waiting.id);
}

async function nextPromptQueues(context: Context) {
  const { daemon, waiting, session, events, model } = await asking(context);
  const word = nonce();
  const queued = await daemon.prompt(session, `${CUES.say} ${word}`);
  expectStatus(queued, 202);
  await stillWaits(daemon, waiting);
  expectEqual(timesSaid(model, word), 0, 'how often the model was given the second prompt by then', queued);
  await accepted(daemon, waiting, submit('Red'));
  const first = await events.next('turn_complete');
  const second = await events.next('turn_complete', { after: first });
  const ids = [first, second].map(({ data }) => data.promptId);
  expectEqual(ids, [waiting.admitted.body.promptId, queued.body.promptId], 'the turns that ended', second);
  expectEqual(timesSaid(model, word), 1, 'how often the model was given the second prompt', second);
}

async function cancelTakesItBack(context: Context) {
  const { daemon, waiting, session, events } = await asking(context);
  expectStatus(await daemon.post(`/session/${session.id}/cancel`, {}, session.clientId), 204);
  const end = await events.next('turn_complete');
  expectEqual(end.data.stopReason, 'cancelled', 'stopReason', end);
  await isIdle(daemon, session.id);
  expectStatus(await daemon.vote(waiting, submit('Red')), 404);
}

async function nothingToContinue(context: Context) {
  const { daemon, waiting, session } = await asking(context);
  const answer = await daemon.post(`/session/${session.id}/continue`, {}, session.clientId);
  expectStatus(answer, 200);
  expectEqual([answer.body.accepted, answer.body.interruption], [false, 'none'], 'accepted and interruption', answer);
  await stillWaits(daemon, waiting);
}

async function noBranchMeanwhile(context: Context) {
  const { daemon, waiting, session } = await asking(context);
  const answer = await daemon.post(`/session/${session.id}/branch`, {}, session.clientId);
  expectStatus(answer, 409, 'branch_while_prompt_active');
  await stillWaits(daemon, waiting);
}

async function lateSubscriberIsAsked(context: Context) {
  const { daemon, waiting } = await asking(context);
  const events = await listen(context, daemon, waiting.id);
  await accepted(daemon, waiting, submit('Red'));
  const resolved = await events.next('permission_resolved');
  const [event] = events.of('permission_request');
  expect(event !== undefined, 'it was not asked before this', resolved);
  expectEqual(event.data.requestId, waiting.requestId, 'requestId', event);
}

async function resumedSubscriberIsAsked(context: Context) {
  const { daemon, waiting } = await asking(context);
  const events = await listen(context, daemon, waiting.id, { lastEventId: waiting.admitted.body.lastEventId });
  const event = await events.next('permission_request');
  expectEqual(event.data.requestId, waiting.requestId, 'requestId', event);
}

async function eventsAreNumbered(context: Context) {
  const { daemon, waiting, events } = await asking(context);
  await accepted(daemon, waiting, submit('Red'));
  await events.next('turn_complete');
  expect(/^text\/event-stream/.test(events.headers['content-type']), 'it is no stream of events', {
    ...events.headers,
  });
  const numbered = events.seen.filter(({ id }) => id !== undefined);
  let last = -1;
  for (const event of numbered) {
    const { id, v, type } = event.value;
    expectEqual([String(id), v, type], [event.id, 1, event.type], 'id, v and type in data', event);
    expect(id > last, 'its id is not above the one before', event);
    last = id;
  }
  expect(numbered.length > 3, 'hardly any event has an id', events.seen.at(-1));
}

async function subscribersSeeTheSame(context: Context) {
  const { daemon, waiting, events } = await asking(context);
  const others = await listen(context, daemon, waiting.id);
  await accepted(daemon, waiting, submit('Red'));
  const [end, theirs] = [await events.next('turn_complete'), await others.next('turn_complete')];
  const since = (all: readonly Event[]) => all.slice(all.findIndex(({ type }) => type === 'permission_resolved'));
  const upTo = (all: readonly Event[], last: Event) =>
    since(all.slice(0, all.indexOf(last) + 1)).map(({ text }) => text);
  expectEqual(upTo(others.seen, theirs), upTo(events.seen, end), 'what the second was told', theirs);
}

async function lastEventIdResumes(context: Context) {
  const { daemon, waiting, events } = await asking(context);
  await accepted(daemon, waiting, submit('Red'));
  const end = await events.next('turn_complete');
  const numbered = events.seen.slice(0, events.seen.indexOf(end) + 1).filter(({ id }) => id !== undefined);
  const from = numbered[Math.floor(numbered.length / 2)] as Event;
  const again = await listen(context, daemon, waiting.id, { lastEventId: from.id ?? '' });
  const done = await again.next('replay_complete');
  const wanted = numbered.slice(numbered.indexOf(from) + 1).map(({ id }) => id);
  const got = again.seen.slice(0, again.seen.indexOf(done)).flatMap(({ id }) => id ?? []);
  expectEqual(got.slice(0, wanted.length), wanted, 'the ids that were sent again', done);
}

async function snapshotBegins(context: Context) {
  const { daemon, waiting } = await asking(context);
  const events = await listen(context, daemon, waiting.id, { query: '?snapshot=1' });
  const snapshot = await events.next('session_snapshot');
  expectEqual(snapshot.data.sessionId, waiting.id, 'sessionId', snapshot);
  expect(events.seen[0] === snapshot, 'something else came first', events.seen[0]);
}

export const WAITS_AND_EVENTS: readonly Check[] = [
  ...core(
    'asking',
    ['WAIT-1', 'DM-7', 'A client that leaves decides nothing.', leavingDecidesNothing],
    ['WAIT-2', 'DM-7', 'A second client that loads sees the same request id, and may answer.', secondClientSeesIt],
    ['WAIT-3', 'RS-9', 'A prompt meanwhile is queued, and runs after the answer.', nextPromptQueues],
    ['WAIT-4', 'DM-1', 'POST cancel ends the turn, and takes the question back.', cancelTakesItBack],
    ['WAIT-5', 'RS-8', 'There is nothing to continue, and the question waits on.', nothingToContinue],
    ['WAIT-6', 'DM-1', 'There is no branch meanwhile: 409 branch_while_prompt_active.', noBranchMeanwhile],
    ['EVENTS-1', 'DM-9', 'Events are numbered upwards, and data says id and type again.', eventsAreNumbered],
    ['EVENTS-2', 'DM-9', 'Two subscribers are told the same, under the same ids.', subscribersSeeTheSame],
    ['EVENTS-3', 'DM-9', 'Last-Event-ID has all later events sent again, then replay_complete.', lastEventIdResumes],
    ['EVENTS-4', 'DM-9', 'A subscriber that resumes from before the question is asked.', resumedSubscriberIsAsked],
    ['EVENTS-5', 'DM-9', 'With ?snapshot=1 the stream begins with the state of the session.', snapshotBegins],
  ),
  ...better('asking', [
    'EVENTS-6',
    'BT-11',
    'Whoever subscribes late is asked, under the same id.',
    lateSubscriberIsAsked,
  ]),
];
