// The tests of the Helm chart and of the rules, with helm, promtool and Prometheus:
// `npm run test:chart`, which makes the tools first.

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    name: 'chart',
    include: ['test/helm/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 300_000,
    hookTimeout: 120_000,
  },
})
