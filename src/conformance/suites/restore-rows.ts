import { type Agent, updateOf } from '../agent.ts';
import type { Context } from '../context.ts';
import type { ModelRequest } from '../model/conversation.ts';
import { CUES } from '../model/script.ts';
import { CANCEL_REASON, RESTORE } from '../names.ts';
import type { Asked, Reply } from '../peer.ts';
import type { Need } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Frame, Json } from '../wire.ts';
import { opened } from './rows.ts';

export const needs: readonly Need[] = ['question', 'load'];

/** Answers by the question's index, as the person's client gives them. */
export const answers = (...texts: string[]) => ({
  outcome: { outcome: 'selected', optionId: 'proceed_once' },
  answers: Object.fromEntries(texts.map((text, index) => [index, text])),
});
export const DECLINE = { outcome: { outcome: 'selected', optionId: 'cancel' } };
export const CANCELLED = { outcome: { outcome: 'cancelled' } };
export const unattended = (reason: 'timeout' | 'session_closed') => ({
  ...CANCELLED,
  _meta: { [CANCEL_REASON]: reason },
});

/** A question that was asked by a process which was killed, and the process after it. */
export interface Hung {
  readonly agent: Agent;
  readonly sessionId: string;
  /** The request that died with the first process. */
  readonly before: Asked;
  readonly toolCallId: string;
}

/** Has the model ask, kills the agent while the person thinks, and starts another. */
export async function hung(context: Context, cue: string = CUES.askOne): Promise<Hung> {
  const { agent, sessionId } = await opened(context);
  const { asked } = await agent.askIn(sessionId, cue);
  await context.crash(agent);
  return { agent: await context.agent(), sessionId, before: asked, toolCallId: asked.params.toolCall.toolCallId };
}

/** A question that hung, was loaded and is asked again. */
export async function askedAgain(context: Context, cue: string = CUES.askOne) {
  const question = await hung(context, cue);
  hinted(await question.agent.load(question.sessionId), true);
  return { ...question, ...(await question.agent.restore(question.sessionId)) };
}

/** Expects that a load or resume succeeded, and says that a question can be asked again, or says nothing of it. */
export function hinted({ frame, result, error }: Reply, wanted: boolean): void {
  expect(error === undefined, 'it was refused', frame);
  const hint = result?._meta?.[RESTORE];
  expectEqual(hint, wanted ? true : undefined, `_meta["${RESTORE}"]`, frame);
}

/** The state of every tool call that was shown since a frame, by its id. */
export function calls(updates: readonly Frame[]): Map<string, string> {
  const states = new Map<string, string>();
  for (const update of updates.map(updateOf)) {
    if (/^tool_call/.test(update?.sessionUpdate) && update.status) states.set(update.toolCallId, update.status);
  }
  return states;
}

/** Expects that the history of a load, all of which came, leaves exactly these calls open. */
export function leavesOpen(agent: Agent, sessionId: string, wanted: readonly string[], evidence: Frame): void {
  const open = [...calls(agent.updates(sessionId))].filter(([, status]) => !['completed', 'failed'].includes(status));
  expectEqual(
    open.map(([id]) => id),
    wanted,
    'the list of open calls',
    agent.updates(sessionId).at(-1) ?? evidence,
  );
}

/** Loads in a further process and expects that the question is open still, or is not any more. */
export async function later(
  context: Context,
  sessionId: string,
  open: boolean,
): Promise<{ agent: Agent; states: Map<string, string> }> {
  const agent = await context.agent();
  const reply = await agent.load(sessionId);
  hinted(reply, open);
  await agent.peer.barrier();
  return { agent, states: calls(agent.updates(sessionId)) };
}

/** Expects that a further process asks again, and that its answer reaches the model. */
export async function asksLater(context: Context, sessionId: string): Promise<void> {
  const { agent } = await later(context, sessionId, true);
  const { asked, done } = await agent.restore(sessionId);
  const before = context.model.requests.length;
  asked.answer(answers('Blue'));
  const { frame } = await done;
  expectEqual(tellings(context, 'Blue', before).length, 1, 'how often the model was told the answer', frame);
}

/** Requests to the model, from the so manieth on, whose newest part is a tool's result with this text. */
export function tellings({ model }: Context, text: string, from = 0): ModelRequest[] {
  return model.requests.slice(from).filter(({ last }) => last.results.some((result) => result.text.includes(text)));
}

/** Expects that nothing was asked, nobody and no model, since then. */
export function quiet({ model }: Context, agent: Agent, requests: number, evidence: Frame): void {
  expect(agent.peer.unanswered.length === 0, 'it asks a person', agent.peer.unanswered[0]);
  expectEqual(model.requests.length, requests, 'the number of requests to the model', evidence);
}

/** The user's words in the history that a load brought. */
export const userWords = (agent: Agent, sessionId: string): string[] =>
  agent.updates(sessionId).flatMap((frame) => {
    const update: Json = updateOf(frame);
    return update?.sessionUpdate === 'user_message_chunk' ? [update.content?.text] : [];
  });
