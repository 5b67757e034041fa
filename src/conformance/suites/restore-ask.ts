import { updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import { COLOUR, CUES, SIZE } from '../model/script.ts';
import { ANSWERS, INTERACTION_KIND, QUESTION_TOOL, QUESTIONS, RESTORE, SUPPRESS } from '../names.ts';
import type { Asked } from '../peer.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Json } from '../wire.ts';
import { ended, fitting, must } from './rows.ts';
import { answers, askedAgain, hinted, hung, later, needs, quiet, tellings, userWords } from './restore-rows.ts';

/** Expects the recorded shape of a question. */
function shaped({ params, frame }: Asked, toolCallId: string): void {
  const { options, toolCall } = params;
  const offered = options.map(({ optionId, kind }: Json) => [optionId, kind]);
  expectEqual(
    offered,
    [
      ['proceed_once', 'allow_once'],
      ['cancel', 'reject_once'],
    ],
    'the options',
    frame,
  );
  expectEqual(toolCall.toolCallId, toolCallId, 'the tool call id', frame);
  expectEqual(toolCall.rawInput?.questions, [COLOUR], 'rawInput.questions', frame);
  expectEqual(toolCall._meta?.[INTERACTION_KIND], 'user_question', INTERACTION_KIND, frame);
  expectEqual(toolCall._meta?.[QUESTIONS], [COLOUR], QUESTIONS, frame);
}

async function asksInForm(context: Context) {
  const { asked, before, toolCallId, agent } = await askedAgain(context);
  shaped(before, toolCallId);
  shaped(asked, toolCallId);
  fitting(agent.peer.frames);
}

async function asksUnderNewId(context: Context) {
  const { asked, before } = await askedAgain(context);
  expect(
    JSON.stringify(asked.id) !== JSON.stringify(before.id),
    'the id of the request has been used before the kill',
    asked.frame,
  );
}

async function answerReachesModel(context: Context) {
  const { asked, done, toolCallId, agent, sessionId } = await askedAgain(context);
  asked.answer(answers('Blue'));
  const answer = await done;
  ended(answer, 'end_turn');
  const [told, ...more] = tellings(context, 'Blue');
  expect(told !== undefined, 'the model was not told the answer', answer.frame);
  expect(more.length === 0, 'the model was told the answer twice', answer.frame);
  const asking = told.turns.at(-2);
  expectEqual(
    asking?.calls.map(({ name }) => name),
    [QUESTION_TOOL],
    'the calls before it',
    told.turns,
  );
  expectEqual(told.last.results.length, 1, 'the number of results', told.turns);
  if (asking?.calls[0]?.id)
    expectEqual(told.last.results[0]?.id, asking.calls[0].id, 'the id of the result', told.turns);
  expect(!told.last.texts.some((text) => text.includes('[[')), 'a user message was added', told.turns);
  expect(agent.said(sessionId, asked.frame).includes('Blue'), 'the turn did not go on', answer.frame);
  const states = agent.updatesOf(sessionId, toolCallId, asked.frame).map((frame) => updateOf(frame).status);
  expectEqual(states, ['completed'], 'the states of the call after the answer', answer.frame);
}

async function resultIsShown(context: Context) {
  const { asked, done, toolCallId, agent, sessionId } = await askedAgain(context);
  asked.answer(answers('Blue'));
  ended(await done, 'end_turn');
  const update = agent.updatesOf(sessionId, toolCallId, asked.frame).at(-1);
  const { rawOutput } = (update && updateOf(update)) ?? {};
  expectEqual(rawOutput?.type, 'ask_user_question_answers', 'rawOutput.type', update);
  expectEqual(rawOutput.answers, [{ question: COLOUR.question, answer: 'Blue' }], 'rawOutput.answers', update);
}

async function answersInMeta(context: Context) {
  const { asked, done } = await askedAgain(context);
  asked.answer({ outcome: { outcome: 'selected', optionId: 'proceed_once' }, _meta: { [ANSWERS]: { 0: 'Blue' } } });
  const { frame } = await done;
  expectEqual(tellings(context, 'Blue').length, 1, 'how often the model was told the answer', frame);
}

async function manyAnswers(context: Context) {
  const { asked, done } = await askedAgain(context, CUES.askMany);
  asked.answer(answers('a colour of my own', 'Bell, Lock'));
  const { frame } = await done;
  const text = tellings(context, 'Bell, Lock')[0]?.last.results[0]?.text ?? '';
  for (const word of ['Colour', 'a colour of my own', 'Extras'])
    expect(text.includes(word), `the model was not told "${word}"`, frame);
}

async function noAnswerIsNone(context: Context) {
  const { asked, done } = await askedAgain(context);
  asked.answer({ outcome: { outcome: 'selected', optionId: 'proceed_once' } });
  const answer = await done;
  ended(answer, 'end_turn');
  expectEqual(context.model.told.length, 1, 'how often the model was told', answer.frame);
  const text = context.model.told[0]?.last.results[0]?.text ?? '';
  expect(!/Red|Blue/.test(text), 'an answer was made up', { text });
}

async function answeredStays(context: Context) {
  const { asked, done, agent, sessionId, toolCallId } = await askedAgain(context);
  asked.answer(answers('Blue'));
  ended(await done, 'end_turn');
  await context.crash(agent);
  const next = await later(context, sessionId, false);
  expectEqual(next.states.get(toolCallId), 'completed', 'the state of the call in the history');
  expectEqual(userWords(next.agent, sessionId), [CUES.askOne], "the user's messages in the history");
}

async function secondRestoreIsNothing(context: Context) {
  const { asked, done, agent, sessionId } = await askedAgain(context);
  asked.answer(answers('Blue'));
  ended(await done, 'end_turn');
  const requests = context.model.requests.length;
  const again = await agent.startRestore(sessionId).done;
  ended(again, 'end_turn');
  quiet(context, agent, requests, again.frame);
}

async function suppressedIsNotAsked(context: Context) {
  const { agent, sessionId } = await hung(context);
  hinted(await agent.load(sessionId, { [SUPPRESS]: true }), false);
  const requests = context.model.requests.length;
  const answer = await agent.startRestore(sessionId).done;
  ended(answer, 'end_turn');
  quiet(context, agent, requests, answer.frame);
  await context.crash(agent);
  await later(context, sessionId, true);
}

async function contentIsIgnored(context: Context) {
  const { agent, sessionId } = await hung(context);
  hinted(await agent.load(sessionId), true);
  const turn = agent.start(sessionId, `${CUES.say} smuggled words`, { [RESTORE]: true });
  const asked = await agent.peer.permission();
  asked.answer(answers('Blue'));
  ended(await turn.done, 'end_turn');
  const told = JSON.stringify(context.model.requests.map(({ turns }) => turns));
  expect(!told.includes('smuggled words'), 'the model was given the content of a restore prompt', { text: told });
}

async function resumedIsAsked(context: Context) {
  const { agent, sessionId, toolCallId } = await hung(context);
  hinted(await agent.resume(sessionId), true);
  const { asked, done } = await agent.restore(sessionId);
  shaped(asked, toolCallId);
  asked.answer(answers('Blue'));
  const { frame } = await done;
  expectEqual(tellings(context, 'Blue').length, 1, 'how often the model was told the answer', frame);
}

async function bothAreAsked(context: Context) {
  const { asked, done, agent, toolCallId } = await askedAgain(context, CUES.askTwo);
  expectEqual(asked.params.toolCall.rawInput?.questions, [COLOUR], 'the first question', asked.frame);
  await agent.peer.barrier();
  expect(agent.peer.unanswered.length === 0, 'both questions are asked at once', agent.peer.unanswered[0]);
  asked.answer(answers('Blue'));
  const second = await agent.peer.permission();
  expect(second.params.toolCall.toolCallId !== toolCallId, 'the second question has the id of the first', second.frame);
  expectEqual(second.params.toolCall.rawInput?.questions, [SIZE], 'the second question', second.frame);
  second.answer(answers('Large'));
  const { frame } = await done;
  const told = tellings(context, 'Large');
  expectEqual(told.length, 1, 'how often the model was told', frame);
  const texts = told[0]?.last.results.map(({ text }) => /Blue|Large/.exec(text)?.[0]);
  expectEqual(texts, ['Blue', 'Large'], 'the results in the order of the calls', told[0]?.turns);
}

async function historyIsValid(context: Context) {
  const { asked, done } = await askedAgain(context, CUES.askTwo);
  asked.answer(DECLINED_ANSWER);
  await done;
  for (const { turns } of context.model.requests) {
    for (const [index, turn] of turns.entries()) {
      const results = turns[index + 1]?.results.length ?? 0;
      expect(
        turn.role === 'user' || turn.calls.length === results,
        'the model was sent calls without their results',
        turns,
      );
    }
  }
}

const DECLINED_ANSWER = { outcome: { outcome: 'cancelled' } };

export const ASKS: readonly Check[] = [
  must(
    'RESTORE-ASK-1',
    'RS-0, RS-2',
    'The restore prompt asks again, in the same form and under the same tool call id.',
    asksInForm,
    { needs },
  ),
  must('RESTORE-ASK-2', 'ACP-6', 'The request has an id that the first process did not use.', asksUnderNewId, {
    needs,
    profile: 'better',
  }),
  must(
    'RESTORE-ASK-3',
    'RS-4',
    'The answer goes to the model once, as the result of that call, and the same turn goes on.',
    answerReachesModel,
    { needs },
  ),
  must('RESTORE-ASK-4', 'RS-3', 'The completed call shows question and answer in its rawOutput.', resultIsShown, {
    needs,
  }),
  must('RESTORE-ASK-5', 'RS-3', 'Answers may stand in _meta.', answersInMeta, { needs, profile: 'better' }),
  must('RESTORE-ASK-6', 'RS-3', 'Free text and several choices reach the model, each with its header.', manyAnswers, {
    needs,
  }),
  must('RESTORE-ASK-7', 'RS-3', 'A submit without answers makes none up, and the turn goes on.', noAnswerIsNone, {
    needs,
  }),
  must(
    'RESTORE-ASK-8',
    'RS-4',
    'What was answered is on disk: the next process has it completed, without a new user message.',
    answeredStays,
    { needs },
  ),
  must(
    'RESTORE-ASK-9',
    'RS-1',
    'A second restore prompt is end_turn at once, and nobody is asked.',
    secondRestoreIsNothing,
    { needs },
  ),
  must(
    'RESTORE-ASK-10',
    'RS-1',
    'After a suppressed load a restore prompt is end_turn, and leaves the question for later.',
    suppressedIsNotAsked,
    { needs },
  ),
  must('RESTORE-ASK-11', 'RS-1', 'The content of a restore prompt is ignored.', contentIsIgnored, { needs }),
  must('RESTORE-ASK-12', 'RS-2', 'After a resume it is asked just so.', resumedIsAsked, {
    needs: [...needs, 'resume'],
  }),
  must(
    'RESTORE-ASK-13',
    'RS-2, RS-10',
    'Two questions are asked one after the other, and the model is told both at once, in order.',
    bothAreAsked,
    { needs },
  ),
  must('RESTORE-ASK-14', 'TR-9', 'The model is never sent a call without its result.', historyIsValid, { needs }),
];
