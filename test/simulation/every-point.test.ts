import './shared-validators.ts'
import { expect, test } from 'vitest'
import { everyPoint, scripts } from './every-point.ts'

/** Prime, so that it falls on other messages and operations of each kind. */
const step = 97

test.each(scripts)(
  'a fault at a message or disk operation of $name gives the right output or a clear error',
  async (script) => {
    const failed: unknown[] = []
    let count = 0
    for await (const run of everyPoint(script, { step, offset: 0 })) {
      count += 1
      if (run.findings.length > 0) failed.push(run)
    }
    expect(failed).toEqual([])
    expect(count).toBeGreaterThan(7)
  },
)
