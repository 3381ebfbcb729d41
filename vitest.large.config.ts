// The jobs of the end-to-end suite at full size, with their memory limits: `npm run test:large`. The
// same tests as in `npm test`, a hundred times the data.

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    name: 'large',
    include: ['test/integration/sort.test.ts', 'test/large/**/*.test.ts'],
    env: { SLUICE_TEST_SCALE: '100' },
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 600_000,
  },
})
