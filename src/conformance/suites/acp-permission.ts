import { updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import { CUES } from '../model/script.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Json } from '../wire.ts';
import { allowance, ended, fitting, must, opened, permissionIn } from './rows.ts';

const PAGE = 'protocol/v1/tool-calls#requesting-permission';

async function asksInForm(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const { asked, done } = await permissionIn(context, agent, sessionId);
  const { options, toolCall } = asked.params;
  expectEqual(asked.params.sessionId, sessionId, 'its sessionId', asked.frame);
  expectEqual(
    new Set(options.map(({ optionId }: Json) => optionId)).size,
    options.length,
    'the number of different options',
    asked.frame,
  );
  expect(toolCall?.toolCallId, 'it names no tool call', asked.frame);
  fitting(peer.frames);
  asked.answer({ outcome: { outcome: 'cancelled' } });
  await done;
}

async function allowedRuns(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const { asked, done } = await permissionIn(context, agent, sessionId);
  asked.answer(allowance(asked));
  const { frame } = await done;
  const updates = agent.updatesOf(sessionId, asked.params.toolCall.toolCallId, asked.frame);
  const completed = updates.find((update) => updateOf(update).status === 'completed');
  expect(completed !== undefined, 'the tool call was not completed', updates.at(-1) ?? frame);
  await peer.barrier();
}

/** Answers, and expects that the turn ends, the tool does not run and the agent lives. */
const isNoPermission =
  (answer: (asked: Awaited<ReturnType<typeof permissionIn>>['asked']) => void) => async (context: Context) => {
    const { agent, sessionId } = await opened(context);
    const { asked, done } = await permissionIn(context, agent, sessionId);
    answer(asked);
    await done;
    const updates = agent.updatesOf(sessionId, asked.params.toolCall.toolCallId, asked.frame);
    const ran = updates.find((update) => updateOf(update).status === 'completed');
    expect(ran === undefined, 'the tool ran without permission', ran);
    ended(await agent.say(sessionId, CUES.say));
  };

const GARBAGE = [
  {},
  { outcome: 5 },
  { outcome: { outcome: 'selected' } },
  { outcome: { outcome: 'maybe', optionId: 'x' } },
];

async function garbageIsNoPermission(context: Context) {
  for (const result of GARBAGE) await isNoPermission((asked) => asked.answer(result))(context);
}

async function twiceIsOnce(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const { asked, done } = await permissionIn(context, agent, sessionId);
  asked.answer(allowance(asked));
  asked.answer(allowance(asked));
  ended(await done);
  await peer.barrier();
  const told = context.model.told.filter(({ last }) => last.results.length > 0);
  expect(told.length <= 1, 'the model was told the result twice', {
    text: JSON.stringify(told.map(({ last }) => last.results)),
  });
}

const needs = ['model'] as const;

export const PERMISSION: readonly Check[] = [
  must(
    'ACP-PERMIT-1',
    PAGE,
    'A permission request names its session, its tool call and options with ids of their own.',
    asksInForm,
    { needs },
  ),
  must('ACP-PERMIT-2', PAGE, 'When it is given, the tool call is completed.', allowedRuns, { needs }),
  must(
    'ACP-PERMIT-3',
    PAGE,
    'The outcome cancelled is no permission, and the turn ends.',
    isNoPermission((asked) => asked.answer({ outcome: { outcome: 'cancelled' } })),
    { needs },
  ),
  must(
    'ACP-PERMIT-4',
    PAGE,
    "A client's error is no permission, and the turn ends.",
    isNoPermission((asked) => asked.refuse(-32603, 'The window was closed.')),
    { needs },
  ),
  must(
    'ACP-PERMIT-5',
    PAGE,
    'An option that was not offered is no permission, and the turn ends.',
    isNoPermission((asked) => asked.answer({ outcome: { outcome: 'selected', optionId: 'no-such-option' } })),
    { needs },
  ),
  must('ACP-PERMIT-6', PAGE, 'An answer in no known form is no permission, and the turn ends.', garbageIsNoPermission, {
    needs,
  }),
  must('ACP-PERMIT-7', PAGE, 'A second answer to the same request changes nothing.', twiceIsOnce, { needs }),
];
