import { updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import { COLOUR, CUES } from '../model/script.ts';
import { LOAD_UPDATES, REPLAY, REPLAY_MODE, RESTORE, SUPPRESS } from '../names.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Json } from '../wire.ts';
import { ended, must, opened } from './rows.ts';
import { answers, asksLater, calls, hinted, hung, later, leavesOpen, needs } from './restore-rows.ts';

async function survivesTheMoment(context: Context) {
  const { agent, sessionId } = await opened(context);
  await agent.askIn(sessionId, CUES.askOne);
  await agent.kill();
  await asksLater(context, sessionId);
}

async function loadKeepsItOpen(context: Context) {
  const { agent, sessionId, toolCallId } = await hung(context);
  const { frame } = await agent.load(sessionId);
  await agent.peer.barrier();
  const [card, ...more] = agent.updatesOf(sessionId, toolCallId);
  expect(card !== undefined, 'the history does not have the call', frame);
  const update = updateOf(card);
  expectEqual([update.sessionUpdate, update.status], ['tool_call', 'in_progress'], 'the call in the history', card);
  expectEqual(update.rawInput?.questions, [COLOUR], 'its questions', card);
  expect(more.length === 0, 'the open call was updated', more[0]);
}

async function loadHints(context: Context) {
  const { agent, sessionId } = await hung(context);
  hinted(await agent.load(sessionId), true);
}

async function resumeHints(context: Context) {
  const { agent, sessionId } = await hung(context);
  const reply = await agent.resume(sessionId);
  hinted(reply, true);
  await agent.peer.barrier();
  const history = agent
    .updates(sessionId)
    .find((frame) => /message_chunk|tool_call/.test(updateOf(frame)?.sessionUpdate));
  expect(history === undefined, 'a resume sent history', history);
}

async function suppressedLoadCloses(context: Context) {
  const { agent, sessionId, toolCallId } = await hung(context);
  const reply = await agent.load(sessionId, { [SUPPRESS]: true });
  hinted(reply, false);
  const states = calls(agent.updates(sessionId));
  expectEqual(states.get(toolCallId), 'failed', 'the state of the call', agent.updates(sessionId).at(-1));
}

async function suppressedResumeIsSilent(context: Context) {
  const { agent, sessionId } = await hung(context);
  hinted(await agent.resume(sessionId, { [SUPPRESS]: true }), false);
}

async function onlyTrueSuppresses(context: Context) {
  const { agent, sessionId, toolCallId } = await hung(context);
  const reply = await agent.load(sessionId, { [SUPPRESS]: 'true' });
  hinted(reply, true);
  leavesOpen(agent, sessionId, [toolCallId], reply.frame);
}

async function readingCloses(context: Context) {
  const { agent, sessionId, toolCallId } = await hung(context);
  const { result, frame, error } = await agent.peer.request(LOAD_UPDATES, { sessionId, cwd: agent.home.cwd });
  expect(error?.code !== -32601, `it does not serve ${LOAD_UPDATES}`, frame);
  const last = result?.updates?.filter((update: Json) => update.toolCallId === toolCallId).at(-1);
  expectEqual(last?.status, 'failed', 'the state of the call', frame);
  expect(result._meta?.[RESTORE] === undefined, 'it bears the hint', frame);
  await asksLater(context, sessionId);
}

async function readingNobody(context: Context) {
  const { agent } = await opened(context);
  const params = { sessionId: '11111111-1111-4111-8111-111111111111', cwd: agent.home.cwd };
  const { result, frame } = await agent.peer.request(LOAD_UPDATES, params);
  expectEqual(result?.updates, [], 'the updates of an unknown session', frame);
}

async function bulkKeepsItOpen(context: Context) {
  const { agent, sessionId, toolCallId } = await hung(context);
  const reply = await agent.load(sessionId, { [REPLAY_MODE]: 'bulk' });
  hinted(reply, true);
  const replay = reply.result._meta[REPLAY];
  expectEqual(replay?.v, 1, 'the version of the replay', reply.frame);
  const states = replay.updates
    .filter((update: Json) => update.toolCallId === toolCallId)
    .map(({ status }: Json) => status);
  expectEqual(states, ['in_progress'], 'the states of the call in the replay', reply.frame);
  await agent.peer.barrier();
  const history = agent
    .updates(sessionId)
    .find((frame) => /message_chunk|tool_call/.test(updateOf(frame)?.sessionUpdate));
  expect(history === undefined, 'the history came as notifications too', history);
}

async function mixedIsClosed(context: Context) {
  const { agent, sessionId } = await hung(context, CUES.askMixed);
  const reply = await agent.load(sessionId);
  hinted(reply, false);
  leavesOpen(agent, sessionId, [], reply.frame);
  const { done } = agent.startRestore(sessionId);
  ended(await done, 'end_turn');
  expect(agent.peer.unanswered.length === 0, 'it was asked again all the same', agent.peer.unanswered[0]);
}

async function invalidIsNotAsked(context: Context) {
  const { agent, sessionId } = await opened(context);
  const answer = await agent.say(sessionId, CUES.askInvalid);
  ended(answer, 'end_turn');
  expect(agent.peer.unanswered.length === 0, 'a person was asked', agent.peer.unanswered[0]);
  expect([...calls(agent.updates(sessionId)).values()].includes('failed'), 'the call did not fail', answer.frame);
  expectEqual(context.model.told.length, 1, 'how often the model was told', answer.frame);
}

/** Sessions with every kind of end, in one file system. */
async function hintIffOpen(context: Context) {
  const { agent, sessionId: said } = await opened(context);
  ended(await agent.say(said, CUES.say));
  const answered = await agent.newSession();
  const turn = await agent.askIn(answered, CUES.askOne);
  turn.asked.answer(answers('Red'));
  ended(await turn.done);
  const waiting: string[] = [];
  for (const cue of [CUES.askOne, CUES.askTwo, CUES.askMany, CUES.askMixed]) {
    const sessionId = await agent.newSession();
    await agent.askIn(sessionId, cue);
    waiting.push(sessionId);
  }
  await context.crash(agent);
  const next = await context.agent();
  for (const sessionId of [said, answered, ...waiting]) {
    const { frame, result } = await next.load(sessionId);
    const states = [...calls(next.updates(sessionId)).values()];
    expectEqual(result?._meta?.[RESTORE] === true, states.includes('in_progress'), 'whether it hints', frame);
  }
}

async function loadWritesNothing(context: Context) {
  const { agent, sessionId } = await hung(context);
  hinted(await agent.load(sessionId, { [SUPPRESS]: true }), false);
  await agent.hangUp();
  await later(context, sessionId, true);
  await asksLater(context, sessionId);
}

async function loadsAgain(context: Context) {
  const { agent, sessionId, toolCallId } = await hung(context);
  hinted(await agent.load(sessionId), true);
  const barrier = await agent.peer.barrier();
  const again = await agent.load(sessionId);
  hinted(again, true);
  expectEqual(
    calls(agent.updates(sessionId, barrier)).get(toolCallId),
    'in_progress',
    'the state of the call in the second history',
    again.frame,
  );
}

async function suppressedThenLoaded(context: Context) {
  const { agent, sessionId } = await hung(context);
  hinted(await agent.load(sessionId, { [SUPPRESS]: true }), false);
  hinted(await agent.load(sessionId), true);
  const { asked, done } = await agent.restore(sessionId);
  asked.answer(answers('Red'));
  ended(await done, 'end_turn');
}

async function switchedOffCloses(context: Context) {
  const { agent: first, sessionId } = await opened(context);
  const { asked } = await first.askIn(sessionId, CUES.askOne);
  await context.crash(first);
  const off = await context.agent({ switchedOff: true });
  hinted(await off.load(sessionId), false);
  expectEqual(
    calls(off.updates(sessionId)).get(asked.params.toolCall.toolCallId),
    'failed',
    'the state of the call',
    off.updates(sessionId).at(-1),
  );
  const { done } = off.startRestore(sessionId);
  await done;
  expect(off.peer.unanswered.length === 0, 'it was asked again all the same', off.peer.unanswered[0]);
}

async function switchedOffIsSilent(context: Context) {
  const { agent: first, sessionId } = await opened(context);
  await first.askIn(sessionId, CUES.askOne);
  await context.crash(first);
  const off = await context.agent({ switchedOff: true });
  hinted(await off.load(sessionId), false);
  await off.hangUp();
  await asksLater(context, sessionId);
}

const resumes = { needs: [...needs, 'resume'] } as const;

export const LOADS: readonly Check[] = [
  must(
    'RESTORE-LOAD-1',
    'LS-1',
    'After a kill -9 a load replays the question as a call in progress, and nothing closes it.',
    loadKeepsItOpen,
    { needs },
  ),
  must('RESTORE-LOAD-2', 'LS-1', 'The response of that load carries the hint.', loadHints, { needs }),
  must('RESTORE-LOAD-3', 'LS-1, ACP-3', 'A resume carries the hint too, and sends no history.', resumeHints, resumes),
  must(
    'RESTORE-LOAD-4',
    'LS-2',
    'A suppressed load replays the question as failed and carries no hint.',
    suppressedLoadCloses,
    { needs },
  ),
  must('RESTORE-LOAD-5', 'LS-2', 'A suppressed resume carries no hint.', suppressedResumeIsSilent, resumes),
  must('RESTORE-LOAD-6', 'LS-2', 'Only the boolean true suppresses.', onlyTrueSuppresses, { needs }),
  must(
    'RESTORE-LOAD-7',
    'LS-4, ACP-10',
    'loadUpdates gives the question as failed, without a hint, and changes nothing.',
    readingCloses,
    { needs },
  ),
  must('RESTORE-LOAD-8', 'ACP-10', 'loadUpdates of an unknown session gives no updates.', readingNobody, { needs }),
  must(
    'RESTORE-LOAD-9',
    'LS-3, ACP-11',
    'A bulk load has the open question in its response, together with the hint.',
    bulkKeepsItOpen,
    { needs },
  ),
  must('RESTORE-LOAD-10', 'EL-1', 'A question beside another tool is closed, and not asked again.', mixedIsClosed, {
    needs,
  }),
  must(
    'RESTORE-LOAD-11',
    'EL-2',
    'A question with invalid arguments is not asked; the model is told.',
    invalidIsNotAsked,
    { needs },
  ),
  must(
    'RESTORE-LOAD-12',
    'LS-1',
    'Whatever the session, the hint comes exactly when the history leaves a call in progress.',
    hintIffOpen,
    { needs },
  ),
  must(
    'RESTORE-LOAD-13',
    'TR-3',
    'A load, even a suppressed one, leaves nothing behind: the next process asks.',
    loadWritesNothing,
    { needs },
  ),
  must('RESTORE-LOAD-14', 'LS-3', 'A second load in the same process replays and hints again.', loadsAgain, { needs }),
  must(
    'RESTORE-LOAD-15',
    'BT-10',
    'After a suppressed load, a plain one in the same process hints, and the question is asked.',
    suppressedThenLoaded,
    { needs, profile: 'better' },
  ),
  must(
    'RESTORE-LOAD-16',
    'LS-5, RS-1',
    'With the switch off a load closes the question, and the restore key asks nothing.',
    switchedOffCloses,
    { needs },
  ),
  must(
    'RESTORE-LOAD-17',
    'LS-5, TR-3',
    'What was loaded with the switch off is asked by a later process with it on.',
    switchedOffIsSilent,
    { needs },
  ),
  must(
    'RESTORE-LOAD-18',
    'TR-5',
    'A kill -9 in the very moment in which the question is asked loses nothing.',
    survivesTheMoment,
    { needs, profile: 'better' },
  ),
];
