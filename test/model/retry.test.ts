import { describe, expect, test } from 'vitest';
import { type RetryPolicy, waitBeforeRetry, withRetries } from '../../src/model/retry.ts';
import { parseScript } from '../../src/model/script.ts';
import { createScriptedModel } from '../../src/model/scripted.ts';
import { ProviderFault, type ProviderFaultKind } from '../../src/session/faults.ts';
import type { Model } from '../../src/session/ports.ts';
import { collect, modelRequest, partsOf, rejection } from '../support/collect.ts';

const POLICY: RetryPolicy = { attempts: 4, baseMs: 100, maxMs: 250, maxRetryAfterMs: 10_000 };

/** A scripted model with retries that waits for nobody, and the waits that it would have made. */
function retrying(...rules: unknown[]) {
  const waits: number[] = [];
  const sleep = async (milliseconds: number) => void waits.push(milliseconds);
  const model = withRetries(createScriptedModel(parseScript({ rules })), POLICY, { sleep, random: () => 1 });
  return { model, waits };
}

const failing = (times: number, step: object = { fault: 'server', status: 503 }) => ({
  when: { times },
  steps: [step],
});
const OK = { steps: [{ text: 'ok' }] };

describe('waitBeforeRetry', () => {
  const fault = (kind: ProviderFaultKind, retryAfterMs?: number) =>
    new ProviderFault(kind, 'x', retryAfterMs === undefined ? {} : { retryAfterMs });

  test.each<[string, unknown, number, number, number | undefined]>([
    ['the first wait is the base', fault('server'), 1, 1, 100],
    ['jitter takes up to half of it away', fault('server'), 1, 0, 50],
    ['it doubles', fault('server'), 2, 1, 200],
    ['it is bounded', fault('server'), 3, 1, 250],
    ['the last attempt has none after it', fault('server'), 4, 1, undefined],
    ['what the provider asks for wins where it is longer', fault('rate_limit', 3000), 1, 1, 3000],
    ['our own wins where it is longer', fault('rate_limit', 10), 1, 1, 100],
    ['a wait beyond patience is none', fault('rate_limit', 10_001), 1, 1, undefined],
    ['a broken stream is retried', fault('broken_stream'), 1, 1, 100],
    ['an empty reply is retried', fault('empty_reply'), 1, 1, 100],
    ['a refused key is not', fault('auth'), 1, 1, undefined],
    ['a bad request is not', fault('bad_request'), 1, 1, undefined],
    ['a context that is too long is not', fault('context_overflow'), 1, 1, undefined],
    ['another error is not', new Error('bug'), 1, 1, undefined],
  ])('[MD-4] %s', (_, error, attempt, random, expected) => {
    expect(waitBeforeRetry(error, attempt, POLICY, random)).toBe(expected);
  });
});

describe('withRetries', () => {
  test('[MD-4] a provider that recovers is asked until it does', async () => {
    const { model, waits } = retrying(failing(2), OK);
    expect(partsOf(await collect(model, modelRequest('x')))).toEqual([{ text: 'ok' }]);
    expect(waits).toEqual([100, 200]);
  });

  test('[MD-4] one that does not recover gives its last fault', async () => {
    const { model, waits } = retrying(failing(3), { steps: [{ fault: 'rate_limit', message: 'the last' }] });
    expect(await rejection(collect(model, modelRequest('x')))).toMatchObject({ message: 'the last' });
    expect(waits).toHaveLength(3);
  });

  test('[MD-4] nothing is asked again once a part has been passed on', async () => {
    const { model, waits } = retrying({ steps: [{ text: 'half' }, { fault: 'broken_stream' }] });
    expect(await rejection(collect(model, modelRequest('x')))).toMatchObject({ kind: 'broken_stream' });
    expect(waits).toEqual([]);
  });

  test('[MD-4] an abort during the wait ends it at once with the reason, and asks no more', async () => {
    const controller = new AbortController();
    const reason = new Error('cancelled');
    const sleep = (_: number, signal: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        signal.addEventListener('abort', reject);
        controller.abort(reason);
      });
    const scripted = createScriptedModel(parseScript({ rules: [failing(1), OK] }));
    let asked = 0;
    const counted: Model = {
      ...scripted,
      stream(request) {
        asked += 1;
        return scripted.stream(request);
      },
    };
    const model = withRetries(counted, POLICY, { sleep, random: () => 0 });
    expect(await rejection(collect(model, modelRequest('x', controller.signal)))).toBe(reason);
    expect(asked).toBe(1);
  });

  test('[MD-4] the wait of the default environment is aborted, too', async () => {
    const controller = new AbortController();
    const scripted = createScriptedModel(
      parseScript({ rules: [{ steps: [{ fault: 'rate_limit', retryAfterMs: 59_000 }] }] }),
    );
    const pending = collect(withRetries(scripted), modelRequest('x', controller.signal));
    setImmediate(() => controller.abort(new Error('cancelled')));
    expect(await rejection(pending)).toMatchObject({ message: 'cancelled' });
  });

  test('[MD-4] the model keeps its name', () => {
    expect(retrying(OK).model).toMatchObject({ name: 'scripted', authType: 'scripted' });
  });
});
