// Real processes under hard conditions: stopped and continued, on full file systems, behind a proxy that
// cuts and delays, among thousands of connections. `npm run test:processes`; needs what `dist/` is built to.

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    name: 'processes',
    include: ['test/processes/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 60_000,
  },
})
