import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // With programs that have to be installed first: npm run test:interop.
    exclude: ['test/interop/**'],
    globalSetup: ['scripts/build.mjs'],
    pool: 'forks',
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
});
