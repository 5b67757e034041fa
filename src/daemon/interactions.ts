import { randomUUID } from 'node:crypto';
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { failpoint } from '../failpoint.ts';
import type { Log } from '../log.ts';
import type { Journal, JournalKey } from './journal.ts';
import { journalKey } from './journal.ts';
import type { Ballot, ForbiddenReason, Tally } from './mediator.ts';
import { mediate } from './mediator.ts';
import type { Caller, PendingInteraction, PermissionStrategy, Resolution, Vote } from './ports.ts';
import { DaemonError } from './ports.ts';
import type { InteractionEvent, PermissionReply, UnattendedReason } from './replies.ts';
import { eventOf, replyTo, requestEvent, resolvedEvent, unattendedReply } from './replies.ts';
import { checkVote, questionsOf } from './votes.ts';
import { type TurnRecord, type Waiting, WaitingRequests } from './waiting.ts';

export interface InteractionOptions {
  readonly strategy: PermissionStrategy;
  readonly consensusQuorum: number | undefined;
  /** Milliseconds; 0 waits for ever. */
  readonly timeoutMs: number;
  readonly maxPending: number;
  readonly maxPendingPerSession: number;
  readonly publish: (event: InteractionEvent) => void;
  readonly log: Log;
  readonly now?: () => number;
}

/** The turn that a request belongs to. */
export interface InteractionContext {
  readonly promptId: string | undefined;
  readonly originatorClientId: string | undefined;
  /** Client ids that are attached now. */
  readonly voters: ReadonlySet<string>;
  /** A restore turn asks: the request may have been answered before. */
  readonly reissued: boolean;
  /** Aborts when the child withdraws the request or is gone. */
  readonly signal?: AbortSignal;
}

/** How a turn of a session ended. `failed`: nobody knows what the child has written. */
export type TurnEnd = 'completed' | 'cancelled_by_person' | 'failed';

/** The longest that a timer can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The requests of all sessions that wait for a person. A vote that decides is in the journal before it counts, and a
 * request that is asked again is answered from there.
 */
export class Interactions {
  readonly #options: InteractionOptions;
  readonly #journal: Journal;
  readonly #now: () => number;
  readonly #waiting = new WaitingRequests();
  readonly #turns = new Map<string, TurnRecord>();

  constructor(options: InteractionOptions, journal: Journal) {
    this.#options = options;
    this.#journal = journal;
    this.#now = options.now ?? Date.now;
  }

  /**
   * A request of the child; resolves with the reply to send. Rejects with the signal's reason when the child no longer
   * waits. Over the caps it is unattended at once: nothing is decided, it can be asked again.
   */
  async open(request: RequestPermissionRequest, context: InteractionContext): Promise<PermissionReply> {
    const turn = this.#turn(request.sessionId);
    const key = journalKey(request);
    if (key && context.reissued) {
      const vote = await this.#journaled(request, key);
      if (vote) return replyTo(vote);
    }
    context.signal?.throwIfAborted();
    const { maxPending, maxPendingPerSession } = this.#options;
    if (this.#waiting.size >= maxPending || this.#waiting.of(request.sessionId).length >= maxPendingPerSession) {
      this.#options.log.warn('too many requests wait for a person; one was put off');
      turn.undecided = true;
      return unattendedReply('session_closed');
    }
    return this.#wait(request, context, key, turn);
  }

  /** What waits in a session, the oldest first. */
  pending(sessionId: string): readonly PendingInteraction[] {
    return this.#waiting.of(sessionId).map(({ pending }) => pending);
  }

  get pendingCount(): number {
    return this.#waiting.size;
  }

