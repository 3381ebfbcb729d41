import { expect, test } from 'vitest'
import { compareTotals } from '../../../client/write/committed-partition.ts'

test('the worker has to have stored what was sent', () => {
  const sent = { regionCount: 2, entryCount: 30, byteCount: 400 }
  compareTotals(sent, { ...sent })
  for (const name of ['regionCount', 'entryCount', 'byteCount'] as const) {
    expect(() => {
      compareTotals(sent, { ...sent, [name]: 1 })
    }).toThrow(/other totals/)
  }
})
