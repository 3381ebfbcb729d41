import { describe, expect, it } from 'vitest'
import { ReadFuzz } from './support/read-fuzz.ts'

/** Those with which reads once stood still. */
const knownSeeds = [35, 1471, 1585, 2214]
/** `SLUICE_READ_SEED` and `SLUICE_READ_COUNT` choose others. */
const firstSeed = Number(process.env['SLUICE_READ_SEED'] ?? 1)
const count = Number(process.env['SLUICE_READ_COUNT'] ?? 40)

describe('reads of all kinds at once', () => {
  it.each(knownSeeds)(
    'end as they should with a seed that once stopped them (%i)',
    async (seed) => {
      await new ReadFuzz(seed).run()
    },
  )

  it(
    'end as they should, whatever the seed',
    async () => {
      const failures: string[] = []
      for (let seed = firstSeed; seed < firstSeed + count; seed++) {
        await new ReadFuzz(seed).run().catch((error: unknown) => {
          failures.push(`seed ${String(seed)}: ${String(error)}`)
        })
      }
      expect(failures).toEqual([])
    },
    60_000 + 1000 * count,
  )
})
