import { setTimeout as pause } from 'node:timers/promises';
import type { Agent } from '../agent.ts';
import { updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import { CUES } from '../model/script.ts';
import type { Asked, Reply } from '../peer.ts';
import type { Check } from '../suite.ts';
import { expectEqual } from '../verdicts.ts';
import { ended, must, opened } from './rows.ts';
import { answers, askedAgain, asksLater, hinted, needs, unattended } from './restore-rows.ts';

interface Waiting {
  readonly agent: Agent;
  readonly sessionId: string;
  readonly asked: Asked;
  readonly done: Promise<Reply>;
}
type End = (waiting: Waiting) => Promise<unknown>;

/** An end of a question that is asked again: a later process asks it once more, and its answer counts. */
const again = (end: End) => async (context: Context) => {
  const waiting = await askedAgain(context);
  await end(waiting);
  await context.crash(waiting.agent);
  await asksLater(context, waiting.sessionId);
};

/** The same for a question that is asked for the first time. */
const first = (end: End) => async (context: Context) => {
  const { agent, sessionId } = await opened(context);
  const waiting = { agent, sessionId, ...(await agent.askIn(sessionId, CUES.askOne)) };
  // Most do not handle every signal, and then it is a crash to them.
  await pause(context.options.thinking);
  await end(waiting);
  await context.crash(agent);
  await asksLater(context, sessionId);
};

const unansweredFor =
  (reason: 'timeout' | 'session_closed'): End =>
  async ({ agent, sessionId, asked, done }) => {
    asked.answer(unattended(reason));
    const reply = await done;
    ended(reply, 'end_turn');
    const update = agent.updatesOf(sessionId, asked.params.toolCall.toolCallId, asked.frame).at(-1);
    expectEqual(update && updateOf(update).status, 'failed', 'the state of the card', update ?? reply.frame);
  };
const cancelled: End = async ({ agent, sessionId, done }) => {
  agent.peer.notify('session/cancel', { sessionId });
  ended(await done, 'cancelled');
};
const hangUp: End = ({ agent }) => agent.hangUp();
const stopped =
  (signal: NodeJS.Signals): End =>
  ({ agent }) =>
    agent.stop(signal);
const killed: End = ({ agent }) => agent.kill();
const closed: End = ({ agent, sessionId }) => agent.peer.call('session/close', { sessionId });

async function halfAnswered(context: Context) {
  const { agent, sessionId, asked, done } = await askedAgain(context, CUES.askTwo);
  asked.answer(answers('Red'));
  (await agent.peer.permission()).answer(unattended('timeout'));
  ended(await done, 'end_turn');
  await context.crash(agent);
  await bothAgain(context, sessionId);
}

async function killedBetween(context: Context) {
  const { agent, sessionId, asked } = await askedAgain(context, CUES.askTwo);
  asked.answer(answers('Red'));
  await agent.peer.permission();
  await context.crash(agent);
  await bothAgain(context, sessionId);
}

async function bothAgain(context: Context, sessionId: string): Promise<void> {
  const agent = await context.agent();
  hinted(await agent.load(sessionId), true);
  const { asked, done } = await agent.restore(sessionId);
  asked.answer(answers('Blue'));
  (await agent.peer.permission()).answer(answers('Small'));
  ended(await done, 'end_turn');
}

async function sameProcessAsks(context: Context) {
  const { agent, sessionId, asked, done } = await askedAgain(context);
  asked.answer(unattended('timeout'));
  ended(await done, 'end_turn');
  hinted(await agent.load(sessionId), true);
  const turn = await agent.restore(sessionId);
  turn.asked.answer(answers('Blue'));
  ended(await turn.done, 'end_turn');
}

const better = { needs, profile: 'better' } as const;

export const UNATTENDED: readonly Check[] = [
  must(
    'RESTORE-UNATTENDED-1',
    'RS-6',
    'A timeout ends the turn and fails the card, and a later load asks again.',
    again(unansweredFor('timeout')),
    { needs },
  ),
  must('RESTORE-UNATTENDED-2', 'RS-6', 'So does a session that is closed.', again(unansweredFor('session_closed')), {
    needs,
  }),
  must(
    'RESTORE-UNATTENDED-3',
    'RS-6',
    'A cancel of the restore turn ends it as cancelled, and a later load asks again.',
    again(cancelled),
    { needs },
  ),
  must('RESTORE-UNATTENDED-4', 'RS-6', 'After the end of stdin a later load asks again.', again(hangUp), { needs }),
  must('RESTORE-UNATTENDED-5', 'RS-6', 'After SIGTERM a later load asks again.', again(stopped('SIGTERM')), { needs }),
  must('RESTORE-UNATTENDED-6', 'RS-6', 'After a kill -9 of the second process a third asks again.', again(killed), {
    needs,
  }),
  must(
    'RESTORE-UNATTENDED-7',
    'RS-10',
    'Of two questions one answered and one not, both are asked again.',
    halfAnswered,
    { needs },
  ),
  must('RESTORE-UNATTENDED-8', 'RS-10', 'A kill -9 between two questions has both asked again.', killedBetween, {
    needs,
  }),
  must(
    'RESTORE-UNATTENDED-9',
    'BT-10',
    'After a timeout a load in the same process hints, and the question is asked.',
    sameProcessAsks,
    better,
  ),
  must(
    'RESTORE-UNATTENDED-10',
    'BT-1',
    'A question that is asked for the first time survives the end of stdin.',
    first(hangUp),
    better,
  ),
  must('RESTORE-UNATTENDED-11', 'BT-1', 'It survives SIGTERM.', first(stopped('SIGTERM')), better),
  must('RESTORE-UNATTENDED-12', 'BT-1', 'It survives SIGINT.', first(stopped('SIGINT')), better),
  must('RESTORE-UNATTENDED-13', 'BT-1', 'It survives SIGHUP.', first(stopped('SIGHUP')), { needs }),
  must('RESTORE-UNATTENDED-14', 'BT-1', 'It survives a timeout.', first(unansweredFor('timeout')), better),
  must(
    'RESTORE-UNATTENDED-15',
    'BT-1',
    'It survives a session that is closed.',
    first(unansweredFor('session_closed')),
    better,
  ),
  must('RESTORE-UNATTENDED-16', 'BT-1', 'It survives session/close.', first(closed), {
    needs: [...needs, 'close'],
    profile: 'better',
  }),
];
