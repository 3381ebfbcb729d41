import { describe, expect, it } from 'vitest'
import { SlabPool, slabSizeBytes } from '../../../shuffle-worker/memory/slab-pool.ts'

const bufferSizeBytes = slabSizeBytes / 4

describe('a slab pool', () => {
  it('allocates a slab when it is first needed', () => {
    const pool = new SlabPool({ bufferSizeBytes, capacityBytes: 3 * slabSizeBytes })
    expect(pool.allocatedBytes).toBe(0)
    pool.takeSingles(4)
    expect(pool.allocatedBytes).toBe(slabSizeBytes)
    pool.takeSingles(1)
    expect(pool.allocatedBytes).toBe(2 * slabSizeBytes)
  })

  it('never gives the same memory twice', () => {
    const pool = new SlabPool({ bufferSizeBytes, capacityBytes: 2 * slabSizeBytes })
    const pieces = [...pool.takeSingles(5), pool.takeBlock(1, 4)]
    for (const [index, piece] of pieces.entries()) piece?.bytes.fill(index + 1)
    for (const [index, piece] of pieces.entries()) {
      expect(piece?.bytes.every((byte) => byte === index + 1)).toBe(true)
    }
  })

  it('keeps singles low and blocks high, so that whole slabs stay free for blocks', () => {
    const pool = new SlabPool({ bufferSizeBytes, capacityBytes: 2 * slabSizeBytes })
    pool.takeSingles(3)
    expect(pool.takeBlock(4, 4)?.bytes.byteLength).toBe(slabSizeBytes)
  })

  it('gives the longest run that a fragmented slab has, down to the least that serves', () => {
    const pool = new SlabPool({ bufferSizeBytes, capacityBytes: slabSizeBytes })
    const [first, , third, fourth] = pool.takeSingles(4)
    for (const piece of [first, third, fourth]) if (piece !== undefined) pool.give(piece, 0)
    expect(pool.takeBlock(3, 4)).toBeUndefined()
    expect(pool.takeBlock(1, 4)?.count).toBe(2)
  })

  it('gives back slabs that have been free for long, and says whether younger ones remain', () => {
    const pool = new SlabPool({ bufferSizeBytes, capacityBytes: 3 * slabSizeBytes })
    const pieces = pool.takeSingles(9)
    for (const [index, piece] of pieces.slice(0, 8).entries()) pool.give(piece, index < 4 ? 10 : 20)
    expect(pool.giveBackQuiet(15)).toBe(true)
    expect(pool.allocatedBytes).toBe(2 * slabSizeBytes)
    expect(pool.giveBackQuiet(25)).toBe(false)
    expect(pool.allocatedBytes).toBe(slabSizeBytes)
  })
})
