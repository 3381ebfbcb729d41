// The end-to-end suite of `npm run test:e2e`: real processes, sockets and files, one file at a time.

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    name: 'end-to-end',
    include: ['test/integration/**/*.test.ts'],
    pool: 'forks',
    // One after the other, and after the in-process suite: each starts processes of its own.
    maxWorkers: 1,
    sequence: { groupOrder: 1 },
    testTimeout: 300_000,
    hookTimeout: 120_000,
  },
})
