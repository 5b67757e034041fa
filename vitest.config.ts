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
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
});
