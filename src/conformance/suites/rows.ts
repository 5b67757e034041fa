import type { Agent } from '../agent.ts';
import type { Context } from '../context.ts';
import { CUES, shellOf } from '../model/script.ts';
import { QUESTION_TOOL } from '../names.ts';
import type { Asked, Reply } from '../peer.ts';
import { firstMisfit } from '../schema.ts';
import type { Check, Need, Profile } from '../suite.ts';
import { expect } from '../verdicts.ts';
import type { Frame } from '../wire.ts';

type Run = (context: Context) => Promise<void>;

interface More {
  readonly needs?: readonly Need[];
  readonly profile?: Profile;
}

/** A check whose requirement every agent has to meet. */
export const must = (id: string, source: string, requirement: string, run: Run, more: More = {}): Check => ({
  id,
  source,
  requirement,
  level: 'must',
  profile: more.profile ?? 'core',
  needs: more.needs ?? ['agent'],
  run,
});

/** A check whose requirement an agent had better meet. */
export const should = (id: string, source: string, requirement: string, run: Run, more: More = {}): Check => ({
  ...must(id, source, requirement, run, more),
  level: 'should',
});

/** An agent with a session. */
export async function opened(context: Context): Promise<{ agent: Agent; peer: Agent['peer']; sessionId: string }> {
  const agent = await context.agent();
  return { agent, peer: agent.peer, sessionId: await agent.newSession() };
}

/** A session that has had these prompts, closed with the process that had it; another process starts. */
export async function reopened(
  context: Context,
  prompts: readonly string[],
): Promise<{ agent: Agent; sessionId: string }> {
  const { agent, sessionId } = await opened(context);
  for (const prompt of prompts) ended(await agent.say(sessionId, prompt));
  await agent.hangUp();
  return { agent: await context.agent(), sessionId };
}

const STOP_REASONS = ['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled'];

/** Expects that a turn ended as turns end, or as `wanted`. */
export function ended({ frame, result, error }: Reply, wanted?: string): void {
  expect(error === undefined, 'the prompt was refused', frame);
  expect(STOP_REASONS.includes(result?.stopReason), `stopReason is ${JSON.stringify(result?.stopReason)}`, frame);
  expect(wanted === undefined || result.stopReason === wanted, `stopReason is not ${wanted}`, frame);
}

/** Expects an error with one of these codes. */
export function refused({ frame, error }: Reply, ...codes: number[]): void {
  expect(error !== undefined, 'it is not an error', frame);
  expect(
    codes.length === 0 || codes.includes(error.code),
    `the error's code is ${error.code}, not ${codes.join(' or ')}`,
    frame,
  );
}

/** Expects that what passed fits the schema. */
export function fitting(frames: readonly Frame[]): void {
  const misfit = firstMisfit(frames);
  expect(misfit === undefined, `it does not fit the schema: ${misfit?.fault}`, misfit?.frame);
}

/** Starts a turn in which a tool needs a person, and waits for the request; skips where none comes. */
export async function permissionIn(context: Context, agent: Agent, sessionId: string) {
  const before = context.model.requests.length;
  const cue = context.findings.tools.includes(QUESTION_TOOL) ? CUES.askOne : CUES.shell;
  if (cue === CUES.shell && !shellOf(context.findings.tools)) context.skip('it has no tool that the kit can script');
  const turn = agent.start(sessionId, cue);
  const asked = await Promise.race([agent.peer.permission(), turn.done.then(() => undefined)]);
  if (asked === undefined) {
    expect(context.model.requests.length > before, 'the model was not asked');
    return context.skip('it asks for no permission in its default mode');
  }
  return { ...turn, asked };
}

/** The option of a permission request that lets the tool run, and what a person would add to it. */
export function allowance({ params }: Asked): object {
  const option = params.options.find(({ kind }: { kind: string }) => kind === 'allow_once') ?? params.options[0];
  return { outcome: { outcome: 'selected', optionId: option.optionId }, answers: { 0: 'Red' } };
}
