import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromBeginning, type ReadStart } from '../../../client/protocol/partition-list.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { type ListedEntry, ListedPage } from '../../../shuffle-worker/read/listed-page.ts'
import { ReadBench } from './support/read-bench.ts'

interface Wanted {
  readonly order: number
  readonly range?: readonly [number, number]
  readonly start?: ReadStart
}

function make() {
  const bench = new ReadBench()
  const memory = new ListMemory(bench.ledger)
  const partitions = Array.from({ length: 80 }, (_, order) => bench.add(order, 8, []))
  const entries = (wanted: readonly Wanted[], firstIndex = 0): ListedEntry[] =>
    wanted.map(({ order, range = [0, 0], start = fromBeginning }, position) => {
      const partition = partitions[order]
      if (partition === undefined) throw new Error('no such partition')
      const [firstSubpartition, lastSubpartition] = range
      return {
        index: firstIndex + position,
        partition,
        firstSubpartition,
        lastSubpartition,
        start,
      }
    })
  return { bench, memory, entries }
}

function ordersOf(page: ListedPage): number[] {
  return [...page.entries()].map(({ partition }) => partition.fileOrder)
}

describe('listed page', () => {
  it('gives its entries back as they were listed, in the order of the sweep', () => {
    const { memory, entries } = make()
    const start = { regionIndex: 3, subpartition: 2, byteOffset: 2 ** 40 }
    const wanted = entries([{ order: 9, range: [1, 2] }, { order: 4, start }, { order: 9 }], 700)
    const page = new ListedPage(wanted, memory)
    expect([...page.entries()]).toEqual([wanted[1], wanted[0], wanted[2]])
    expect([page.firstIndex, page.lastIndex, page.count]).toEqual([700, 702, 3])
    const slot = page.slotOf(702)
    if (slot === undefined) throw new Error('it is listed')
    expect(page.take(slot)).toEqual(wanted[2])
    expect(page.slotOf(702)).toBeUndefined()
    expect(page.slotOf(703)).toBeUndefined()
    expect(page.slotOf(699)).toBeUndefined()
    expect(page.count).toBe(2)
    page.release()
  })

  it('finds the next that is listed from any place, whatever was taken', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(79), { minLength: 1, maxLength: 200 }),
        fc.array(fc.nat(199), { maxLength: 200 }),
        fc.nat(80),
        (orders, taken, from) => {
          const { memory, entries } = make()
          const page = new ListedPage(entries(orders.map((order) => ({ order }))), memory)
          const left = new Map(orders.entries())
          for (const index of taken) {
            const slot = page.slotOf(index)
            expect(slot === undefined).toBe(!left.has(index))
            if (slot !== undefined) page.take(slot)
            left.delete(index)
          }
          const sorted = [...left.values()].sort((a, b) => a - b)
          expect(ordersOf(page)).toEqual(sorted)
          const slot = page.nextFrom(from)
          const expected = sorted.filter((order) => order >= from)
          expect(slot === undefined ? undefined : page.partitionAt(slot).fileOrder).toBe(
            expected[0],
          )
          let count = 0
          for (let next = slot; next !== undefined; next = page.nextOfSame(next)) count += 1
          expect(count).toBe(expected.filter((order) => order === expected[0]).length)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('gives all memory back when it is released, also when it could not be made', () => {
    const { bench, memory, entries } = make()
    const wanted = entries([{ order: 1 }, { order: 2, range: [1, 2] }])
    const page = new ListedPage(wanted, memory)
    expect(bench.ledger.usedBytes('control')).toBeGreaterThan(0)
    page.release()
    expect(bench.ledger.usedBytes('control')).toBe(0)
    // Enough for the page's own part and not for what is shared.
    const left = 30
    const bytes = bench.ledger.partBytes('control') - left
    const held = bench.ledger.tryReserve({ purpose: 'control', bytes })
    expect(() => new ListedPage(wanted, memory)).toThrow(/control memory/)
    held?.release()
    expect(bench.ledger.usedBytes('control')).toBe(0)
  })
})
