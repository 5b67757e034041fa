import { updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import { CUES, HELD } from '../model/script.ts';
import type { Check } from '../suite.ts';
import { expect, NotSaid } from '../verdicts.ts';
import { isObject, isRequest } from '../wire.ts';
import { allowance, ended, must, opened, permissionIn, reopened, should } from './rows.ts';

const PAGE = 'protocol/v1/prompt-turn#cancellation';

/** A turn whose model speaks and speaks. */
async function streaming(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const turn = agent.start(sessionId, CUES.slowly);
  await peer.next((frame) => updateOf(frame)?.sessionUpdate === 'agent_message_chunk', 'the first words', {
    after: turn.sent,
  });
  return { agent, peer, sessionId, ...turn };
}

async function cancelEnds(context: Context) {
  const { agent, peer, sessionId, done } = await streaming(context);
  peer.notify('session/cancel', { sessionId });
  const answer = await done;
  ended(answer, 'cancelled');
  await peer.barrier();
  const late = agent
    .updates(sessionId, answer.frame)
    .find((frame) => /message_chunk|tool_call/.test(updateOf(frame)?.sessionUpdate));
  expect(late === undefined, 'an update of the turn came after its end', late);
}

async function goesOnAfterCancel(context: Context) {
  const { agent, peer, sessionId, done } = await streaming(context);
  peer.notify('session/cancel', { sessionId });
  ended(await done, 'cancelled');
  ended(await agent.say(sessionId, CUES.say), 'end_turn');
}

async function cancelWhileAsked(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const { asked, done } = await permissionIn(context, agent, sessionId);
  peer.notify('session/cancel', { sessionId });
  asked.answer({ outcome: { outcome: 'cancelled' } });
  ended(await done, 'cancelled');
}

async function cancelUnanswered(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const { asked, done } = await permissionIn(context, agent, sessionId);
  peer.notify('session/cancel', { sessionId });
  ended(await done, 'cancelled');
  asked.answer(allowance(asked));
  ended(await agent.say(sessionId, CUES.say), 'end_turn');
}

async function idleCancelIsIgnored(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  peer.notify('session/cancel', { sessionId });
  peer.notify('session/cancel', { sessionId: 'no-such-session' });
  await peer.barrier();
  ended(await agent.say(sessionId, CUES.say), 'end_turn');
}

async function cancelRequestEnds(context: Context) {
  const { peer, sessionId, sent, done } = await streaming(context);
  peer.notify('$/cancel_request', { requestId: sent.value.id });
  const patience = context.patience / 4;
  const reply = await peer.reply(sent.value.id, 'the answer', { after: sent, patience }).catch(() => undefined);
  if (reply === undefined) {
    peer.notify('session/cancel', { sessionId });
    await done;
    throw new NotSaid('not advertised', 'it ignores $/cancel_request, as it may');
  }
  const { result, error, frame } = reply;
  expect(
    error?.code === -32800 || result?.stopReason === 'cancelled',
    'it is answered neither with -32800 nor as cancelled',
    frame,
  );
}

async function requestIsWithdrawn(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const { asked, done } = await permissionIn(context, agent, sessionId);
  peer.notify('session/cancel', { sessionId });
  ended(await done, 'cancelled');
  const withdrawn = peer.frames.some(
    ({ dir, value }) =>
      dir === 'in' &&
      isObject(value) &&
      value['method'] === '$/cancel_request' &&
      value['params']?.requestId === asked.id,
  );
  expect(withdrawn, 'the permission request was not withdrawn', asked.frame);
}

async function wordsStay(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const turn = agent.start(sessionId, CUES.hold);
  await peer.next((frame) => updateOf(frame)?.content?.text === HELD, 'the first words', { after: turn.sent });
  peer.notify('session/cancel', { sessionId });
  ended(await turn.done, 'cancelled');
  await agent.kill();
  const next = await context.agent();
  const { frame } = await next.load(sessionId);
  expect(next.said(sessionId).includes(HELD), 'what was said before the cancel is gone', frame);
}

async function nothingIsAskedAfter(context: Context) {
  const { agent, sessionId } = await reopened(context, [CUES.say]);
  await agent.load(sessionId);
  await agent.peer.barrier();
  const asked = agent.peer.frames.find(isRequest);
  expect(asked === undefined, 'a load of a finished session asks something', asked);
}

export const CANCEL: readonly Check[] = [
  must(
    'ACP-CANCEL-1',
    PAGE,
    'session/cancel ends the turn with stopReason cancelled, after all of its updates.',
    cancelEnds,
    { needs: ['model'] },
  ),
  must('ACP-CANCEL-2', PAGE, 'After a cancel the session takes the next prompt.', goesOnAfterCancel, {
    needs: ['model'],
  }),
  must(
    'ACP-CANCEL-3',
    PAGE,
    'A cancel while a permission is asked for ends the turn with stopReason cancelled.',
    cancelWhileAsked,
    { needs: ['model'] },
  ),
  should(
    'ACP-CANCEL-4',
    PAGE,
    'It does so without waiting for the answer, and a late answer is ignored.',
    cancelUnanswered,
    { needs: ['model'] },
  ),
  must('ACP-CANCEL-5', PAGE, 'A cancel with nothing to cancel is ignored.', idleCancelIsIgnored, {
    needs: ['turn'],
  }),
  should(
    'ACP-CANCEL-6',
    'protocol/v1/cancellation',
    '$/cancel_request ends the request that it names.',
    cancelRequestEnds,
    { needs: ['model'] },
  ),
  should(
    'ACP-CANCEL-7',
    'protocol/v1/cancellation',
    'A permission request that nobody waits for any more is withdrawn.',
    requestIsWithdrawn,
    { needs: ['model'], profile: 'better' },
  ),
  should(
    'ACP-CANCEL-8',
    'qwen-acp ACP-7',
    'What was said before a cancel stays in the history, even if the process is killed then.',
    wordsStay,
    { needs: ['model', 'load'], profile: 'better' },
  ),
  must(
    'ACP-CANCEL-9',
    'protocol/v1/session-setup',
    'A load of a finished session asks for nothing.',
    nothingIsAskedAfter,
    { needs: ['model', 'load'] },
  ),
];
