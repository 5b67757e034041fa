import { expect, test } from 'vitest';
import { fuzz } from '../support/fuzz.ts';
import { Home } from '../support/peer.ts';

/** `FUZZ_SEED=1000 FUZZ_RUNS=200 npx vitest run test/protocol/fuzz.test.ts` looks further. */
const FIRST = Number(process.env['FUZZ_SEED'] ?? 1);
const RUNS = Number(process.env['FUZZ_RUNS'] ?? 2);
const seeds = Array.from({ length: RUNS }, (_, index) => FIRST + index);

test.each(seeds)(
  '[ACP-2, ACP-4, ACP-6, ACP-9, ACP-13, TR-5, TR-9, RS-6, BT-1] whatever is asked, answered and ended in whatever order, nothing is lost and nothing breaks (seed %i)',
  {
    timeout: 60_000,
  },
  async (seed) => {
    expect(await fuzz(new Home(), { seed, lives: 4, steps: 30, clients: 1 })).toEqual([]);
  },
);

test.each(seeds)(
  '[TR-7, RS-1, ACP-4] nor do processes that share their sessions break them (seed %i)',
  {
    timeout: 60_000,
  },
  async (seed) => {
    expect(await fuzz(new Home(), { seed, lives: 3, steps: 30, clients: 2 })).toEqual([]);
  },
);
