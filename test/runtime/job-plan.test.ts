import { expect, test } from 'vitest'

import { divideTaskMemory } from '../../runtime/job-plan.ts'

test.each([2, 64, 2048])('the parts of a task of %d MiB fit its memory', (mebibytes) => {
  const total = mebibytes * 1024 * 1024
  const { outputBytes, gateBytes, ownBytes } = divideTaskMemory(total)
  expect(outputBytes + gateBytes + ownBytes).toBeLessThanOrEqual(total)
  // What the client needs at least: eight buffers for an output, four for a gate.
  expect(outputBytes).toBeGreaterThanOrEqual(8 * 32 * 1024)
  expect(gateBytes).toBeGreaterThanOrEqual(4 * 32 * 1024)
})
