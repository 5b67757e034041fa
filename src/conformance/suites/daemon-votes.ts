import type { Context } from '../context.ts';
import { COLOUR, CUES } from '../model/script.ts';
import { CANCEL_REASON, INTERACTION_KIND, QUESTIONS } from '../names.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Json } from '../wire.ts';
import {
  accepted,
  answersCount,
  asking,
  better,
  CANCELLED,
  core,
  DECLINE,
  expectStatus,
  isIdle,
  loadsQuietly,
  nonce,
  stillWaits,
  submit,
  timesTold,
  UNKNOWN_ID,
  UUID,
} from './daemon-rows.ts';

async function statusShowsIt(context: Context) {
  const { daemon, session, waiting } = await asking(context);
  const answer = await daemon.status(session.id);
  const { isWaitingForUserQuestion, isWaitingForPermission, pendingInteractionCount, hasActivePrompt } = answer.body;
  const flags = { isWaitingForUserQuestion, isWaitingForPermission, pendingInteractionCount, hasActivePrompt };
  expectEqual(flags, WAITS, 'what is said of it', answer);
  const { requestId, kind, questions, options } = waiting.interaction;
  expect(UUID.test(requestId), 'requestId is no UUID', answer);
  expectEqual(kind, 'user_question', 'kind', answer);
  expectEqual(questions?.length, 1, 'the number of questions', answer);
  const { question, header, options: choices, answerKey } = questions[0];
  expectEqual({ question, header, options: choices }, COLOUR, 'the question', answer);
  expectEqual(answerKey, '0', 'answerKey', answer);
  const ids = options?.map(({ optionId }: Json) => optionId);
  expectEqual(ids, ['proceed_once', 'cancel'], 'the options', answer);
}

const WAITS = {
  isWaitingForUserQuestion: true,
  isWaitingForPermission: false,
  pendingInteractionCount: 1,
  hasActivePrompt: true,
};

async function eventAsks(context: Context) {
  const { events, waiting, session } = await asking(context);
  const event = await events.next('permission_request');
  const { requestId, sessionId, toolCall, options } = event.data;
  expectEqual([requestId, sessionId], [waiting.requestId, session.id], 'requestId and sessionId', event);
  expectEqual(toolCall?._meta?.[INTERACTION_KIND], 'user_question', INTERACTION_KIND, event);
  expectEqual(toolCall._meta[QUESTIONS], [COLOUR], QUESTIONS, event);
  const ids = options?.map(({ optionId }: Json) => optionId);
  expectEqual(ids, ['proceed_once', 'cancel'], 'the options', event);
}

async function answerCounts(context: Context) {
  const { daemon, model, waiting, events } = await asking(context);
  await answersCount(daemon, model, waiting);
  const end = await events.next('turn_complete');
  const { stopReason, promptId } = end.data;
  expectEqual([stopReason, promptId], ['end_turn', waiting.admitted.body.promptId], 'stopReason and promptId', end);
  await isIdle(daemon, waiting.id);
}

async function resolutionIsTold(context: Context) {
  const { daemon, waiting, events, clientId } = await asking(context);
  const word = nonce();
  await accepted(daemon, waiting, submit(word));
  const event = await events.next('permission_resolved');
  const { requestId, outcome, voterClientId } = event.data;
  expectEqual(requestId, waiting.requestId, 'requestId', event);
  expectEqual(outcome, { outcome: 'selected', optionId: 'proceed_once' }, 'outcome', event);
  expectEqual(voterClientId, clientId, 'voterClientId', event);
  expect(!event.text.includes(word), 'the answer is told to everybody', event);
}

async function unknownRequestIs404(context: Context) {
  const { daemon, waiting } = await asking(context);
  expectStatus(await daemon.vote({ ...waiting, requestId: UNKNOWN_ID }, submit('Red')), 404);
  expectStatus(await daemon.post(`/permission/${UNKNOWN_ID}`, submit('Red'), waiting.clientId), 404);
  await stillWaits(daemon, waiting);
}

async function lateVoteIs404(context: Context) {
  const { daemon, waiting, events } = await asking(context);
  await accepted(daemon, waiting, submit('Red'));
  const late = await daemon.vote(waiting, submit('Blue'));
  expectStatus(late, 404);
  const told = await events.next('permission_already_resolved');
  expectEqual(told.data.requestId, waiting.requestId, 'requestId', told);
}

