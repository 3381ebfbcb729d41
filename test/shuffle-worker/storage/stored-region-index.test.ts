import { describe, expect, it } from 'vitest'
import type { IndexRow } from '../../../shuffle-worker/storage/partition-format.ts'
import { HeldRegionIndex, RunTable } from '../../../shuffle-worker/storage/stored-region-index.ts'

function tableOf(
  runs: readonly (readonly [subpartition: number, bytes: number, entries: number])[],
  isBroadcast = false,
): RunTable {
  const row: IndexRow = {
    isBroadcast,
    subpartitions: Uint32Array.from(runs.map(([subpartition]) => subpartition)),
    byteLengths: Float64Array.from(runs.map(([, bytes]) => bytes)),
    entryCounts: Uint32Array.from(runs.map(([, , entries]) => entries)),
  }
  const region = {
    position: 100,
    byteLength: runs.reduce((sum, [, bytes]) => sum + bytes, 0),
    rowLength: 1,
    entryCount: runs.reduce((sum, [, , entries]) => sum + entries, 0),
    isBroadcast,
  }
  return new RunTable(4, row, region, 1000)
}

const sparse = tableOf([
  [1, 10, 1],
  [4, 20, 2],
  [5, 30, 3],
  [9, 40, 4],
])

describe('a region index', () => {
  it('has one stretch for any range of subpartitions', () => {
    expect(sparse.range(0, 9)).toEqual({ position: 1100, byteLength: 100, entryCount: 10 })
    expect(sparse.range(4, 5)).toEqual({ position: 1110, byteLength: 50, entryCount: 5 })
    expect(sparse.range(2, 3)).toMatchObject({ byteLength: 0, entryCount: 0 })
    expect(sparse.range(9, 9)).toEqual({ position: 1160, byteLength: 40, entryCount: 4 })
    expect(sparse.range(10, 12)).toMatchObject({ byteLength: 0, entryCount: 0 })
  })

  it('lists the runs that are not empty, ascending', () => {
    expect([...sparse.runs(2, 5)]).toEqual([
      { subpartition: 4, position: 1110, byteLength: 20, entryCount: 2 },
      { subpartition: 5, position: 1130, byteLength: 30, entryCount: 3 },
    ])
    expect([...sparse.runs(6, 8)]).toEqual([])
  })

  it('of a broadcast region serves every subpartition from the same bytes', () => {
    const broadcast = tableOf([[0, 50, 5]], true)
    expect(broadcast.range(7, 9)).toMatchObject({ position: 1100, byteLength: 50 })
    expect([...broadcast.runs(7, 8)]).toEqual([
      { subpartition: 7, position: 1100, byteLength: 50, entryCount: 5 },
      { subpartition: 8, position: 1100, byteLength: 50, entryCount: 5 },
    ])
    expect([...tableOf([], true).runs(0, 3)]).toEqual([])
  })

  it('is released once by each holder', () => {
    let released = 0
    const held = new HeldRegionIndex(sparse, () => (released += 1))
    expect(held.regionIndex).toBe(4)
    held.release()
    expect(released).toBe(1)
    expect(() => {
      held.release()
    }).toThrow(/released once/)
  })
})
