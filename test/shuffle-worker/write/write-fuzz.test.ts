import { describe, expect, it } from 'vitest'
import { WriteFuzz } from './support/write-fuzz.ts'

/** `SLUICE_WRITE_SEED` and `SLUICE_WRITE_COUNT` choose others. */
const firstSeed = Number(process.env['SLUICE_WRITE_SEED'] ?? 1)
const count = Number(process.env['SLUICE_WRITE_COUNT'] ?? 12)

describe('writes of all kinds at once', () => {
  it(
    'end as they should, whatever the seed',
    async () => {
      const failures: string[] = []
      for (let seed = firstSeed; seed < firstSeed + count; seed++) {
        await new WriteFuzz(seed).run().catch((error: unknown) => {
          failures.push(`seed ${String(seed)}: ${String(error)}`)
        })
      }
      expect(failures).toEqual([])
    },
    60_000 + 1000 * count,
  )
})