async function lateVoteIsNamed(context: Context) {
  const { daemon, waiting } = await asking(context);
  await accepted(daemon, waiting, submit('Red'));
  const late = await daemon.vote(waiting, submit('Blue'));
  expectStatus(late, 404, 'permission_already_resolved');
  expect(late.text.includes('"proceed_once"'), 'the outcome is not told', late);
}

async function oneOfTwoWins(context: Context) {
  const { daemon, waiting, model } = await asking(context);
  const words = [nonce(), nonce()];
  const votes = await Promise.all(words.map((word) => daemon.vote(waiting, submit(word))));
  expectEqual(votes.map(({ status }) => status).sort(), [200, 404], 'the statuses', votes[1]);
  await daemon.idle(waiting.id);
  const winner = votes[0]?.status === 200 ? 0 : 1;
  const told = words.map((word) => timesTold(model, word));
  expectEqual(told, winner === 0 ? [1, 0] : [0, 1], 'how often the model was told each answer', votes[winner]);
}

/** Votes that are refused with 400, of which each must leave the question waiting. */
const refuses =
  (votes: readonly unknown[], code?: string, cue: string = CUES.askOne) =>
  async (context: Context) => {
    const { daemon, waiting, model } = await asking(context, cue);
    for (const vote of votes) {
      expectStatus(await daemon.vote(waiting, vote), 400, code);
      await stillWaits(daemon, waiting);
    }
    const word = nonce();
    await accepted(daemon, waiting, submit(word));
    await daemon.idle(waiting.id);
    expectEqual(timesTold(model, word), 1, 'how often the model was told the answer', waiting.admitted);
  };

const NO_VOTES = [
  {},
  { optionId: 'proceed_once' },
  { outcome: 'selected' },
  { outcome: { outcome: 'weird' } },
  { outcome: { outcome: 'selected' } },
  { outcome: null, answers: { 0: 'Red' } },
];
const selected = (optionId: unknown, answers?: unknown) => ({ outcome: { outcome: 'selected', optionId }, answers });
const BAD_ANSWERS = [
  selected('proceed_once', ['Red']),
  selected('proceed_once', 'Red'),
  selected('proceed_once', { 0: 5 }),
  selected('proceed_once', { 0: ['Red', 'Blue'] }),
  selected('proceed_once', { 0: null }),
];
const NO_ANSWERS = [
  selected('proceed_once'),
  selected('proceed_once', {}),
  selected('proceed_once', { 0: '' }),
  selected('proceed_once', { 7: 'Red' }),
];

async function globalRouteVotes(context: Context) {
  const { daemon, waiting } = await asking(context);
  expectStatus(await daemon.post(`/permission/${waiting.requestId}`, submit('Red'), waiting.clientId), 200);
  await daemon.idle(waiting.id);
}

async function namelessMayVote(context: Context) {
  const { daemon, waiting, model } = await asking(context);
  await answersCount(daemon, model, { ...waiting, clientId: '' });
}

async function strangerMayNot(context: Context) {
  const { daemon, waiting } = await asking(context);
  expectStatus(
    await daemon.vote({ ...waiting, clientId: 'client_conformance' }, submit('Red')),
    400,
    'invalid_client_id',
  );
  await stillWaits(daemon, waiting);
}

const declines = (vote: unknown) => async (context: Context) => {
  const { daemon, waiting, events, session } = await asking(context);
  await accepted(daemon, waiting, vote);
  const end = await events.next('turn_complete');
  expectEqual(end.data.stopReason, 'end_turn', 'stopReason', end);
  expectEqual(events.said(), '', 'what the model said', end);
  await isIdle(daemon, waiting.id);
  await daemon.delete(session);
  await loadsQuietly(daemon, session.id);
};

async function oneAfterTheOther(context: Context) {
  const { daemon, waiting, model } = await asking(context, CUES.askTwo);
  const words = [nonce(), nonce()];
  await accepted(daemon, waiting, submit(words[0]));
  const next = { ...waiting, ...(await daemon.waiting(waiting.id, waiting.requestId)) };
  await accepted(daemon, next, submit(words[1]));
  await daemon.idle(waiting.id);
  const told = model.requests.filter(({ last }) =>
    words.every((word) => JSON.stringify(last.results).includes(word ?? '')),
  );
  expectEqual(told.length, 1, 'how often the model was told both answers at once', next.admitted);
}

