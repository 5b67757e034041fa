import { setTimeout as delay } from 'node:timers/promises';
import { ProviderFault, type ProviderFaultKind } from '../session/faults.ts';
import type { Model, ModelEvent, ModelRequest } from '../session/ports.ts';

export interface RetryPolicy {
  /** Requests in all, the first included. */
  readonly attempts: number;
  /** The wait before the second request; doubles with each further one. Milliseconds. */
  readonly baseMs: number;
  /** No wait of our own is longer. Milliseconds. */
  readonly maxMs: number;
  /** A provider that asks for a longer wait than this is not retried: the person should hear of it now. Milliseconds. */
  readonly maxRetryAfterMs: number;
}

/** What a retry needs from outside, replaced in tests. */
export interface RetryEnvironment {
  /** Resolves after the wait; rejects, with anything, when the signal aborts. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** In [0, 1). */
  readonly random: () => number;
}

const POLICY: RetryPolicy = { attempts: 5, baseMs: 500, maxMs: 20_000, maxRetryAfterMs: 60_000 };
const ENVIRONMENT: RetryEnvironment = {
  sleep: (milliseconds, signal) => delay(milliseconds, undefined, { signal }),
  random: Math.random,
};

const RETRIED: ReadonlySet<ProviderFaultKind> = new Set(['rate_limit', 'server', 'broken_stream', 'empty_reply']);

/**
 * The same model, asked again where its provider failed for the moment and nothing of the reply was passed on yet: what
 * a client has been shown cannot be taken back. Gives up with the last `ProviderFault`; an abort ends it at once with
 * the signal's reason.
 */
export function withRetries(
  model: Model,
  policy: RetryPolicy = POLICY,
  environment: RetryEnvironment = ENVIRONMENT,
): Model {
  async function* stream(request: ModelRequest): AsyncGenerator<readonly ModelEvent[]> {
    for (let attempt = 1; ; attempt += 1) {
      let yielded = false;
      try {
        for await (const events of model.stream(request)) {
          yielded = true;
          yield events;
        }
        return;
      } catch (error) {
        request.signal.throwIfAborted();
        const wait = yielded ? undefined : waitBeforeRetry(error, attempt, policy, environment.random());
        if (wait === undefined) throw error;
        await environment.sleep(wait, request.signal).catch(() => {});
        request.signal.throwIfAborted();
      }
    }
  }
  return { ...model, stream };
}

/**
 * Milliseconds until the next request after the `attempt`-th (from 1) failed; undefined when there is to be none.
 * `random` in [0, 1) picks from the upper half of the backoff, so that many clients do not come back together.
 */
export function waitBeforeRetry(
  error: unknown,
  attempt: number,
  policy: RetryPolicy,
  random: number,
): number | undefined {
  if (!(error instanceof ProviderFault) || !RETRIED.has(error.kind) || attempt >= policy.attempts) return undefined;
  const backoff = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1)) * (0.5 + random / 2);
  if (error.retryAfterMs === undefined) return backoff;
  return error.retryAfterMs > policy.maxRetryAfterMs ? undefined : Math.max(backoff, error.retryAfterMs);
}
