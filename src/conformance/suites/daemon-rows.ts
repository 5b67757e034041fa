import { randomUUID } from 'node:crypto';
import type { Context } from '../context.ts';
import type { Daemon, Session, Waiting } from '../daemon.ts';
import type { Events } from '../events.ts';
import type { Answer } from '../http.ts';
import { CUES } from '../model/script.ts';
import type { FakeModel } from '../model/server.ts';
import type { Check, Need } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Json } from '../wire.ts';
import { must } from './rows.ts';

type Run = (context: Context) => Promise<void>;
type Row = readonly [id: string, source: string, requirement: string, run: Run];

/** Checks of one need, whose requirements every daemon has to meet. */
export const core = (need: Need, ...rows: Row[]): Check[] => checks(need, 'core', rows);
/** Likewise, of what qwen-acp promises beyond qwen-code. */
export const better = (need: Need, ...rows: Row[]): Check[] => checks(need, 'better', rows);

const checks = (need: Need, profile: Check['profile'], rows: readonly Row[]): Check[] =>
  rows.map(([id, source, requirement, run]) =>
    must(`DAEMON-${id}`, source, requirement, run, { needs: [need], profile }),
  );

export const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Votes as a person's client sends them. */
export const submit = (...texts: unknown[]) => ({
  outcome: { outcome: 'selected', optionId: 'proceed_once' },
  answers: Object.fromEntries(texts.map((text, index) => [index, text])),
});
export const DECLINE = { outcome: { outcome: 'selected', optionId: 'cancel' } };
export const CANCELLED = { outcome: { outcome: 'cancelled' } };

/** A word that no other check uses, to find again what the shared model was told. */
export const nonce = (): string => `kit-${randomUUID().slice(0, 8)}`;

/** The shared daemon, and a session there that is closed with the check. */
export interface Stage {
  readonly daemon: Daemon;
  readonly model: FakeModel;
  readonly session: Session;
}

export async function stage(context: Context): Promise<Stage> {
  const daemon = await context.shared.daemon();
  const session = await daemon.newSession();
  closing(context, daemon, session);
  return { daemon, session, model: await context.shared.model() };
}

/** Has a session closed with the check, so that the daemon does not run out of room for others. */
export function closing(context: Context, daemon: Daemon, session: Session): void {
  context.own(async () => void (await daemon.delete(session)));
}

/** A subscription that ends with the check. */
export async function listen(
  context: Context,
  daemon: Daemon,
  sessionId: string,
  more: Parameters<Daemon['events']>[1] = {},
): Promise<Events> {
  const events = await daemon.events(sessionId, more);
  context.own(async () => events.close());
  return events;
}

/** A question that waits on the shared daemon, and somebody who listens. */
export async function asking(context: Context, cue: string = CUES.askOne) {
  const on = await stage(context);
  const events = await listen(context, on.daemon, on.session.id);
  const waiting = await on.daemon.ask(on.session, cue);
  return { ...on, events, waiting, clientId: on.session.clientId };
}

/** A question that hung, loaded by a client on the shared daemon. */
export async function askedAgain(context: Context) {
  const daemon = await context.shared.daemon();
  const before = await context.shared.hung();
  closing(context, daemon, before);
  const loaded = await daemon.load(before.id, 'kit-loader');
  expectStatus(loaded, 200);
  const session = { id: before.id, clientId: loaded.body.clientId };
  const waiting: Waiting = { ...session, admitted: loaded, ...(await daemon.waiting(before.id)) };
  return { daemon, model: await context.shared.model(), before, loaded, session, waiting };
}

export function expectStatus(answer: Answer, status: number, code?: string): void {
  expectEqual(answer.status, status, 'the status', answer);
  if (code !== undefined) expectEqual(answer.body?.code, code, 'the code', answer);
}

/** Expects that this question waits still. */
export async function stillWaits(daemon: Daemon, { id, requestId }: Waiting): Promise<void> {
  const answer = await daemon.status(id);
  const ids = answer.body?.pendingInteractions?.map((one: Json) => one.requestId);
  expectEqual(ids, [requestId], 'the list of ids of what waits', answer);
}

/** Expects that nothing waits, and no turn runs. */
export async function isIdle(daemon: Daemon, sessionId: string): Promise<void> {
  const answer = await daemon.status(sessionId);
  expectStatus(answer, 200);
  expectEqual(answer.body.hasActivePrompt, false, 'hasActivePrompt', answer);
  expectEqual(answer.body.pendingInteractionCount, 0, 'pendingInteractionCount', answer);
}

/** Votes, and expects that it is accepted. */
export async function accepted(daemon: Daemon, waiting: Waiting, vote: unknown): Promise<void> {
  const answer = await daemon.vote(waiting, vote);
  expectStatus(answer, 200);
  expectEqual(answer.body, {}, 'the body', answer);
}

/** How often the model was given this as the newest result of a tool. */
export const timesTold = (model: FakeModel, text: string): number =>
  model.requests.filter(({ last }) => last.results.some((result) => result.text.includes(text))).length;

/** How often it was given this as the newest words of a user. */
export const timesSaid = (model: FakeModel, text: string): number =>
  model.requests.filter(({ last, tools }) => tools.length > 0 && last.texts.some((one) => one.includes(text))).length;

/** Votes with words of its own, and expects that they reach the model once and that the turn ends. */
export async function answersCount(daemon: Daemon, model: FakeModel, waiting: Waiting): Promise<void> {
  const word = nonce();
  await accepted(daemon, waiting, submit(word));
  const status = await daemon.idle(waiting.id);
  expectEqual(timesTold(model, word), 1, 'how often the model was told the answer', status);
}

/** Expects that a load by a client has the session ask again. */
export async function asksOnLoad(daemon: Daemon, sessionId: string, not?: string): Promise<Waiting> {
  const loaded = await daemon.load(sessionId, 'kit-loader');
  expectStatus(loaded, 200);
  expectEqual(loaded.body.hasActivePrompt, true, 'hasActivePrompt', loaded);
  const found = await daemon.waiting(sessionId, not);
  return { id: sessionId, clientId: loaded.body.clientId, admitted: loaded, ...found };
}

/** Expects that a load by a client asks nobody. */
export async function loadsQuietly(daemon: Daemon, sessionId: string): Promise<Answer> {
  const loaded = await daemon.load(sessionId, 'kit-loader');
  expectStatus(loaded, 200);
  expect(loaded.body.hasActivePrompt !== true, 'a turn runs after the load', loaded);
  await isIdle(daemon, sessionId);
  return loaded;
}
