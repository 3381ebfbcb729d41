import fc from 'fast-check'
import { expect, test } from 'vitest'

import { splitInput } from '../../../runtime/input/input-split.ts'

test('the parts cover every byte of every file once, in order, and are even', () => {
  const files = fc.array(fc.nat({ max: 1000 }), { maxLength: 8 })
  fc.assert(
    fc.property(files, fc.integer({ min: 1, max: 20 }), (sizes, count) => {
      const input = sizes.map((sizeBytes, index) => ({ path: String(index), sizeBytes }))
      const splits = splitInput(input, count)
      expect(splits).toHaveLength(count)
      const ends = new Map<string, number>()
      const totals: number[] = []
      for (const ranges of splits) {
        totals.push(ranges.reduce((sum, { start, end }) => sum + end - start, 0))
        for (const { path, start, end } of ranges) {
          expect(start).toBe(ends.get(path) ?? 0)
          expect(end).toBeGreaterThan(start)
          ends.set(path, end)
        }
      }
      for (const { path, sizeBytes } of input) expect(ends.get(path) ?? 0).toBe(sizeBytes)
      expect(Math.max(...totals) - Math.min(...totals)).toBeLessThanOrEqual(1)
    }),
  )
})

test('nothing is divided into empty parts', () => {
  expect(splitInput([], 3)).toEqual([[], [], []])
  expect(splitInput([{ path: 'a', sizeBytes: 0 }], 2)).toEqual([[], []])
})
