// The runs of the model as tests: each figure keeps its bound.

import { expect, it } from 'vitest'
import { runsOf, type Size } from './suite.ts'

export function holdFigures(size: Size): void {
  it.each(runsOf(size))('$name', async ({ figures }) => {
    for (const { name, value, least = -Infinity, most = Infinity } of await figures()) {
      expect({ name, value, isKept: value >= least && value <= most }).toEqual({
        name,
        value,
        isKept: true,
      })
      expect(value).toBeGreaterThanOrEqual(0)
    }
  })
}
