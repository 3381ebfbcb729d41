import { describe, expect, it } from 'vitest'
import { DiskList, type SweepChannel } from '../../../shuffle-worker/read/disk-list.ts'
import { type ControlLedger, ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { WantedFiles } from '../../../shuffle-worker/read/wanted-files.ts'
import type { MapPartition } from '../../../shuffle-worker/storage/storage-types.ts'

function partitionAt(fileOrder: number): MapPartition {
  return { fileOrder } as MapPartition
}

function newList(): DiskList {
  return new DiskList({} as SweepChannel, new ListMemory({} as ControlLedger))
}

const list = newList()

describe('wanted files', () => {
  it('tell the first at or behind a place, whatever order they were listed in', () => {
    const wanted = new WantedFiles()
    const [three, seven, eight, twelve] = [3, 7, 8, 12].map(partitionAt)
    for (const each of [eight, three, twelve, seven]) if (each !== undefined) wanted.add(each, list)
    expect([0, 3, 4, 8, 9, 13].map((order) => wanted.firstFrom(order))).toEqual([
      three,
      three,
      seven,
      eight,
      twelve,
      undefined,
    ])
  })

  it('keep one until the last entry of it is over', () => {
    const wanted = new WantedFiles()
    const [one, two] = [partitionAt(1), partitionAt(2)]
    for (const each of [one, one, two]) wanted.add(each, list)
    wanted.remove(one)
    expect(wanted.countOf(one)).toBe(1)
    expect(wanted.firstFrom(0)).toBe(one)
    wanted.remove(one)
    expect(wanted.countOf(one)).toBe(0)
    expect(wanted.firstFrom(0)).toBe(two)
    expect(() => {
      wanted.remove(one)
    }).toThrow('no more entries end than were listed')
  })

  it('tell apart two that lie at the same place', () => {
    const wanted = new WantedFiles()
    const [one, other] = [partitionAt(5), partitionAt(5)]
    wanted.add(one, list)
    wanted.add(other, list)
    wanted.remove(one)
    expect(wanted.firstFrom(5)).toBe(other)
  })

  it('say whose a partition is while it is of one channel alone', () => {
    const wanted = new WantedFiles()
    const [one, two, other] = [partitionAt(1), partitionAt(2), newList()]
    wanted.add(one, list)
    wanted.add(one, list)
    wanted.add(two, list)
    wanted.add(two, other)
    expect([wanted.onlyListOf(one), wanted.onlyListOf(two)]).toEqual([list, undefined])
    // Which of the two is left is not known.
    wanted.remove(two)
    expect(wanted.onlyListOf(two)).toBeUndefined()
    wanted.remove(two)
    wanted.add(two, other)
    expect(wanted.onlyListOf(two)).toBe(other)
    expect(wanted.onlyListOf(partitionAt(3))).toBeUndefined()
  })

  it('are gone when all is given up', () => {
    const wanted = new WantedFiles()
    wanted.add(partitionAt(1), list)
    wanted.clear()
    expect(wanted.firstFrom(0)).toBeUndefined()
  })
})
