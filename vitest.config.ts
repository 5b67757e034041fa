import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // With programs that have to be installed first: npm run test:interop. The faults that the kit finds: npm run test:kit.
    exclude: ['test/interop/**', 'test/conformance/*faults.test.ts'],
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