  /**
   * Counts a vote. Resolves once it is accepted: recorded or, where it decides, on disk. Throws `DaemonError` 400, 403,
   * 404, or 503 where the journal cannot be written; then the request still waits.
   */
  async vote(sessionId: string | undefined, requestId: string, vote: Vote, caller: Caller): Promise<void> {
    const waiting = this.#waiting.find(sessionId, requestId);
    if (!waiting) throw this.#notPending(sessionId, requestId);
    const checked = checkVote(waiting.pending.request, requestId, vote);
    if (!checked.ok) throw checked.error;
    failpoint('vote_received');
    // Another vote may be about to decide; whether it does, only the disk knows.
    while (waiting.committing !== undefined) await waiting.committing;
    const verdict = mediate(this.#ballot(waiting), checked.vote, caller);
    switch (verdict.kind) {
      case 'already_resolved':
        throw this.#notPending(sessionId, requestId);
      case 'forbidden':
        throw this.#forbidden(waiting.pending, verdict.reason, caller);
      case 'partial':
        waiting.votes = verdict.votes;
        this.#announceTally(waiting.pending, verdict.tally, caller);
        return;
      case 'resolve':
        await this.#decide(waiting, checked.vote, caller);
    }
  }

  /** Ends what waits in a session without a decision. A vote that is on its way to the disk still counts. */
  async resolveSession(sessionId: string, reason: UnattendedReason): Promise<void> {
    await this.#endAll(sessionId, { kind: 'unattended', reason });
  }

  /** The child is gone, and what it asked with it. */
  async withdrawSession(sessionId: string): Promise<void> {
    await this.#endAll(sessionId, { kind: 'withdrawn' });
    this.#turns.delete(sessionId);
  }

  /**
   * A turn is over. What was answered in it is forgotten once the child has it in its transcript, or when a person
   * cancelled. `kind` is that of the prompt.
   */
  async turnEnded(sessionId: string, kind: 'ordinary' | 'restore' | 'continue', end: TurnEnd): Promise<void> {
    const turn = this.#turns.get(sessionId);
    this.#turns.delete(sessionId);
    // A restore turn that asked nothing has settled nothing; any other has closed what was open.
    const settled = end === 'completed' && !turn?.undecided && (kind !== 'restore' || turn !== undefined);
    if (settled || end === 'cancelled_by_person') await this.forgetAnswers(sessionId);
  }

  /** For a load that could ask and has nothing to ask, and for a person's cancel: no answer of the session is waited for. */
  async forgetAnswers(sessionId: string): Promise<void> {
    try {
      await this.#journal.forgetSession(sessionId);
    } catch (error) {
      this.#options.log.warn('answers could not be removed from the journal', error);
    }
  }

  async #journaled(request: RequestPermissionRequest, key: JournalKey): Promise<Vote | undefined> {
    const vote = await this.#journal.find(key);
    if (!vote) return undefined;
    const checked = checkVote(request, '', vote);
    return checked.ok ? checked.vote : undefined;
  }

