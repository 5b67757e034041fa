import { expect, onTestFinished, test, vi } from 'vitest';
import { DeadlineError, HangUpError } from '../../src/acp/errors.ts';
import { keepPinging } from '../../src/daemon/liveness.ts';

type Answer = 'nonce' | 'other nonce' | 'nothing' | 'nothing, but busy' | 'gone';

/** How many pings were sent, and after which the peer counted as dead. */
async function pinged(...answers: Answer[]): Promise<{ pings: number; deadAfter: number | undefined }> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  let pings = 0;
  let heard = 0;
  let deadAfter: number | undefined;
  const stop = keepPinging(
    {
      async ping(nonce, deadlineMs) {
        const answer = answers[pings];
        pings += 1;
        if (answer === 'nothing, but busy') heard += 1;
        if (answer === 'gone') throw new HangUpError('eof', 'gone');
        if (answer?.startsWith('nothing')) throw new DeadlineError('ping', deadlineMs);
        return answer === 'nonce' ? nonce : nonce - 1;
      },
      heard: () => heard,
      dead: () => {
        deadAfter = pings;
      },
    },
    { intervalMs: 10, timeoutMs: 5 },
  );
  for (const _ of answers) await vi.advanceTimersByTimeAsync(10);
  stop();
  await vi.advanceTimersByTimeAsync(100);
  return { pings, deadAfter };
}

test.each<[Answer[], number, number | undefined]>([
  [['nonce', 'nonce', 'nonce'], 3, undefined],
  [['nothing', 'nonce', 'nothing', 'nonce'], 4, undefined],
  [['nonce', 'nothing', 'nothing', 'nonce'], 3, 3],
  [['other nonce', 'nonce'], 1, 1],
  [['nothing, but busy', 'nothing, but busy', 'nothing, but busy'], 3, undefined],
  [['nothing, but busy', 'nothing', 'nothing, but busy', 'nothing', 'nothing'], 5, 5],
  [['gone', 'gone', 'gone'], 3, undefined],
])('[DM-10] pings answered with %j: %i are sent, dead after %s', async (answers, pings, deadAfter) => {
  expect(await pinged(...answers)).toEqual({ pings, deadAfter });
});
