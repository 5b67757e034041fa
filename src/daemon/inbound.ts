import type * as acp from '@agentclientprotocol/sdk';
import type * as methods from '../acp/methods.ts';
import type { AfterResponse } from '../acp/serving.ts';
import { failpoint } from '../failpoint.ts';
import { isRecord } from '../meta/meta.ts';
import type { Channel, ChannelHandlers } from './channel.ts';
import type { Interactions } from './interactions.ts';
import type { Registry } from './registry.ts';
import { unattendedReply } from './replies.ts';

/** What the child says and asks, handed to the session it is about. */
export class Inbound implements ChannelHandlers {
  readonly #registry: Registry;
  readonly #interactions: Interactions;
  readonly #onGone: (channel: Channel, reason: string) => void;
  /** Replies to the child that are not on the wire yet. */
  readonly #replying = new Set<Promise<void>>();

  constructor(registry: Registry, interactions: Interactions, onGone: (channel: Channel, reason: string) => void) {
    this.#registry = registry;
    this.#interactions = interactions;
    this.#onGone = onGone;
  }

  update(params: acp.SessionNotification): void {
    this.#registry.known(params.sessionId)?.update(params);
  }

  async permission(
    params: acp.RequestPermissionRequest,
    signal: AbortSignal,
    afterResponse: AfterResponse,
  ): Promise<acp.RequestPermissionResponse> {
    const entry = this.#registry.known(params.sessionId);
    // Nobody could see it, let alone answer.
    if (!entry) return unattendedReply('session_closed');
    const turn = entry.activeTurn;
    const reply = await this.#interactions.open(params, {
      promptId: turn?.promptId,
      originatorClientId: turn?.originatorClientId,
      voters: entry.clients.ids(),
      reissued: turn?.kind === 'restore',
      signal,
    });
    // Only now: thousands of questions may wait, and what waits should cost nothing here.
    this.#track(signal, afterResponse);
    afterResponse(() => failpoint('reply_sent'));
    return reply;
  }

  activeWork({ sessions }: methods.ActiveWorkReport): void {
    if (!Array.isArray(sessions)) return;
    for (const report of sessions) {
      if (!isRecord(report) || typeof report['sessionId'] !== 'string') continue;
      const { sessionId, hasRunningBackgroundTasks, holds } = report;
      const held = Array.isArray(holds) ? holds.length : 0;
      this.#registry.known(sessionId as string)?.reportWork(hasRunningBackgroundTasks === true, held);
    }
  }

  suggestion({ sessionId, suggestion, promptId }: methods.PromptSuggestion): void {
    this.#registry.known(sessionId)?.publish('followup_suggestion', { sessionId, suggestion, promptId }, { promptId });
  }

  hasQueuedPrompt(sessionId: string): boolean {
    return (this.#registry.known(sessionId)?.queue.waiting.length ?? 0) > 0;
  }

  gone(channel: Channel, reason: string): void {
    this.#onGone(channel, reason);
  }

  /** Resolves when every reply that is decided by now was sent, or will never be. */
  async replied(): Promise<void> {
    // A handler gets to know of the decision some promise callbacks after it was made.
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all(this.#replying);
  }

  #track(signal: AbortSignal, afterResponse: AfterResponse): void {
    const sent = new Promise<void>((resolve) => {
      afterResponse(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    }).finally(() => this.#replying.delete(sent));
    this.#replying.add(sent);
  }
}
