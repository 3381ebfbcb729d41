import { describe, expect, it } from 'vitest'
import { checksumCost } from '../../bench/checksum-cost.ts'

describe('the cost of checksums', () => {
  it('is a time for each GB, whatever the entries', () => {
    // Enough for the clock that counts a process's time; how much it is, is the machine's affair.
    for (const payloadBytes of [4000, 32_000]) {
      expect(checksumCost({ payloadBytes, totalBytes: 40_000_000 })).toBeGreaterThan(0)
    }
  })
})