  #wait(
    request: RequestPermissionRequest,
    context: InteractionContext,
    key: JournalKey | undefined,
    turn: TurnRecord,
  ): Promise<PermissionReply> {
    const pending: PendingInteraction = {
      requestId: randomUUID(),
      sessionId: request.sessionId,
      promptId: context.promptId,
      originatorClientId: context.originatorClientId,
      kind: questionsOf(request) ? 'user_question' : 'permission',
      createdAt: this.#now(),
      request,
      voters: new Set(context.voters),
    };
    const { signal } = context;
    return new Promise<PermissionReply>((resolve, reject) => {
      const withdraw = () => void this.#endUndecided(waiting, { kind: 'withdrawn' });
      const settle = (resolution: Resolution) => {
        signal?.removeEventListener('abort', withdraw);
        if (resolution.kind === 'voted') resolve(replyTo(resolution.vote));
        else if (resolution.kind === 'unattended') resolve(unattendedReply(resolution.reason));
        else reject(signal?.reason ?? new Error('the request was withdrawn'));
      };
      const open = { votes: new Map(), timer: undefined, committing: undefined };
      const waiting: Waiting = { pending, key, turn, settle, ...open };
      signal?.addEventListener('abort', withdraw, { once: true });
      this.#waiting.add(waiting);
      this.#startTimer(waiting);
      failpoint('question_created');
      this.#options.publish(requestEvent(pending));
      failpoint('request_event_sent');
    });
  }

  #decide(waiting: Waiting, vote: Vote, caller: Caller): Promise<void> {
    clearTimeout(waiting.timer);
    const commit = this.#commit(waiting, vote, caller);
    waiting.committing = commit.catch(() => {});
    return commit;
  }

  async #commit(waiting: Waiting, vote: Vote, caller: Caller): Promise<void> {
    try {
      await (waiting.key && this.#journal.record(waiting.key, vote));
      failpoint('journal_written');
      waiting.committing = undefined;
    } catch (cause) {
      waiting.committing = undefined;
      this.#startTimer(waiting);
      throw new DaemonError(503, 'The vote could not be stored; the request still waits', {
        code: 'journal_unavailable',
        details: { requestId: waiting.pending.requestId },
        retryAfter: 1,
        cause,
      });
    }
    this.#end(waiting, { kind: 'voted', vote, voterClientId: caller.clientId });
  }

  async #endAll(sessionId: string, resolution: Resolution): Promise<void> {
    await Promise.all(this.#waiting.of(sessionId).map((waiting) => this.#endUndecided(waiting, resolution)));
  }

  async #endUndecided(waiting: Waiting, resolution: Resolution): Promise<void> {
    await waiting.committing;
    if (this.#waiting.has(waiting)) this.#end(waiting, resolution);
  }

  #end(waiting: Waiting, resolution: Resolution): void {
    const { pending } = waiting;
    clearTimeout(waiting.timer);
    if (resolution.kind !== 'voted') waiting.turn.undecided = true;
    this.#waiting.end(waiting, resolution);
    this.#options.publish(resolvedEvent(pending, resolution));
    waiting.settle(resolution);
  }

  #ballot(waiting: Waiting): Ballot {
    return {
      strategy: this.#options.strategy,
      quorum: this.#options.consensusQuorum,
      originatorClientId: waiting.pending.originatorClientId,
      voters: waiting.pending.voters,
      votes: waiting.votes,
      resolved: !this.#waiting.has(waiting),
    };
  }

  #announceTally(pending: PendingInteraction, tally: Tally, caller: Caller): void {
    const { requestId, sessionId } = pending;
    this.#options.publish(
      eventOf('permission_partial_vote', pending, { requestId, sessionId, ...tally }, caller.clientId),
    );
  }

  #forbidden(pending: PendingInteraction, reason: ForbiddenReason, { clientId }: Caller): DaemonError {
    const { requestId, sessionId } = pending;
    const data = { requestId, sessionId, ...(clientId !== undefined && { clientId }), reason };
    this.#options.publish(eventOf('permission_forbidden', pending, data, clientId));
    return new DaemonError(403, 'This client may not decide the request', {
      code: 'permission_forbidden',
      details: { requestId, sessionId, reason },
    });
  }

  #notPending(sessionId: string | undefined, requestId: string): DaemonError {
    const details = { ...(sessionId !== undefined && { sessionId }), requestId };
    const ended = this.#waiting.findEnded(sessionId, requestId);
    if (!ended) {
      return new DaemonError(404, 'No request with this id waits', { details });
    }
    const { outcome, reason } = ended;
    const data = { requestId, sessionId: ended.sessionId, outcome };
    this.#options.publish(eventOf('permission_already_resolved', ended, data, undefined));
    return new DaemonError(404, 'The request has been resolved already', {
      code: 'permission_already_resolved',
      details: { ...details, outcome, ...(reason !== undefined && { reason }) },
    });
  }

  #startTimer(waiting: Waiting): void {
    const { timeoutMs } = this.#options;
    if (timeoutMs <= 0) return;
    const expire = () => this.#end(waiting, { kind: 'unattended', reason: 'timeout' });
    waiting.timer = setTimeout(expire, Math.min(timeoutMs, MAX_TIMER_MS));
    waiting.timer.unref();
  }

  #turn(sessionId: string): TurnRecord {
    const turn = this.#turns.get(sessionId) ?? { undecided: false };
    this.#turns.set(sessionId, turn);
    return turn;
  }
}
