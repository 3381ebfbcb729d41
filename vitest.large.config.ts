// The jobs of the end-to-end suite at full size, with their memory limits: `npm run test:large`.

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    name: 'large',
    include: ['test/large/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 600_000,
  },
})
