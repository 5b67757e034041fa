import { randomUUID } from 'node:crypto';
import type * as acp from '@agentclientprotocol/sdk';
import { HangUpError, RequestError } from '../acp/errors.ts';
import * as methods from '../acp/methods.ts';
import type { Log } from '../log.ts';
import { promptRequestMeta } from '../meta/daemon.ts';
import { BRANCH_POINT, PROMPT_CANCELLED } from '../meta/keys.ts';
import { type Meta, own } from '../meta/meta.ts';
import { MAX_PENDING_PROMPTS, type SessionEntry, type Turn, type TurnKind } from './entry.ts';
import type { Interactions, TurnEnd } from './interactions.ts';
import { type AdmittedPrompt, DaemonError, shuttingDown } from './ports.ts';

export interface PromptToAdmit {
  readonly kind: TurnKind;
  readonly prompt: readonly acp.ContentBlock[];
  readonly meta: Meta;
  readonly originatorClientId: string | undefined;
}

/** Runs each session's prompts one after the other, and says on its events how they went. */
export class Turns {
  readonly #interactions: Interactions;
  readonly #log: Log;
  readonly #onIdle: (entry: SessionEntry) => void;
  #closed = false;

  /** `onIdle` is called when a session's last prompt is over. */
  constructor(interactions: Interactions, log: Log, onIdle: (entry: SessionEntry) => void) {
    this.#interactions = interactions;
    this.#log = log;
    this.#onIdle = onIdle;
  }

  /** Starts a prompt, or lets it wait for its turn. Throws `DaemonError` 503 when too many wait, and after `close`. */
  admit(entry: SessionEntry, { kind, prompt, meta, originatorClientId }: PromptToAdmit): AdmittedPrompt {
    if (this.#closed) throw shuttingDown();
    const promptId = randomUUID();
    const turn: Turn = {
      promptId,
      kind,
      prompt,
      meta,
      originatorClientId,
      waited: false,
      firstEventId: 0,
      startedAt: 0,
      cancelled: false,
    };
    const admitted = { promptId, lastEventId: entry.events.lastEventId, eventEpoch: entry.events.epoch };
    const { sessionId } = entry;
    switch (entry.queue.place({ promptId, prompt: turn })) {
      case 'full':
        throw new DaemonError(503, `Session ${sessionId} already holds ${MAX_PENDING_PROMPTS} prompts`, {
          code: 'prompt_queue_full',
          details: { sessionId, limit: MAX_PENDING_PROMPTS },
          retryAfter: 5,
        });
      case 'queued':
        turn.waited = true;
        entry.publish('pending_prompt_added', { sessionId, promptId, text: textOf(turn), queuedAt: Date.now() }, turn);
        break;
      case 'started':
        void this.#run(entry, turn);
    }
    return admitted;
  }

  /** Admits no prompt any more, a load's that is under way included. */
  close(): void {
    this.#closed = true;
  }

  /** Ends every prompt of a session whose child will not answer any more. */
  abandon(entry: SessionEntry, message: string, code?: string): void {
    const { sessionId } = entry;
    for (const { prompt: turn } of entry.queue.clear()) {
      const { promptId } = turn;
      entry.hasTurnError = true;
      entry.publish('turn_error', { sessionId, message, ...(code !== undefined && { code }), promptId }, turn);
      if (turn.startedAt === 0) continue;
      if (code !== undefined) entry.publish('prompt_cancelled', { sessionId }, turn);
      entry.settled = this.#interactions.turnEnded(sessionId, turn.kind, 'failed');
    }
  }

  async #run(entry: SessionEntry, turn: Turn): Promise<void> {
    const { sessionId } = entry;
    turn.firstEventId = entry.events.lastEventId + 1;
    turn.startedAt = Date.now();
    const { promptId } = turn;
    if (turn.waited) entry.publish('pending_prompt_started', { sessionId, promptId, text: textOf(turn) }, turn);
    if (turn.kind === 'ordinary') echo(entry, turn);
    try {
      // What the turn before gave up must not be found by one that asks again.
      if (turn.kind === 'restore') await entry.settled;
      const response = await entry.channel.connection.request(methods.prompt, {
        sessionId,
        prompt: [...turn.prompt],
        _meta: { ...turn.meta, ...promptRequestMeta(turn.kind, tracked(sessionId, turn)) },
      });
      if (entry.activeTurn === turn) this.#completed(entry, turn, response);
    } catch (error) {
      if (entry.activeTurn === turn) this.#failed(entry, turn, error);
    }
  }

  #completed(entry: SessionEntry, turn: Turn, { stopReason, _meta }: acp.PromptResponse): void {
    const { sessionId } = entry;
    const { promptId } = turn;
    const branchPoint = own(_meta, BRANCH_POINT);
    const promptCancelled = own(_meta, PROMPT_CANCELLED);
    entry.hasTurnError = false;
    entry.publish(
      'turn_complete',
      {
        sessionId,
        stopReason,
        promptId,
        ...(branchPoint !== undefined && { branchPoint }),
        ...(promptCancelled !== undefined && { promptCancelled }),
      },
      turn,
    );
    // A turn that ended early without a person's word may have left its answers unused.
    const unfinished = stopReason === 'cancelled' ? 'failed' : 'completed';
    this.#ended(entry, turn, turn.cancelled ? 'cancelled_by_person' : unfinished);
  }

  #failed(entry: SessionEntry, turn: Turn, error: unknown): void {
    const { sessionId } = entry;
    const { promptId } = turn;
    // Its owner ends all prompts of a dead child at once.
    if (error instanceof HangUpError) return;
    if (!(error instanceof RequestError)) this.#log.error('a prompt failed', error);
    const message = error instanceof RequestError ? error.message : 'The agent could not be reached';
    const code = error instanceof RequestError ? { code: error.code } : {};
    entry.hasTurnError = true;
    entry.publish('turn_error', { sessionId, message, ...code, promptId }, turn);
    this.#ended(entry, turn, turn.cancelled ? 'cancelled_by_person' : 'failed');
  }

  #ended(entry: SessionEntry, turn: Turn, end: TurnEnd): void {
    const { sessionId } = entry;
    const { promptId } = turn;
    entry.updatedAt = new Date().toISOString();
    entry.settled = this.#interactions.turnEnded(sessionId, turn.kind, end);
    if (turn.waited) {
      const state = turn.cancelled ? 'cancelled' : entry.hasTurnError ? 'failed' : 'completed';
      entry.publish('pending_prompt_completed', { sessionId, promptId, state }, turn);
    }
    const next = entry.queue.advance();
    if (next) void this.#run(entry, next.prompt);
    else this.#onIdle(entry);
  }
}

/** Subscribers see what was asked, as the child does not repeat it. */
function echo(entry: SessionEntry, turn: Turn): void {
  const { sessionId } = entry;
  for (const content of turn.prompt) {
    const update = {
      sessionUpdate: 'user_message_chunk',
      content,
      _meta: { serverTimestamp: Date.now(), source: 'bridge-echo' },
    };
    entry.publish('session_update', { sessionId, update }, turn);
  }
}

function tracked(sessionId: string, { promptId, originatorClientId }: Turn) {
  return { sessionId, promptId, ...(originatorClientId !== undefined && { originatorClientId }) };
}

function textOf({ prompt }: Turn): string {
  return prompt.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
}
