import type { JournalKey } from './journal.ts';
import type { PendingInteraction, Resolution, Vote } from './ports.ts';
import { type Outcome, outcomeOf, reasonOf } from './replies.ts';

/** A turn in which something was asked. */
export interface TurnRecord {
  /** Something was asked in it that nobody decided. */
  undecided: boolean;
}

/** A request that waits, and how far it is. */
export interface Waiting {
  readonly pending: PendingInteraction;
  readonly key: JournalKey | undefined;
  /** The turn that it was asked in; by the time it ends, another may run. */
  readonly turn: TurnRecord;
  /** Lets the child have its reply. */
  readonly settle: (resolution: Resolution) => void;
  votes: ReadonlyMap<string, Vote>;
  timer: NodeJS.Timeout | undefined;
  /** From when a vote that decides goes to the disk: settles when it has decided, or could not be written. */
  committing: Promise<void> | undefined;
}

/** What is remembered of an ended request. */
export interface Ended {
  readonly sessionId: string;
  readonly promptId: string | undefined;
  readonly outcome: Outcome;
  /** Why nobody's answer came of it; undefined for an answer. */
  readonly reason: string | undefined;
}

/** How many ended requests are remembered, for those who vote late. */
const REMEMBERED = 10_000;

/** The requests that wait, by their id and by session, and the last ones that ended. */
export class WaitingRequests {
  readonly #byId = new Map<string, Waiting>();
  readonly #bySession = new Map<string, Set<Waiting>>();
  readonly #ended = new Map<string, Ended>();

  get size(): number {
    return this.#byId.size;
  }

  has({ pending }: Waiting): boolean {
    return this.#byId.has(pending.requestId);
  }

  /** `sessionId` undefined: of any session. */
  find(sessionId: string | undefined, requestId: string): Waiting | undefined {
    return ofSession(sessionId, this.#byId.get(requestId), (waiting) => waiting.pending.sessionId);
  }

  findEnded(sessionId: string | undefined, requestId: string): Ended | undefined {
    return ofSession(sessionId, this.#ended.get(requestId), (ended) => ended.sessionId);
  }

  /** The oldest first. */
  of(sessionId: string): readonly Waiting[] {
    return [...(this.#bySession.get(sessionId) ?? [])];
  }

  add(waiting: Waiting): void {
    const { requestId, sessionId } = waiting.pending;
    this.#byId.set(requestId, waiting);
    const own = this.#bySession.get(sessionId);
    if (own) own.add(waiting);
    else this.#bySession.set(sessionId, new Set([waiting]));
  }

  end(waiting: Waiting, resolution: Resolution): void {
    const { requestId, sessionId, promptId } = waiting.pending;
    this.#byId.delete(requestId);
    const own = this.#bySession.get(sessionId);
    own?.delete(waiting);
    if (own?.size === 0) this.#bySession.delete(sessionId);
    this.#ended.set(requestId, { sessionId, promptId, outcome: outcomeOf(resolution), reason: reasonOf(resolution) });
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > REMEMBERED && oldest !== undefined) this.#ended.delete(oldest);
  }
}

function ofSession<T>(sessionId: string | undefined, found: T | undefined, its: (found: T) => string): T | undefined {
  return found === undefined || sessionId === undefined || its(found) === sessionId ? found : undefined;
}
