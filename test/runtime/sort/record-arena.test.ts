import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { arenaBytesPerRecord, RecordArena } from '../../../runtime/sort/record-arena.ts'

function fill(records: readonly Uint8Array[], trailerBytes = 0): RecordArena {
  const arena = new RecordArena({ capacityBytes: 1 << 20, trailerBytes })
  for (const record of records) expect(arena.add(record, 0, record.length)).toBe(true)
  return arena
}

function sorted(arena: RecordArena): Buffer[] {
  return [...arena.sort()].map((record) =>
    Buffer.from(arena.bytes.slice(arena.startOf(record), arena.endOf(record))),
  )
}

describe('an arena', () => {
  test('sorts many records that tie in their first bytes, and end at every place', () => {
    const record = fc
      .tuple(fc.nat({ max: 9 }), fc.array(fc.constantFrom(0, 1, 255), { maxLength: 6 }))
      .map(([zeros, rest]) => Buffer.concat([Buffer.alloc(zeros), Buffer.from(rest)]))
    fc.assert(
      fc.property(fc.array(record, { minLength: 25, maxLength: 500 }), (records) => {
        const expected = [...records].sort((a, b) => Buffer.compare(a, b))
        expect(sorted(fill(records))).toEqual(expected)
      }),
      { numRuns: 100 },
    )
  })

  test('does not let a trailer take part in the order', () => {
    const records = ['b', 'ab', 'a', 'abc'].map((key, index) =>
      Buffer.concat([Buffer.from(key), Buffer.alloc(8, 255 - index)]),
    )
    const keys = sorted(fill(records, 8)).map((record) => record.subarray(0, -8).toString())
    expect(keys).toEqual(['a', 'ab', 'abc', 'b'])
  })

  test('refuses what does not fit and stays as it was', () => {
    const arena = new RecordArena({ capacityBytes: 200, trailerBytes: 0 })
    expect(arena.add(Buffer.alloc(100, 2), 0, 100)).toBe(true)
    expect(arena.add(Buffer.alloc(100, 1), 0, 100)).toBe(false)
    expect(arena.count).toBe(1)
    expect(sorted(arena)).toEqual([Buffer.alloc(100, 2)])
    arena.clear()
    expect(arena.add(Buffer.alloc(100, 1), 0, 100)).toBe(true)
    expect(sorted(arena)).toEqual([Buffer.alloc(100, 1)])
  })

  test('fills up with empty records too', () => {
    const arena = new RecordArena({ capacityBytes: 1024, trailerBytes: 0 })
    let count = 0
    while (arena.add(Buffer.alloc(0), 0, 0)) count += 1
    expect(count).toBe(Math.floor((1024 - 8) / arenaBytesPerRecord))
    expect(sorted(arena)).toHaveLength(count)
  })

  test('knows what it could never hold', () => {
    const arena = new RecordArena({ capacityBytes: 200, trailerBytes: 0 })
    const most = 200 - arenaBytesPerRecord - 8
    expect([arena.canEverHold(most), arena.canEverHold(most + 1)]).toEqual([true, false])
    expect(arena.add(Buffer.alloc(most), 0, most)).toBe(true)
  })

  test('copies a part of a larger memory', () => {
    const arena = new RecordArena({ capacityBytes: 1024, trailerBytes: 0 })
    arena.add(Buffer.from('xxhelloxx'), 2, 7)
    arena.add(Buffer.alloc(300, 1), 100, 200)
    expect(sorted(arena)).toEqual([Buffer.alloc(100, 1), Buffer.from('hello')])
  })
})
