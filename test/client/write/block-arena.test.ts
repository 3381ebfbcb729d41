import { describe, expect, test } from 'vitest'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import { BlockArena } from '../../../client/write/block-arena.ts'

function setUp(options: {
  segmentBytes: number
  segmentCountMax: number
  subpartitionCount: number
}) {
  let out = 0
  const acquire = (): PooledBuffer => {
    out += 1
    return {
      bytes: new Uint8Array(options.segmentBytes),
      recycle: () => {
        out -= 1
      },
    }
  }
  return { arena: new BlockArena({ ...options, acquire }), outCount: () => out }
}

describe('a block arena', () => {
  test('has blocks small enough that not full ones lose at most a quarter of the memory', () => {
    const few = setUp({ segmentBytes: 32_768, segmentCountMax: 192, subpartitionCount: 8 })
    expect(few.arena.blockBytes).toBe(8192)
    const many = setUp({ segmentBytes: 32_768, segmentCountMax: 192, subpartitionCount: 1000 })
    expect(many.arena.blockBytes).toBe(1024)
    const most = setUp({ segmentBytes: 32_768, segmentCountMax: 192, subpartitionCount: 32_768 })
    expect(most.arena.blockBytes).toBe(64)
  })

  test('gives each block memory of its own and takes buffers only as they are needed', () => {
    const { arena, outCount } = setUp({
      segmentBytes: 256,
      segmentCountMax: 3,
      subpartitionCount: 9,
    })
    expect(outCount()).toBe(0)
    const seen = new Set<string>()
    while (arena.freeCount > 0) {
      const block = arena.take()
      seen.add(`${String(arena.positionOf(block))} in ${String(outCount())}`)
      expect(arena.nextOf(block)).toBe(-1)
    }
    expect(seen.size).toBe(arena.blockCountMax)
    expect(outCount()).toBe(3)
    expect(arena.segmentCount).toBe(3)
  })

  test('uses blocks that came back before it makes new ones', () => {
    const { arena } = setUp({ segmentBytes: 256, segmentCountMax: 3, subpartitionCount: 9 })
    const first = arena.take()
    const second = arena.take()
    arena.link(first, second)
    expect(arena.nextOf(first)).toBe(second)
    arena.give(second)
    arena.give(first)
    expect([arena.take(), arena.take()]).toEqual([first, second])
    expect(arena.freeCount).toBe(arena.blockCountMax - 2)
  })

  test('gives its buffers back', () => {
    const { arena, outCount } = setUp({
      segmentBytes: 256,
      segmentCountMax: 3,
      subpartitionCount: 9,
    })
    arena.give(arena.take())
    arena.release()
    expect(outCount()).toBe(0)
    expect(() => {
      arena.give(0)
    }).toThrow(/no more blocks/)
  })
})
