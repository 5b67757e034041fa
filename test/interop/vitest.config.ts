import { defineConfig } from 'vitest/config';

/** With the programs of others; scripts/interop.mjs installs them, builds ours, and runs this. */
export default defineConfig({
  test: {
    include: ['test/interop/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Programs of others miss deadlines on a busy machine.
    retry: 1,
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
