import { updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import { CUES } from '../model/script.ts';
import type { Asked } from '../peer.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { ended, must, opened } from './rows.ts';
import { answers, askedAgain, CANCELLED, DECLINE, later, needs, tellings } from './restore-rows.ts';

/** Answers a question that is asked again, and expects that it is closed for good and the model not asked. */
const closes = (answer: (asked: Asked) => void) => async (context: Context) => {
  const { asked, done, agent, sessionId, toolCallId } = await askedAgain(context);
  const requests = context.model.requests.length;
  answer(asked);
  const reply = await done;
  ended(reply, 'end_turn');
  expectEqual(context.model.requests.length, requests, 'the number of requests to the model', reply.frame);
  const state = agent.updatesOf(sessionId, toolCallId, asked.frame).map((frame) => updateOf(frame).status);
  expectEqual(state, ['failed'], 'the states of the call after the reply', reply.frame);
  await context.crash(agent);
  const { states } = await later(context, sessionId, false);
  expectEqual(states.get(toolCallId), 'failed', 'the state of the call in the history', reply.frame);
};

async function modelHearsLater(context: Context) {
  const { asked, done, agent, sessionId } = await askedAgain(context);
  asked.answer(DECLINE);
  ended(await done, 'end_turn');
  const requests = context.model.requests.length;
  const reply = await agent.say(sessionId, `${CUES.say} and now`);
  ended(reply, 'end_turn');
  const request = context.model.requests[requests];
  const asking = request?.turns.findIndex(({ calls }) => calls.length > 0) ?? -1;
  expectEqual(
    request?.turns[asking + 1]?.results.length,
    1,
    'the number of results after the question',
    request?.turns ?? reply.frame,
  );
}

async function liveDecline(context: Context) {
  const { agent, sessionId } = await opened(context);
  const { asked, done } = await agent.askIn(sessionId, CUES.askOne);
  asked.answer(DECLINE);
  ended(await done, 'end_turn');
  expectEqual(context.model.told.length, 0, 'how often the model was told', asked.frame);
  await context.crash(agent);
  await later(context, sessionId, false);
}

async function liveCancel(context: Context) {
  const { agent, sessionId } = await opened(context);
  const { asked, done } = await agent.askIn(sessionId, CUES.askOne);
  agent.peer.notify('session/cancel', { sessionId });
  asked.answer(CANCELLED);
  ended(await done, 'cancelled');
  await agent.hangUp();
  await later(context, sessionId, false);
}

async function liveCancelIsDurable(context: Context) {
  const { agent, sessionId } = await opened(context);
  const { done } = await agent.askIn(sessionId, CUES.askOne);
  agent.peer.notify('session/cancel', { sessionId });
  ended(await done, 'cancelled');
  await agent.kill();
  await later(context, sessionId, false);
}

async function answeredThenDeclined(context: Context) {
  const { asked, done, agent, sessionId } = await askedAgain(context, CUES.askTwo);
  asked.answer(answers('Blue'));
  (await agent.peer.permission()).answer(DECLINE);
  const reply = await done;
  ended(reply, 'end_turn');
  expectEqual(tellings(context, 'Blue').length, 0, 'how often the model was told', reply.frame);
  await context.crash(agent);
  const { states } = await later(context, sessionId, false);
  expectEqual([...states.values()], ['completed', 'failed'], 'the states of the calls in the history', reply.frame);
}

async function declinedFirst(context: Context) {
  const { asked, done, agent, sessionId } = await askedAgain(context, CUES.askTwo);
  asked.answer(DECLINE);
  const reply = await done;
  ended(reply, 'end_turn');
  expect(agent.peer.unanswered.length === 0, 'the second question was asked all the same', agent.peer.unanswered[0]);
  await context.crash(agent);
  const { states } = await later(context, sessionId, false);
  expectEqual([...states.values()], ['failed', 'failed'], 'the states of the calls in the history', reply.frame);
}

export const DECLINES: readonly Check[] = [
  must(
    'RESTORE-DECLINE-1',
    'RS-5',
    'The option cancel declines: the turn ends, the model is not asked, nobody is asked again.',
    closes((asked) => asked.answer(DECLINE)),
    { needs },
  ),
  must(
    'RESTORE-DECLINE-2',
    'RS-5',
    'So does the outcome cancelled without a reason.',
    closes((asked) => asked.answer(CANCELLED)),
    { needs },
  ),
  must(
    'RESTORE-DECLINE-3',
    'RS-7',
    "A client's error fails the call for good, and is no answer.",
    closes((asked) => asked.refuse(-32603, 'The window was closed.')),
    { needs },
  ),
  must(
    'RESTORE-DECLINE-4',
    'RS-7',
    'So does an option that was not offered.',
    closes((asked) =>
      asked.answer({ outcome: { outcome: 'selected', optionId: 'no-such-option' }, answers: { 0: 'Blue' } }),
    ),
    { needs },
  ),
  must(
    'RESTORE-DECLINE-5',
    'RS-7',
    'So does an answer in no known form.',
    closes((asked) => asked.answer({ answers: { 0: 'Blue' } })),
    { needs },
  ),
  must(
    'RESTORE-DECLINE-6',
    'RS-5',
    'With the next prompt the model is told of the decline, as the result of that call.',
    modelHearsLater,
    { needs },
  ),
  must('RESTORE-DECLINE-7', 'RS-0', 'A question that is declined when first asked is not asked again.', liveDecline, {
    needs,
  }),
  must(
    'RESTORE-DECLINE-8',
    'RS-6',
    'A person who cancels the turn closes a question that was first asked in it.',
    liveCancel,
    { needs },
  ),
  must(
    'RESTORE-DECLINE-9',
    'ACP-7',
    'That cancel is on disk before the prompt is answered, without waiting for the question.',
    liveCancelIsDurable,
    { needs, profile: 'better' },
  ),
  must(
    'RESTORE-DECLINE-10',
    'RS-10',
    'Of two questions one answered and one declined, both are kept so, and the model is not asked.',
    answeredThenDeclined,
    { needs },
  ),
  must(
    'RESTORE-DECLINE-11',
    'RS-10',
    'When the first of two is declined the second is not asked, and closed too.',
    declinedFirst,
    { needs },
  ),
];
