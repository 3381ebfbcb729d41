// The end-to-end suite of `npm run test:e2e`: real processes, sockets and files, one file at a time.

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/integration/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
  },
})
