import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { CUES } from '../model/script.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { must, opened, permissionIn, should } from './rows.ts';

/** How long a helper may need to see that the agent is gone, in ms. */
const LINGER = 2_000;
/** In ms. */
const soon = ({ patience }: Context): number => Math.min(5_000, patience);

async function endsWithStdin(context: Context) {
  const agent = await context.agent();
  await agent.hangUp(soon(context));
}

async function endsWell(context: Context) {
  const agent = await context.agent();
  expectEqual(await agent.hangUp(soon(context)), { code: 0, signal: null }, 'how it ended');
}

async function endsWhileSpeaking(context: Context) {
  const { agent, sessionId } = await opened(context);
  agent.start(sessionId, CUES.slowly);
  await context.model.asked(1);
  await agent.hangUp(soon(context));
}

async function endsWhileAsking(context: Context) {
  const { agent, sessionId } = await opened(context);
  await permissionIn(context, agent, sessionId);
  await agent.hangUp(soon(context));
}

async function leavesNobody(context: Context) {
  const { agent } = await opened(context);
  await agent.hangUp(soon(context));
  const deadline = performance.now() + LINGER;
  while (agent.program.leavesSomebody && performance.now() < deadline) await pause(20);
  expect(!agent.program.leavesSomebody, 'processes that it started still run');
}

async function obeysSigterm(context: Context) {
  const { agent } = await opened(context);
  await agent.stop('SIGTERM');
}

const EOF = 'protocol/v1/transports';

export const END: readonly Check[] = [
  must('ACP-END-1', EOF, 'The agent ends within 5 s when its stdin does.', endsWithStdin),
  should('ACP-END-2', EOF, 'It ends with exit code 0.', endsWell),
  must('ACP-END-3', EOF, 'It ends so even while the model speaks.', endsWhileSpeaking, { needs: ['model'] }),
  must('ACP-END-4', EOF, 'It ends so even while a permission request waits.', endsWhileAsking, { needs: ['model'] }),
  must('ACP-END-5', EOF, 'No process that it started outlives it by 2 s.', leavesNobody, { needs: ['session'] }),
  should('ACP-END-6', EOF, 'SIGTERM ends it.', obeysSigterm, { needs: ['session'] }),
];
