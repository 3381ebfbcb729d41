// The suite of `npm test`: everything in one process each file, on virtual seams or short real ones.

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/integration/**', 'test/large/**', 'test/bench/**'],
    pool: 'forks',
    // Deadlines for what hangs, not measures of speed: the machine may be busy with other things.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    coverage: {
      provider: 'v8',
      include: [
        'client/**/*.ts',
        'shuffle-manager/**/*.ts',
        'shuffle-worker/**/*.ts',
        'runtime/**/*.ts',
        'cli/**/*.ts',
      ],
      reporter: ['text-summary', 'html', 'json-summary'],
      reportsDirectory: 'coverage',
    },
  },
})
