// The tests of `npm test`: first the in-process suite, on virtual seams or short real ones, then the
// end-to-end suite. `--project unit` and `--project end-to-end` run one of them.

import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/integration/**', 'test/large/**', 'test/helm/**', 'test/processes/**'],
          pool: 'forks',
          // Vitest itself would leave one core of two idle.
          maxWorkers: Math.max(2, availableParallelism() - 1),
          // Deadlines for what hangs, not measures of speed: the machine may be busy.
          testTimeout: 180_000,
          hookTimeout: 60_000,
        },
      },
      './vitest.e2e.config.ts',
    ],
    coverage: {
      provider: 'v8',
      include: ['{client,shuffle-manager,shuffle-worker,runtime,cli}/**/*.ts'],
      reporter: ['text-summary', 'html', 'json-summary'],
      reportsDirectory: 'coverage',
    },
  },
})
