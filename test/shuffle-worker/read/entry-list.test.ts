import { describe, expect, it } from 'vitest'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import { EntryList } from '../../../shuffle-worker/read/entry-list.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import type { ListedEntry } from '../../../shuffle-worker/read/listed-page.ts'
import { ReadBench } from './support/read-bench.ts'

function make() {
  const bench = new ReadBench({ memoryBytes: 16 * 1024 * 1024 })
  const memory = new ListMemory(bench.ledger)
  const list = new EntryList(memory)
  const partitions = Array.from({ length: 100 }, (_, order) => bench.add(order, 8, []))
  const entry = (index: number, order: number): ListedEntry => {
    const partition = partitions[order]
    if (partition === undefined) throw new Error('no such partition')
    return { index, partition, firstSubpartition: 0, lastSubpartition: 7, start: fromBeginning }
  }
  const used = () => bench.ledger.usedBytes('control')
  return { list, memory, bench, entry, partitions, used }
}

describe('entry list', () => {
  it('gives the next in the order of the sweep over all that frames brought', () => {
    const { list, entry, partitions } = make()
    const told: number[] = []
    for (const [index, order] of [50, 10, 30, 10].entries()) {
      list.add([entry(index, order)], (listed) => told.push(listed.index))
    }
    expect(told).toEqual([0, 1, 2, 3])
    expect(list.nextFrom(0)).toBe(partitions[10])
    expect(list.nextFrom(11)).toBe(partitions[30])
    expect(list.nextFrom(51)).toBeUndefined()
    const [, tenth] = [partitions[0], partitions[10]]
    if (tenth === undefined) throw new Error('it was added')
    expect(list.countOf(tenth)).toBe(2)
    expect([list.take(tenth)?.index, list.take(tenth)?.index]).toEqual([1, 3])
    expect(list.take(tenth)).toBeUndefined()
    expect(list.countOf(tenth)).toBe(0)
    expect(list.takeIndex(2)?.partition).toBe(partitions[30])
    expect(list.takeIndex(2)).toBeUndefined()
    expect(list.count).toBe(1)
  })

  it('takes frames of one entry in as few pages as large ones', () => {
    const { list, entry, used } = make()
    const count = 5000
    for (let index = 0; index < count; index++)
      list.add([entry(index, index % 100)], () => undefined)
    const oneByOne = used()
    const { list: other, entry: otherEntry, used: otherUsed } = make()
    const entries = Array.from({ length: count }, (_, index) => otherEntry(index, index % 100))
    other.add(entries, () => undefined)
    // A dozen pages more at most, with a few bits each.
    expect(oneByOne - otherUsed()).toBeLessThan(256)
    const seen: string[] = []
    list.clear(({ fileOrder }) => seen.push(String(fileOrder)))
    expect(seen.length).toBe(count)
    expect(list.count).toBe(0)
    expect(used()).toBe(0)
  })

  it('gives a page back when all of it has been begun', () => {
    const { list, entry, used, partitions } = make()
    list.add([entry(0, 1), entry(1, 2)], () => undefined)
    for (const partition of partitions.slice(1, 3)) list.take(partition)
    expect(used()).toBe(0)
  })

  it('tells which entries were listed when memory ends midway', () => {
    const { list, entry, memory, bench, used } = make()
    const all = bench.ledger.partBytes('control')
    const held = memory.reserve(all - 60_000, undefined)
    const entries = Array.from({ length: 8192 }, (_, index) => entry(index, index % 100))
    let told = 0
    expect(() => {
      list.add(entries, () => (told += 1))
    }).toThrow(expect.objectContaining({ code: 'BUSY' }))
    expect(told).toBe(4096)
    expect(list.count).toBe(4096)
    list.clear(() => undefined)
    held.release()
    expect(used()).toBe(0)
  })
})