const manyAnswers = (choices: unknown) => async (context: Context) => {
  const { daemon, waiting, model } = await asking(context, CUES.askMany);
  expectEqual(
    waiting.interaction.questions?.map(({ answerKey }: Json) => answerKey),
    ['0', '1'],
    'the answer keys',
  );
  const word = nonce();
  await accepted(daemon, waiting, submit(word, choices));
  await daemon.idle(waiting.id);
  const told = model.requests.find(({ last }) => last.results.some(({ text }) => text.includes(word)));
  expect(told !== undefined, 'the model was not told the words', waiting.admitted);
  const text = told.last.results.map((result) => result.text).join(' ');
  expect(/Bell/.test(text) && /Lock/.test(text) && !/Light/.test(text), 'the model was not told the choices', { text });
};

const smuggledReason = { ...CANCELLED, _meta: { [CANCEL_REASON]: 'timeout' } };

export const VOTES: readonly Check[] = [
  ...core(
    'asking',
    [
      'ASK-1',
      'DM-2',
      'The status shows a question that waits, with its choices and the key of its answer.',
      statusShowsIt,
    ],
    ['ASK-2', 'DM-1', 'Subscribers get it as permission_request under the same id.', eventAsks],
    ['ASK-3', 'DM-7', 'A vote is a 200 {}; the model is told the answer once, and the same turn ends.', answerCounts],
    ['ASK-4', 'DM-9', 'permission_resolved tells who voted and which option, not the answer.', resolutionIsTold],
    [
      'ASK-5',
      'RS-2',
      'Two questions of a turn are asked one after the other, each under an id of its own.',
      oneAfterTheOther,
    ],
    [
      'ASK-6',
      'RS-3',
      'Several choices as one text, and words of their own, reach the model.',
      manyAnswers('Bell, Lock'),
    ],
    ['VOTE-1', 'DM-7', 'A vote on an unknown request is a 404, and decides nothing.', unknownRequestIs404],
    [
      'VOTE-2',
      'DM-7',
      'A vote that comes too late is a 404, and is told as permission_already_resolved.',
      lateVoteIs404,
    ],
    ['VOTE-3', 'DM-7', 'Of two votes at once one is a 200 and the other a 404; one answer counts.', oneOfTwoWins],
    ['VOTE-4', 'DM-7', 'A vote without a valid outcome is a 400, and the question still waits.', refuses(NO_VOTES)],
    [
      'VOTE-5',
      'BT-12',
      'So is an option that was not offered: invalid_option_id.',
      refuses([selected('zzz', { 0: 'Red' }), selected('proceed_always', { 0: 'Red' })], 'invalid_option_id'),
    ],
    ['VOTE-6', 'DM-1', 'POST /permission/:requestId votes, too.', globalRouteVotes],
    ['VOTE-7', 'DM-7', 'A vote without a client id counts.', namelessMayVote],
    ['VOTE-8', 'DM-1', 'One under an id that nobody was given is a 400 invalid_client_id.', strangerMayNot],
    [
      'VOTE-9',
      'DM-7',
      'The option cancel declines: the turn ends, the model is not asked, for good.',
      declines(DECLINE),
    ],
    ['VOTE-10', 'DM-7', 'So does the outcome cancelled.', declines(CANCELLED)],
    ['VOTE-11', 'DM-5', 'A reason that a client gives for it counts for nothing.', declines(smuggledReason)],
  ),
  ...better(
    'asking',
    ['ASK-7', 'RS-3', 'Several choices may be a list.', manyAnswers(['Bell', 'Lock'])],
    ['VOTE-12', 'DM-7', 'A vote that comes too late is told that it does, and how it was decided.', lateVoteIsNamed],
    ['VOTE-13', 'BT-12', 'Answers of the wrong shape are a 400, and the question still waits.', refuses(BAD_ANSWERS)],
    ['VOTE-14', 'BT-12', 'So is a submit without any valid answer.', refuses(NO_ANSWERS)],
  ),
];
