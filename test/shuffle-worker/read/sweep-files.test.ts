import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import { DiskList, type SweepChannel } from '../../../shuffle-worker/read/disk-list.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import { SweepFiles } from '../../../shuffle-worker/read/sweep-files.ts'
import type { MapPartition } from '../../../shuffle-worker/storage/storage-types.ts'
import { ReadBench } from './support/read-bench.ts'

function make(openFilesMax: number) {
  const bench = new ReadBench()
  const faults: unknown[] = []
  const failed: string[] = []
  const files = new SweepFiles({ openFilesMax, onNotClosed: (error) => faults.push(error) })
  const state = { mayBegin: true }
  const channel: SweepChannel = {
    isClosed: false,
    isStarved: false,
    isIdle: false,
    roomBytes: () => 1_000_000,
    canBeginRun: () => state.mayBegin,
    hasCursorRoom: () => true,
    beginEntry: (of, entry) => {
      const cursor = new PartitionCursor(entry)
      of.add(cursor)
      return cursor
    },
    settle: () => undefined,
    fail: (cursor) => {
      failed.push(`begun ${String(cursor.index)}`)
      cursor.isOver = true
      list.remove(cursor)
      files.remove(list, cursor)
    },
    failEntry: ({ index }) => failed.push(`listed ${String(index)}`),
    afterPlan: () => undefined,
    afterDelivery: () => undefined,
    beginRun: () => true,
    endRun: () => undefined,
    append: () => true,
  }
  const list = new DiskList(channel, new ListMemory(bench.ledger))
  const partitions = Array.from({ length: 8 }, (_, order) =>
    bench.add(order, 1, [{ kind: 'sorted', runs: [[bench.payload(10)]] }]),
  )
  let index = 0
  const listIt = (partition: MapPartition) => {
    const range = { firstSubpartition: 0, lastSubpartition: 0, start: fromBeginning }
    list.listed.add([{ index: index++, partition, ...range }], () => {
      files.listed(list, partition)
    })
  }
  return { bench, files, partitions, list, listIt, faults, failed, state }
}

describe('sweep files', () => {
  it('keeps a file as long as someone has begun it or has it in a list', async () => {
    const { bench, files, list, partitions, listIt } = make(10)
    const [partition] = partitions
    if (partition === undefined) throw new Error('there is one')
    listIt(partition)
    const file = files.of(partition)
    expect(file.listedCount).toBe(1)
    await files.open(file)
    files.begin(file)
    expect([file.listedCount, file.wants.size]).toEqual([0, 1])
    listIt(partition)
    const [cursor] = file.wants.keys()
    if (cursor === undefined) throw new Error('it was begun')
    list.remove(cursor)
    files.remove(list, cursor)
    expect(files.of(partition)).toBe(file)
    expect(files.openCount).toBe(1)
    list.listed.take(partition)
    files.unlisted(list, partition)
    await bench.clock.settle()
    expect([files.openCount, bench.disk.openReaders, files.lists.size]).toEqual([0, 0, 0])
    expect(files.of(partition)).not.toBe(file)
  })

  it('closes those visited longest ago, and opens them again when their turn comes', async () => {
    const { bench, files, partitions, listIt } = make(3)
    for (const partition of partitions) listIt(partition)
    const all = partitions.map((partition) => files.of(partition))
    for (const file of all) files.begin(file)
    for (const file of all) await files.open(file)
    const [first] = all
    if (first === undefined) throw new Error('there is one')
    await files.open(first)
    files.trim()
    await bench.clock.settle()
    expect([files.openCount, bench.disk.openReaders]).toEqual([3, 3])
    expect(partitions.map((partition) => files.of(partition))).toEqual(all)
    for (const file of all) await files.open(file)
    expect(bench.disk.openReaders).toBe(8)
    files.close()
    await bench.clock.settle()
    expect([files.openCount, bench.disk.openReaders]).toEqual([0, 0])
  })

  it('gives the next partition of which a channel can take something', () => {
    const { files, partitions, listIt, state } = make(3)
    for (const partition of partitions.slice(2, 4)) listIt(partition)
    expect(files.nextFrom(0)).toBe(partitions[2])
    expect(files.nextFrom(3)).toBe(partitions[3])
    expect(files.nextFrom(4)).toBeUndefined()
    state.mayBegin = false
    expect(files.nextFrom(0)).toBeUndefined()
  })

  it('fails what was begun and what was listed of a file that can not be read', async () => {
    const { bench, files, partitions, listIt, failed, faults } = make(3)
    const [partition, other] = partitions
    if (partition === undefined || other === undefined) throw new Error('there are two')
    listIt(partition)
    const file = files.of(partition)
    await files.open(file)
    files.begin(file)
    listIt(partition)
    listIt(other)
    files.fail(file, new ShuffleError('DISK_FAILED', 'it says no'))
    await bench.clock.settle()
    expect(failed).toEqual(['begun 0', 'listed 1'])
    expect([files.openCount, bench.disk.openReaders, files.lists.size]).toEqual([0, 0, 1])
    expect(faults).toEqual([])
  })
})
