import { isUpdate, updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import { CUES, SAID } from '../model/script.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { type Json, isReply } from '../wire.ts';
import { ended, fitting, must, opened, refused, reopened, should } from './rows.ts';

const PAGE = 'protocol/v1/session-setup';
const NOBODY = '11111111-1111-4111-8111-111111111111';

async function idsAreUnique(context: Context) {
  const agent = await context.agent();
  const ids = await Promise.all([1, 2, 3].map(() => agent.newSession()));
  expectEqual(new Set(ids).size, 3, 'the number of different ids', agent.peer.frames.at(-1));
  fitting(agent.peer.frames);
}

async function relativeIsRefused(context: Context) {
  const { peer } = await context.agent();
  refused(await peer.request('session/new', { cwd: 'some/folder', mcpServers: [] }), -32602);
}

async function answersBeforeUpdates(context: Context) {
  const { peer, sessionId } = await opened(context);
  const answer = peer.frames.findIndex((frame) => isReply(frame) && frame.value.result?.sessionId === sessionId);
  const early = peer.frames.slice(0, answer).find((frame) => isUpdate(frame, sessionId));
  expect(early === undefined, 'an update names a session that the client does not know yet', early);
}

const unknownSession =
  (method: string, ...codes: number[]) =>
  async (context: Context) => {
    const { peer, home } = await context.agent();
    const prompt = [{ type: 'text', text: CUES.say }];
    refused(await peer.request(method, { sessionId: NOBODY, cwd: home.cwd, mcpServers: [], prompt }), ...codes);
  };

async function loadReplays(context: Context) {
  const { agent, sessionId } = await reopened(context, [`${CUES.say} first words`, `${CUES.say} second words`]);
  const { frame, error } = await agent.load(sessionId);
  expect(error === undefined, 'the load was refused', frame);
  await agent.peer.barrier();
  const [before, after] = [agent.updates(sessionId), agent.updates(sessionId, frame)];
  const late = after.find((update) => /message_chunk|tool_call|thought/.test(updateOf(update)?.sessionUpdate));
  expect(late === undefined, 'history came after the response', late);
  const text = (kind: string) =>
    before
      .map(updateOf)
      .map((update) => (update?.sessionUpdate === kind ? update.content?.text : ''))
      .join('');
  const asked = text('user_message_chunk');
  expect(
    /first words[\s\S]*second words/.test(asked),
    `the user's words are not in the history, in order: ${asked}`,
    frame,
  );
  const said = text('agent_message_chunk');
  expectEqual(said.split(SAID.join('')).length - 1, 2, "the number of the agent's answers in the history", frame);
  fitting(agent.peer.frames);
}

const goesOn = (method: 'load' | 'resume') => async (context: Context) => {
  const { agent, sessionId } = await reopened(context, [`${CUES.say} first words`]);
  const before = context.model.requests.length;
  const { error, frame } = await agent[method](sessionId);
  expect(error === undefined, `session/${method} was refused`, frame);
  ended(await agent.say(sessionId, `${CUES.say} second words`));
  const told = context.model.requests.slice(before).find(({ last }) => last.texts.join().includes('second words'));
  const texts = JSON.stringify(told?.turns.flatMap((turn) => turn.texts) ?? []);
  expect(/first words[\s\S]*second words/.test(texts), 'the model was not told the history', { text: texts });
};

async function resumeIsSilent(context: Context) {
  const { agent, sessionId } = await reopened(context, [CUES.say]);
  const { error, frame } = await agent.resume(sessionId);
  expect(error === undefined, 'the resume was refused', frame);
  await agent.peer.barrier();
  const history = agent
    .updates(sessionId)
    .find((update) => /message_chunk|tool_call/.test(updateOf(update)?.sessionUpdate));
  expect(history === undefined, 'a resume sent history', history);
  fitting(agent.peer.frames);
}

async function listed(context: Context): Promise<{ sessions: Json[]; sessionId: string }> {
  const { agent, peer, sessionId } = await opened(context);
  ended(await agent.say(sessionId, CUES.say));
  const { sessions } = await peer.call('session/list', { cwd: agent.home.cwd });
  fitting(peer.frames);
  return { sessions, sessionId };
}

async function listNames(context: Context) {
  const { sessions, sessionId } = await listed(context);
  const own = sessions.filter((session) => session.sessionId === sessionId);
  expectEqual(own.length, 1, 'how often the session is in the list', { sessions });
  expectEqual(own[0].cwd, context.home.cwd, 'its cwd', own[0]);
}

async function listFilters(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  ended(await agent.say(sessionId, CUES.say));
  const { sessions } = await peer.call('session/list', { cwd: '/some/other/folder' });
  const own = sessions.find((session: Json) => session.sessionId === sessionId);
  expect(own === undefined, 'the list for another folder has it', own);
}

async function closeEnds(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  ended(await agent.say(sessionId, CUES.say));
  await peer.call('session/close', { sessionId });
  refused(await agent.say(sessionId, CUES.say));
  fitting(peer.frames);
}

async function closeCancels(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const turn = agent.start(sessionId, CUES.hold);
  await context.model.asked(1);
  await peer.call('session/close', { sessionId });
  ended(await turn.done, 'cancelled');
}

async function deleteForgets(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  ended(await agent.say(sessionId, CUES.say));
  await peer.call('session/delete', { sessionId });
  fitting(peer.frames);
  if (!context.findings.lacks.has('list')) {
    const { sessions } = await peer.call('session/list', { cwd: agent.home.cwd });
    const own = sessions.find((session: Json) => session.sessionId === sessionId);
    expect(own === undefined, 'a deleted session is still in the list', own);
  }
  if (!context.findings.lacks.has('load')) refused(await agent.load(sessionId));
}

async function modesAreKept(context: Context) {
  const { peer, home } = await context.agent();
  const { sessionId, modes } = await peer.call('session/new', { cwd: home.cwd, mcpServers: [] });
  if (!modes) context.skip('it has no modes');
  for (const { id } of modes.availableModes) await peer.call('session/set_mode', { sessionId, modeId: id });
  refused(await peer.request('session/set_mode', { sessionId, modeId: 'no-such-mode' }));
}

const LIST = 'protocol/v1/session-list';

export const SESSIONS: readonly Check[] = [
  must('ACP-SESSION-1', PAGE, 'Every session/new gives a session id of its own.', idsAreUnique, { needs: ['session'] }),
  should('ACP-SESSION-2', PAGE, 'A working directory that is not absolute is refused with -32602.', relativeIsRefused, {
    needs: ['session'],
  }),
  must(
    'ACP-SESSION-3',
    PAGE,
    'No update names a session before the response that gives its id.',
    answersBeforeUpdates,
    { needs: ['session'] },
  ),
  must(
    'ACP-SESSION-4',
    PAGE,
    'A prompt for a session that does not exist is refused.',
    unknownSession('session/prompt'),
    { needs: ['session'] },
  ),
  should(
    'ACP-SESSION-5',
    'schema ErrorCode',
    'Its error is -32002, not an internal one.',
    unknownSession('session/prompt', -32002),
    { needs: ['session'] },
  ),
  must(
    'ACP-SESSION-6',
    PAGE,
    'Loading a session that does not exist is refused with -32002.',
    unknownSession('session/load', -32002),
    { needs: ['session', 'load'] },
  ),
  must(
    'ACP-SESSION-7',
    PAGE,
    'Resuming a session that does not exist is refused with -32002.',
    unknownSession('session/resume', -32002),
    { needs: ['session', 'resume'] },
  ),
  must(
    'ACP-SESSION-8',
    PAGE,
    'A load in another process sends the whole history, in order, before its response and none after it.',
    loadReplays,
    { needs: ['model', 'load'] },
  ),
  must('ACP-SESSION-9', PAGE, 'After a load the model is told the history.', goesOn('load'), {
    needs: ['model', 'load'],
  }),
  must('ACP-SESSION-10', PAGE, 'A resume sends no history.', resumeIsSilent, { needs: ['model', 'resume'] }),
  must('ACP-SESSION-11', PAGE, 'After a resume the model is told the history.', goesOn('resume'), {
    needs: ['model', 'resume'],
  }),
  must('ACP-SESSION-12', LIST, 'session/list has a session that was prompted, once, with its folder.', listNames, {
    needs: ['model', 'list'],
  }),
  must('ACP-SESSION-13', LIST, 'session/list for another folder does not have it.', listFilters, {
    needs: ['model', 'list'],
  }),
  must('ACP-SESSION-14', PAGE, 'A closed session takes no prompt.', closeEnds, { needs: ['turn', 'close'] }),
  must('ACP-SESSION-15', PAGE, 'Closing a session cancels its turn.', closeCancels, { needs: ['model', 'close'] }),
  must('ACP-SESSION-16', PAGE, 'A deleted session is neither listed nor loaded.', deleteForgets, {
    needs: ['model', 'delete'],
  }),
  must(
    'ACP-SESSION-17',
    'protocol/v1/session-modes',
    'Each mode that is offered can be set, and no other.',
    modesAreKept,
    { needs: ['session'] },
  ),
];
