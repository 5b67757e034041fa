import { defineConfig } from 'vitest/config';

/** The tests that judge the pure modules in their own process; the rest would judge dist/, which no mutant reaches. */
export default defineConfig({
  test: {
    include: [
      'test/meta/*.test.ts',
      'test/session/{batch,decisions,eligibility,history,question,reader,replay,replay-recorded}.test.ts',
      'test/daemon/{admission,journal,mediator}.test.ts',
    ],
    pool: 'forks',
    testTimeout: 20_000,
  },
});
