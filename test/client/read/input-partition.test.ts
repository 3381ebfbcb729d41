import { describe, expect, test } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import {
  broadcastSubpartition,
  EntryChecksum,
  EntryReader,
  entryHeaderLength,
  writeEntryHeader,
} from '../../../client/protocol/entry.ts'
import { InputPartition } from '../../../client/read/input-partition.ts'
import { ClientBench, descriptorOf } from '../support/client-bench.ts'

const bench = new ClientBench()
const descriptor = descriptorOf(await bench.startWorker('w1'))

function newPartition(): InputPartition {
  return new InputPartition(
    { inputIndex: 3, descriptor, firstSubpartition: 1, lastSubpartition: 2, isPending: false },
    { recordBytesMax: 1000 },
  )
}

/** An entry as the producer makes it, and a reader that stands on it. */
function entryOf(options: {
  readonly regionIndex?: number
  readonly subpartition?: number
  readonly position?: number
  readonly isLast?: boolean
  readonly text?: string
}): EntryReader {
  const { regionIndex = 0, subpartition = 1, position = 0, isLast = false, text = 'abc' } = options
  const payload = Buffer.from(text)
  const flags = isLast ? 2 : 0
  const checksum = new EntryChecksum(descriptor.key).of(
    { regionIndex, subpartition, position, flags, type: 0 },
    payload,
  )
  const bytes = Buffer.alloc(entryHeaderLength + payload.length)
  const header = { length: payload.length, subpartition, flags, type: 0, checksum }
  bytes.set(payload, writeEntryHeader(bytes, 0, header))
  const reader = new EntryReader('PROTOCOL').reset(bytes, 0, bytes.length)
  reader.next()
  return reader
}

describe('an input partition', () => {
  test('knows where to go on, to the byte', () => {
    const partition = newPartition()
    expect(partition.start).toEqual({ regionIndex: 0, subpartition: 0, byteOffset: 0 })
    partition.enterRun(0, 1)
    partition.accept(entryOf({ text: 'abc' }))
    partition.accept(entryOf({ position: 1, text: 'de', isLast: true }))
    expect(partition.start).toEqual({ regionIndex: 0, subpartition: 1, byteOffset: 37 })
    expect(partition.isRunOpen).toBe(false)
    partition.enterRun(0, 2)
    partition.accept(entryOf({ subpartition: 2, text: '' }))
    expect(partition.isRunOpen).toBe(true)
    expect(partition.start).toEqual({ regionIndex: 0, subpartition: 2, byteOffset: 16 })
    partition.enterRun(0, 2)
    partition.accept(entryOf({ subpartition: 2, position: 1, isLast: true }))
    partition.enterRun(4, 1)
    partition.accept(entryOf({ regionIndex: 4, isLast: true }))
    expect(partition.listEntry(7)).toEqual({
      index: 7,
      key: descriptor.key,
      firstSubpartition: 1,
      lastSubpartition: 2,
      start: { regionIndex: 4, subpartition: 1, byteOffset: 19 },
      isPending: false,
    })
    partition.finish({ entryCount: 5, byteCount: 91 })
    expect(partition.state).toBe('finished')
  })

  test('takes the same broadcast run once for each subpartition', () => {
    const partition = newPartition()
    for (const subpartition of [1, 2]) {
      partition.enterRun(0, subpartition)
      partition.accept(entryOf({ subpartition: broadcastSubpartition, isLast: true }))
    }
    expect(partition.entryCount).toBe(2)
  })

  test('a gap, a repeat, a stranger and a changed byte fail the checksum', () => {
    for (const wrong of [{ position: 1 }, { regionIndex: 1 }, { subpartition: 2 }]) {
      const partition = newPartition()
      partition.enterRun(0, 1)
      expect(() => {
        partition.accept(entryOf(wrong))
      }).toThrow(ShuffleError)
      expect(partition.entryCount).toBe(0)
    }
    const partition = newPartition()
    partition.enterRun(0, 1)
    const entry = entryOf({})
    entry.payload()[0] = 1
    expect(() => {
      partition.accept(entry)
    }).toThrow(/checksum/)
  })

  test('runs come in order, whole, and within the range that was asked for', () => {
    const cases: readonly [string, (partition: InputPartition) => void, RegExp][] = [
      [
        'outside',
        (partition) => {
          partition.enterRun(0, 3)
        },
        /not asked for/,
      ],
      [
        'unfinished',
        (partition) => {
          partition.enterRun(0, 1)
          partition.accept(entryOf({}))
          partition.enterRun(0, 2)
        },
        /without its last entry/,
      ],
      [
        'backwards',
        (partition) => {
          partition.enterRun(1, 1)
          partition.accept(entryOf({ regionIndex: 1, isLast: true }))
          partition.enterRun(0, 2)
        },
        /out of order/,
      ],
      [
        'again',
        (partition) => {
          partition.enterRun(0, 1)
          partition.accept(entryOf({ isLast: true }))
          partition.enterRun(0, 1)
        },
        /behind its end/,
      ],
      [
        'more',
        (partition) => {
          partition.enterRun(0, 1)
          partition.accept(entryOf({ isLast: true }))
          partition.accept(entryOf({ position: 1 }))
        },
        /behind its end/,
      ],
    ]
    for (const [name, act, message] of cases) {
      expect(() => {
        act(newPartition())
      }, name).toThrow(message)
    }
  })

  test('totals that differ, or a run that has not ended, are COUNT_MISMATCH', () => {
    const partition = newPartition()
    partition.enterRun(0, 1)
    partition.accept(entryOf({}))
    for (const totals of [
      { entryCount: 1, byteCount: 19 },
      { entryCount: 2, byteCount: 19 },
    ]) {
      expect(() => {
        partition.finish(totals)
      }).toThrow(/the worker counts/)
    }
  })

  test('failed and reset it begins anew, and what came before is stale', () => {
    const partition = newPartition()
    partition.enterRun(0, 1)
    partition.accept(entryOf({}))
    const { generation } = partition
    partition.fail(new ShuffleError('DISK_FAILED', 'x'))
    expect([partition.state, partition.failure?.code]).toEqual(['failed', 'DISK_FAILED'])
    partition.reset(descriptor)
    expect(partition.generation).toBeGreaterThan(generation + 1)
    expect([partition.state, partition.entryCount, partition.byteCount]).toEqual(['waiting', 0, 0])
    expect(partition.start).toEqual({ regionIndex: 0, subpartition: 0, byteOffset: 0 })
    partition.enterRun(0, 1)
    partition.accept(entryOf({}))
  })

  test('moved to another holder it stays where it stands', () => {
    const partition = newPartition()
    partition.enterRun(0, 1)
    partition.accept(entryOf({}))
    const { start, generation } = partition
    const [holder] = descriptor.holders
    if (holder === undefined) throw new Error('one holder')
    partition.move({ ...descriptor, holders: [{ ...holder, host: 'elsewhere' }] })
    expect([partition.start, partition.generation]).toEqual([start, generation])
    expect(partition.holder.host).toBe('elsewhere')
  })
})
