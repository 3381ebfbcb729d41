import { describe, expect, it } from 'vitest'
import {
  HeldPartitions,
  type HeldPartition,
} from '../../../shuffle-worker/storage/held-partitions.ts'

function partition(name: string, spilled: string[]): HeldPartition {
  return {
    spill: () => {
      spilled.push(name)
    },
  }
}

describe('held partitions', () => {
  it('past the bound give the oldest a file', () => {
    const spilled: string[] = []
    const held = new HeldPartitions({ bytesMax: 100 })
    const [a, b, c] = ['a', 'b', 'c'].map((name) => partition(name, spilled))
    if (a === undefined || b === undefined || c === undefined) return
    expect(held.hold(a, 50)).toBe(true)
    expect(held.hold(b, 40)).toBe(true)
    expect(held.hold(a, 10)).toBe(true)
    expect(held.hold(c, 30)).toBe(true)
    expect(spilled).toEqual(['a'])
    expect(held.bytes).toBe(70)
    held.leave(b)
    held.leave(b)
    expect(held.bytes).toBe(30)
    expect(held.count).toBe(1)
  })

  it('does not hold what is larger than the bound', () => {
    const spilled: string[] = []
    const held = new HeldPartitions({ bytesMax: 100 })
    const only = partition('only', spilled)
    expect(held.hold(only, 60)).toBe(true)
    expect(held.hold(only, 60)).toBe(false)
    expect(spilled).toEqual([])
  })
})
