import { DeadlineError, HangUpError } from '../acp/errors.ts';

export interface PingedPeer {
  /** Resolves with the nonce that came back; rejects with `DeadlineError` when none did in time. */
  ping(nonce: number, deadlineMs: number): Promise<unknown>;
  /** Grows with everything that is heard of the peer. */
  heard(): number;
  dead(cause: unknown): void;
}

export interface PingTimes {
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

/** Unanswered pings in a row that end a peer; a wrong answer does at once. */
const MAX_MISSED = 2;

/**
 * Pings a peer for as long as it lives; what is returned stops it. A peer that says other things while a ping waits is busy, not
 * dead: the ping waits behind what it was sent before.
 */
export function keepPinging(peer: PingedPeer, { intervalMs, timeoutMs }: PingTimes): () => void {
  let missed = 0;
  let pings = 0;
  const ping = async (): Promise<void> => {
    pings += 1;
    const nonce = pings;
    const heard = peer.heard();
    try {
      const answer = await peer.ping(nonce, timeoutMs);
      if (answer !== nonce) throw new Error('a ping was answered with another nonce');
      missed = 0;
    } catch (error) {
      if (error instanceof HangUpError) return;
      const silent = peer.heard() === heard;
      missed = silent ? missed + 1 : 0;
      if (error instanceof DeadlineError && missed < MAX_MISSED) return;
      stop();
      peer.dead(error);
    }
  };
  const timer = setInterval(() => void ping(), intervalMs);
  timer.unref();
  const stop = () => clearInterval(timer);
  return stop;
}
