import { describe, expect, it } from 'vitest'
import { WantedFiles } from '../../../shuffle-worker/read/wanted-files.ts'
import type { MapPartition } from '../../../shuffle-worker/storage/storage-types.ts'

function partitionAt(fileOrder: number): MapPartition {
  return { fileOrder } as MapPartition
}

describe('wanted files', () => {
  it('tell the first at or behind a place, whatever order they were listed in', () => {
    const wanted = new WantedFiles()
    const [three, seven, eight, twelve] = [3, 7, 8, 12].map(partitionAt)
    for (const each of [eight, three, twelve, seven]) if (each !== undefined) wanted.add(each)
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
    for (const each of [one, one, two]) wanted.add(each)
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
    wanted.add(one)
    wanted.add(other)
    wanted.remove(one)
    expect(wanted.firstFrom(5)).toBe(other)
  })

  it('are gone when all is given up', () => {
    const wanted = new WantedFiles()
    wanted.add(partitionAt(1))
    wanted.clear()
    expect(wanted.firstFrom(0)).toBeUndefined()
  })
})
