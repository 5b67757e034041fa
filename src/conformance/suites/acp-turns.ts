import { updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import { CUES, SAID } from '../model/script.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { isRequest, type Json } from '../wire.ts';
import { allowance, ended, fitting, must, opened, permissionIn, refused, should } from './rows.ts';

const PAGE = 'protocol/v1/prompt-turn';

async function speaksBeforeItAnswers(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const turn = agent.start(sessionId, CUES.say);
  const answer = await turn.done;
  ended(answer);
  await peer.barrier();
  expect(agent.said(sessionId) !== '', 'the turn ended without a word', answer.frame);
  const late = agent
    .updates(sessionId, answer.frame)
    .find((frame) => /message_chunk|tool_call/.test(updateOf(frame)?.sessionUpdate));
  expect(late === undefined, 'an update of the turn came after its end', late);
  fitting(peer.frames);
}

async function saysWhatTheModelSays(context: Context) {
  const { agent, sessionId } = await opened(context);
  const { frame } = await agent.say(sessionId, CUES.say);
  expectEqual(agent.said(sessionId), SAID.join(''), 'what it said', frame);
}

/** A turn in which a tool ran. */
async function toolTurn(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const { asked, done } = await permissionIn(context, agent, sessionId);
  asked.answer(allowance(asked));
  const answer = await done;
  ended(answer);
  return { agent, peer, sessionId, asked, answer };
}

async function callsAreIntroduced(context: Context) {
  const { peer } = await toolTurn(context);
  const known = new Set<string>();
  for (const frame of peer.frames) {
    const update = updateOf(frame);
    if (isRequest(frame)) known.add(frame.value.params?.toolCall?.toolCallId);
    if (update?.sessionUpdate === 'tool_call') known.add(update.toolCallId);
    const stray = update?.sessionUpdate === 'tool_call_update' && !known.has(update.toolCallId);
    expect(!stray, 'an update of a tool call that was not introduced', frame);
  }
  fitting(peer.frames);
}

async function callsAreShownFirst(context: Context) {
  const { agent, sessionId } = await opened(context);
  const { asked, done } = await permissionIn(context, agent, sessionId);
  const shown = agent
    .updates(sessionId)
    .map(updateOf)
    .some(
      ({ sessionUpdate, toolCallId }) =>
        sessionUpdate === 'tool_call' && toolCallId === asked.params.toolCall.toolCallId,
    );
  expect(shown, 'its tool call was not shown before', asked.frame);
  asked.answer(allowance(asked));
  await done;
}

async function callsEnd(context: Context) {
  const { agent, sessionId, answer } = await toolTurn(context);
  const status = new Map<string, Json>();
  for (const frame of agent.updates(sessionId)) {
    const { toolCallId, status: now } = updateOf(frame) ?? {};
    if (toolCallId && now) status.set(toolCallId, { now, frame });
  }
  expect(status.size > 0, 'no update names the tool call', answer.frame);
  const open = [...status.values()].find(({ now }) => now !== 'completed' && now !== 'failed');
  expect(open === undefined, 'a tool call is still open after the turn', open?.frame);
}

async function takesLinks(context: Context) {
  const { agent, sessionId } = await opened(context);
  const link = { type: 'resource_link', name: 'notes.txt', uri: 'file:///somewhere/notes.txt', mimeType: 'text/plain' };
  ended(await agent.prompt(sessionId, [{ type: 'text', text: CUES.say }, link]).done);
}

async function emptyIsRefused(context: Context) {
  const { agent, sessionId } = await opened(context);
  refused(await agent.prompt(sessionId, []).done, -32602);
}

async function sessionsAreApart(context: Context) {
  const { agent, sessionId: one } = await opened(context);
  const two = await agent.newSession();
  const first = agent.start(one, CUES.slowly);
  await context.model.asked(1);
  ended(await agent.say(two, CUES.say));
  expectEqual(agent.said(two), SAID.join(''), 'what the second session said');
  agent.peer.notify('session/cancel', { sessionId: one });
  ended(await first.done, 'cancelled');
  expect(
    !agent.said(one).includes(SAID[0] ?? ''),
    'words of one session were said in another',
    (await first.done).frame,
  );
}

async function remembers(context: Context) {
  const { agent, sessionId } = await opened(context);
  ended(await agent.say(sessionId, `${CUES.say} first words`));
  ended(await agent.say(sessionId, `${CUES.say} second words`));
  const told = context.model.requests.find(({ last }) => last.texts.join().includes('second words'));
  const texts = JSON.stringify(told?.turns.flatMap((turn) => turn.texts) ?? []);
  expect(/first words[\s\S]*kit[\s\S]*second words/.test(texts), 'the model was not told the turn before', {
    text: texts,
  });
}

export const TURNS: readonly Check[] = [
  must(
    'ACP-PROMPT-1',
    PAGE,
    'All updates of a turn come before its answer, which has a valid stopReason.',
    speaksBeforeItAnswers,
    { needs: ['turn'] },
  ),
  must('ACP-PROMPT-2', PAGE, 'What the model says reaches the client whole and in order.', saysWhatTheModelSays, {
    needs: ['model'],
  }),
  must(
    'ACP-PROMPT-3',
    'protocol/v1/tool-calls',
    'A tool call is introduced before it is updated.',
    callsAreIntroduced,
    { needs: ['model'] },
  ),
  should(
    'ACP-PROMPT-4',
    'protocol/v1/tool-calls',
    'Every tool call of a turn that has ended is completed or failed.',
    callsEnd,
    { needs: ['model'] },
  ),
  should(
    'ACP-PROMPT-9',
    'protocol/v1/tool-calls',
    'A tool call is shown before permission for it is asked for.',
    callsAreShownFirst,
    { needs: ['model'] },
  ),
  must('ACP-PROMPT-5', 'protocol/v1/content', 'A prompt may hold text and resource links.', takesLinks, {
    needs: ['turn'],
  }),
  should('ACP-PROMPT-6', 'qwen-acp ACP-14', 'A prompt without any content is refused with -32602.', emptyIsRefused, {
    needs: ['turn'],
    profile: 'better',
  }),
  must('ACP-PROMPT-7', PAGE, 'Turns of two sessions run side by side and do not mix.', sessionsAreApart, {
    needs: ['model'],
  }),
  must('ACP-PROMPT-8', PAGE, 'The model is told the turns before.', remembers, { needs: ['model'] }),
];
