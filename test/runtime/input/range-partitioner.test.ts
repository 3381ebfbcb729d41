import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { chooseSplitters, RangePartitioner } from '../../../runtime/input/range-partitioner.ts'

const key = fc
  .array(fc.constantFrom(0, 1, 97, 98, 255), { maxLength: 7 })
  .map((bytes) => Buffer.from(bytes))

function subpartition(partitioner: RangePartitioner, bytes: Uint8Array): number {
  const within = Buffer.concat([Buffer.of(9, 9), bytes, Buffer.of(9)])
  return partitioner.subpartitionOf(within, 2, 2 + bytes.length)
}

describe('a range partitioner', () => {
  test('puts every key of a subpartition before every key of the next', () => {
    fc.assert(
      fc.property(fc.array(key), fc.array(key), fc.boolean(), (samples, keys, spreadsEqual) => {
        const splitters = chooseSplitters(samples, 4)
        const partitioner = new RangePartitioner({ splitters, spreadsEqual })
        for (const bytes of keys) {
          const chosen = subpartition(partitioner, bytes)
          expect(chosen).toBeLessThan(4)
          const [before, after] = [splitters[chosen - 1], splitters[chosen]]
          if (before !== undefined) expect(Buffer.compare(before, bytes)).toBeLessThanOrEqual(0)
          if (after !== undefined) expect(Buffer.compare(bytes, after)).toBeLessThanOrEqual(0)
        }
      }),
    )
  })

  test('keeps equal keys together when it does not spread them', () => {
    const splitters = ['k', 'k', 'k'].map((text) => Buffer.from(text))
    const partitioner = new RangePartitioner({ splitters, spreadsEqual: false })
    const seen = new Set(
      Array.from({ length: 20 }, () => subpartition(partitioner, Buffer.from('k'))),
    )
    expect(seen.size).toBe(1)
  })

  test('spreads a key that is a splitter evenly over all subpartitions that it touches', () => {
    const splitters = ['a', 'k', 'k', 'z'].map((text) => Buffer.from(text))
    const partitioner = new RangePartitioner({ splitters, spreadsEqual: true })
    const counts = new Map<number, number>()
    for (let index = 0; index < 300; index++) {
      const chosen = subpartition(partitioner, Buffer.from('k'))
      counts.set(chosen, (counts.get(chosen) ?? 0) + 1)
    }
    expect([...counts].sort(([a], [b]) => a - b)).toEqual([
      [1, 100],
      [2, 100],
      [3, 100],
    ])
  })

  test('divides the same input in the same way when it begins at the same turn', () => {
    const splitters = [Buffer.from('k'), Buffer.from('k')]
    const divide = (turn: number) => {
      const partitioner = new RangePartitioner({ splitters, spreadsEqual: true, turn })
      return Array.from({ length: 10 }, () => subpartition(partitioner, Buffer.from('k')))
    }
    expect(divide(5)).toEqual(divide(5))
    expect(divide(5)).not.toEqual(divide(6))
  })

  test('without splitters has one subpartition', () => {
    const partitioner = new RangePartitioner({ splitters: [], spreadsEqual: true })
    expect(subpartition(partitioner, Buffer.from('any'))).toBe(0)
  })
})

test('splitters stand at even quantiles', () => {
  const samples = Array.from({ length: 100 }, (_, index) => Buffer.of((index * 37) % 100))
  expect(chooseSplitters(samples, 4).map(([byte]) => byte)).toEqual([25, 50, 75])
  expect(chooseSplitters(samples, 1)).toEqual([])
  expect(chooseSplitters([], 4)).toEqual([])
  expect(chooseSplitters([Buffer.from('a')], 3)).toHaveLength(2)
})
