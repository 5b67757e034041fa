import type { Context } from '../context.ts';
import { CUES } from '../model/script.ts';
import { CONTINUE, CONTINUE_SESSION } from '../names.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { ended, must, opened } from './rows.ts';
import { answers, askedAgain, calls, hinted, hung, later, needs, quiet, tellings } from './restore-rows.ts';

async function promptOvertakes(context: Context) {
  const { agent, sessionId } = await hung(context);
  hinted(await agent.load(sessionId), true);
  const requests = context.model.requests.length;
  const answer = await agent.say(sessionId, `${CUES.say} never mind`);
  ended(answer, 'end_turn');
  const request = context.model.requests[requests];
  const asking = request?.turns.findIndex((turn) => turn.calls.length > 0) ?? -1;
  const next = request?.turns[asking + 1];
  expectEqual(next?.results.length, 1, 'the number of results after the question', request?.turns ?? answer.frame);
  expect(
    next?.texts.some((text) => text.includes('never mind')),
    'the prompt does not follow the closed question',
    request?.turns,
  );
}

async function overtakenIsClosed(context: Context) {
  const { agent, sessionId } = await hung(context);
  hinted(await agent.load(sessionId), true);
  ended(await agent.say(sessionId, CUES.say), 'end_turn');
  const requests = context.model.requests.length;
  const answer = await agent.startRestore(sessionId).done;
  ended(answer, 'end_turn');
  quiet(context, agent, requests, answer.frame);
  await context.crash(agent);
  await later(context, sessionId, false);
}

async function restoreWhileAsked(context: Context) {
  const { agent, sessionId, asked, done } = await askedAgain(context);
  ended(await agent.startRestore(sessionId).done, 'end_turn');
  expect(agent.peer.unanswered.length === 0, 'the question was asked twice', agent.peer.unanswered[0]);
  asked.answer(answers('Blue'));
  const answer = await done;
  ended(answer, 'end_turn');
  expectEqual(tellings(context, 'Blue').length, 1, 'how often the model was told the answer', answer.frame);
}

async function promptWhileAsked(context: Context) {
  const { agent, sessionId, done } = await askedAgain(context);
  const second = agent.start(sessionId, `${CUES.say} something else`);
  ended(await done, 'cancelled');
  ended(await second.done, 'end_turn');
}

async function loadWhileAsked(context: Context) {
  const { agent, sessionId, toolCallId, asked, done } = await askedAgain(context);
  const barrier = await agent.peer.barrier();
  const reply = await agent.load(sessionId);
  hinted(reply, false);
  expectEqual(
    calls(agent.updates(sessionId, barrier)).get(toolCallId),
    'in_progress',
    'the state of the call',
    reply.frame,
  );
  expect(agent.peer.unanswered.length === 0, 'the question was asked twice', agent.peer.unanswered[0]);
  asked.answer(answers('Blue'));
  ended(await done, 'end_turn');
  expectEqual(tellings(context, 'Blue').length, 1, 'how often the model was told the answer', reply.frame);
}

async function othersGoOn(context: Context) {
  const { agent, asked, done } = await askedAgain(context);
  const other = await agent.newSession();
  ended(await agent.say(other, CUES.say), 'end_turn');
  asked.answer(answers('Blue'));
  ended(await done, 'end_turn');
}

async function continued(context: Context, cue: string) {
  const { agent, sessionId } = await hung(context, cue);
  await agent.load(sessionId);
  const { result, frame } = await agent.peer.request(CONTINUE_SESSION, { sessionId });
  return { agent, sessionId, result, frame };
}

async function continueDeclines(context: Context) {
  const { result, frame } = await continued(context, CUES.askOne);
  expectEqual([result?.accepted, result?.interruption], [false, 'none'], 'accepted and interruption', frame);
}

async function continueTurnIsNothing(context: Context) {
  const { agent, sessionId } = await continued(context, CUES.askOne);
  const requests = context.model.requests.length;
  const answer = await agent.prompt(sessionId, [], { [CONTINUE]: true }).done;
  ended(answer, 'end_turn');
  quiet(context, agent, requests, answer.frame);
}

async function continueTakesMixed(context: Context) {
  const { result, frame, agent, sessionId } = await continued(context, CUES.askMixed);
  expectEqual(result?.accepted, true, 'accepted', frame);
  const requests = context.model.requests.length;
  const answer = await agent.prompt(sessionId, [], { [CONTINUE]: true }).done;
  ended(answer, 'end_turn');
  expectEqual(
    context.model.requests[requests]?.last.results.length,
    2,
    'the number of results that the model is told',
    answer.frame,
  );
}

async function continueNamesTurn(context: Context) {
  const { result, frame } = await continued(context, CUES.askMixed);
  expectEqual(result?.interruption, 'interrupted_turn', 'interruption', frame);
}

async function continueFinished(context: Context) {
  const { agent, sessionId } = await opened(context);
  ended(await agent.say(sessionId, CUES.say));
  const { result, frame } = await agent.peer.request(CONTINUE_SESSION, { sessionId });
  expectEqual([result?.accepted, result?.interruption], [false, 'none'], 'accepted and interruption', frame);
}

const better = { needs, profile: 'better' } as const;

export const ORDER: readonly Check[] = [
  must(
    'RESTORE-ORDER-1',
    'RS-9, LS-6',
    'An ordinary prompt that comes first closes the question for the model and is answered.',
    promptOvertakes,
    { needs },
  ),
  must(
    'RESTORE-ORDER-2',
    'RS-9, BT-5',
    'A question that was overtaken is not asked again, by nobody.',
    overtakenIsClosed,
    { needs },
  ),
  must(
    'RESTORE-ORDER-3',
    'RS-9',
    'A restore prompt while the question waits is end_turn, and the question waits on.',
    restoreWhileAsked,
    better,
  ),
  must(
    'RESTORE-ORDER-4',
    'ACP-8',
    'An ordinary prompt while the question waits cancels its turn, then runs.',
    promptWhileAsked,
    { needs },
  ),
  must(
    'RESTORE-ORDER-5',
    'BT-2',
    'A load while the question waits is answered at once, and asks nothing twice.',
    loadWhileAsked,
    better,
  ),
  must('RESTORE-ORDER-6', 'ACP-13', 'Other sessions work while the question waits.', othersGoOn, { needs }),
  must('RESTORE-CONTINUE-1', 'RS-8', 'continue declines where a question can be asked again.', continueDeclines, {
    needs,
  }),
  must('RESTORE-CONTINUE-2', 'RS-8', 'A continue turn there is end_turn, and nothing is done.', continueTurnIsNothing, {
    needs,
  }),
  must(
    'RESTORE-CONTINUE-3',
    'RS-8',
    'continue takes a question beside another tool, and tells the model that both failed.',
    continueTakesMixed,
    { needs },
  ),
  must('RESTORE-CONTINUE-4', 'RS-8', 'It calls that an interrupted turn.', continueNamesTurn, better),
  must('RESTORE-CONTINUE-5', 'RS-8', 'continue declines where nothing was interrupted.', continueFinished, { needs }),
];
