import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** That the conformance kit finds every planted fault: half a minute of judging, which `npm test` does without. */
export default defineConfig({
  test: {
    include: ['test/conformance/*faults.test.ts'],
    globalSetup: ['scripts/build.mjs'],
    pool: 'forks',
    // Most of them wait for processes: one worker less than there are cores would leave two cores half idle.
    maxWorkers: Math.max(2, availableParallelism()),
    // A busy machine can miss a deadline of the program itself: what fails is tried once more, and the report says so.
    retry: 1,
    testTimeout: 40_000,
    hookTimeout: 30_000,
  },
});
