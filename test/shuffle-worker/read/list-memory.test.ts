import { describe, expect, it } from 'vitest'
import {
  CursorAllowance,
  cursorBytes,
  cursorsPerReservation,
  ListMemory,
} from '../../../shuffle-worker/read/list-memory.ts'
import { keyOf } from './support/memory-partition.ts'
import { ReadBench } from './support/read-bench.ts'

const { jobId } = keyOf(0)

function make() {
  const bench = new ReadBench()
  const memory = new ListMemory(bench.ledger)
  const partitions = Array.from({ length: 10 }, (_, order) => bench.add(order, 1, []))
  const used = () => bench.ledger.usedBytes('control')
  return { bench, memory, partitions, used }
}

describe('list memory', () => {
  it('refuses with BUSY what is not there now and with LIMIT_EXCEEDED what never is', () => {
    const { bench, memory } = make()
    const all = bench.ledger.partBytes('control')
    expect(() => memory.reserve(all + 1, jobId)).toThrow(
      expect.objectContaining({
        code: 'LIMIT_EXCEEDED',
        message: expect.stringContaining('its option memory)') as string,
      }),
    )
    const held = memory.reserve(all, jobId)
    expect(() => memory.reserve(1, undefined)).toThrow(expect.objectContaining({ code: 'BUSY' }))
    expect(bench.ledger.usedBytesByJob().get(jobId)).toBe(all)
    held.release()
  })

  it('keeps what several channels list once, and counts it once, until the last has left', () => {
    const { memory, partitions, used } = make()
    const offsets = Uint16Array.from(partitions.keys())
    const first = memory.share(partitions, offsets)
    const bytes = used()
    const second = memory.share([...partitions], Uint16Array.from(offsets))
    expect(second.partitions).toBe(first.partitions)
    expect(second.offsets).toBe(first.offsets)
    expect(used()).toBe(bytes)
    first.release()
    expect(used()).toBe(bytes)
    second.release()
    expect(used()).toBe(0)
    expect(() => {
      second.release()
    }).toThrow(/once/)
  })

  it('keeps apart what differs in a partition, in its number or in length', () => {
    const { memory, partitions, used } = make()
    const offsets = Uint16Array.from(partitions.keys())
    const lists = [
      memory.share(partitions, offsets),
      memory.share(partitions.slice(0, 9), offsets.slice(0, 9)),
      memory.share([...partitions], offsets.toReversed()),
      memory.share([...partitions.slice(0, 8), ...partitions.slice(8).reverse()], offsets),
      // More than are compared: not shared, and not lost either.
      memory.share(partitions.slice(0, 2), offsets.slice(0, 2)),
      memory.share(partitions.slice(0, 2), offsets.slice(0, 2)),
    ]
    expect(new Set(lists.map((list) => list.partitions)).size).toBe(6)
    for (const list of lists) list.release()
    expect(used()).toBe(0)
  })
})

describe('cursor allowance', () => {
  it('always has room for one, however short memory is', () => {
    const { bench, memory, used } = make()
    const held = memory.reserve(bench.ledger.partBytes('control'), undefined)
    const allowance = new CursorAllowance(memory, () => jobId)
    expect(allowance.hasRoom()).toBe(true)
    allowance.take()
    expect(allowance.hasRoom()).toBe(false)
    expect(() => {
      allowance.take()
    }).toThrow(/paid for/)
    allowance.give()
    expect(allowance.hasRoom()).toBe(true)
    held.release()
    expect(used()).toBe(0)
  })

  it('pays for more in steps and gives back what it has not needed for long', () => {
    const { memory, used } = make()
    const allowance = new CursorAllowance(memory, () => jobId)
    const step = cursorsPerReservation * cursorBytes
    for (let taken = 0; taken < 1 + 3 * cursorsPerReservation; taken++) {
      expect(allowance.hasRoom()).toBe(true)
      allowance.take()
    }
    expect(used()).toBe(3 * step)
    for (let given = 0; given < 2 * cursorsPerReservation; given++) allowance.give()
    expect(used()).toBe(2 * step)
    for (let given = 0; given < 1 + cursorsPerReservation; given++) allowance.give()
    expect(used()).toBe(0)
  })
})
