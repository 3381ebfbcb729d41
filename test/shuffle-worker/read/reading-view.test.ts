// One view with schedulers that do nothing on their own: its list, its rooms, its runs.

import { describe, expect, it } from 'vitest'
import { entryHeaderLength } from '../../../client/protocol/entry.ts'
import { ReadMemory } from '../../../shuffle-worker/read/read-memory.ts'
import type { DiskList } from '../../../shuffle-worker/read/disk-list.ts'
import type { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import type { SweepScheduler } from '../../../shuffle-worker/read/channel-disks.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { ReadingView } from '../../../shuffle-worker/read/reading-view.ts'
import type { MapPartition } from '../../../shuffle-worker/storage/storage-types.ts'
import { Consumer } from './support/consumer.ts'
import { bufferSizeBytes } from './support/memory-partition.ts'
import { entryOf, ReadBench } from './support/read-bench.ts'

class IdleScheduler implements SweepScheduler {
  readonly wants = new Map<PartitionCursor, DiskList>()
  wakes = 0

  lists = new Set<DiskList>()
  readonly listedNow: MapPartition[] = []

  listed(list: DiskList, partition: MapPartition): void {
    this.lists.add(list)
    this.listedNow.push(partition)
  }

  unlisted(_list: DiskList, partition: MapPartition): void {
    this.listedNow.splice(this.listedNow.indexOf(partition), 1)
  }

  /** As a visit does. */
  beginAll(): void {
    for (const list of this.lists) {
      for (const partition of this.listedNow.splice(0)) {
        list.begin(partition, (cursor) => this.wants.set(cursor, list))
      }
    }
  }

  remove(_list: DiskList, cursor: PartitionCursor): void {
    this.wants.delete(cursor)
  }

  wake(): void {
    this.wakes += 1
  }
}

function make(diskCount: number, isBegun = true) {
  const bench = new ReadBench()
  const disks = Array.from({ length: diskCount }, () => new IdleScheduler())
  const consumer = new Consumer(bench.clock)
  consumer.isGranting = false
  const calls: string[] = []
  const view = new ReadingView({
    clock: bench.clock,
    memory: new ReadMemory(bench.ledger),
    listMemory: new ListMemory(bench.ledger),
    output: consumer,
    lookup: (key) => bench.partitions.get(String(key.partitionIndex)) ?? { state: 'unknown' },
    schedulerOf: (partition) => {
      const disk = disks[partition.fileOrder % diskCount]
      if (disk === undefined) throw new Error('no such disk')
      return disk
    },
    bufferSizeBytes,
    initialCredit: 20,
    aheadBytesMax: 64 * 1024,
    flushAfterMs: 20,
    flushLateAfterMs: 20,
    entriesMax: 1000,
    onFinished: () => calls.push('finished'),
    onClosed: () => calls.push('closed'),
  })
  for (let index = 0; index < 40; index++) {
    bench.add(index, 1, [{ kind: 'sorted', runs: [[bench.payload(100)]] }])
  }
  view.addPartitions(Array.from({ length: 40 }, (_, index) => entryOf(index, index, [0, 0])))
  for (const disk of disks) if (isBegun) disk.beginAll()
  const cursorsOf = (disk: number) => [...(disks[disk]?.wants.keys() ?? [])]
  const listOf = (disk: number) => [...(disks[disk]?.wants.values() ?? [])][0]
  return { bench, disks, consumer, view, calls, cursorsOf, listOf }
}

describe('reading view', () => {
  it('hands each entry to the scheduler of its disk and takes it back when it is dropped', () => {
    const { disks, view, calls } = make(2)
    expect(disks.map(({ wants }) => wants.size)).toEqual([20, 20])
    view.drop(3)
    expect(disks.map(({ wants }) => wants.size)).toEqual([20, 19])
    view.close()
    expect(disks.map(({ wants }) => wants.size)).toEqual([0, 0])
    expect(calls).toEqual(['closed'])
  })

  it('keeps entries listed until their turn comes, also through a drop and the close', () => {
    const { bench, disks, view } = make(2, false)
    expect(disks.map(({ listedNow }) => listedNow.length)).toEqual([20, 20])
    expect(view.openEntries).toBe(40)
    view.drop(3)
    view.drop(3)
    expect(disks.map(({ listedNow }) => listedNow.length)).toEqual([20, 19])
    expect(view.openEntries).toBe(39)
    disks[0]?.beginAll()
    expect(view.openEntries).toBe(39)
    view.close()
    expect(disks.map(({ listedNow, wants }) => listedNow.length + wants.size)).toEqual([0, 0])
    expect(view.openEntries).toBe(0)
    expect(bench.ledger.usedBytes('control')).toBe(0)
  })

  it('lets one of several disks have at most half of its room and of its runs', () => {
    const { view, listOf, cursorsOf } = make(2)
    const [one, two] = [listOf(0), listOf(1)]
    if (one === undefined || two === undefined) throw new Error('both disks have entries')
    const half = view.roomBytes(one)
    expect(half).toBe(view.roomBytes(two))
    for (const cursor of cursorsOf(0).slice(0, 8)) expect(view.beginRun(cursor)).toBe(true)
    expect(view.canBeginRun(one)).toBe(false)
    expect(view.canBeginRun(two)).toBe(true)
    const alone = make(1)
    const only = alone.listOf(0)
    if (only === undefined) throw new Error('the disk has entries')
    expect(alone.view.roomBytes(only)).toBeGreaterThanOrEqual(2 * half - bufferSizeBytes)
  })

  it('has at most 16 unfinished runs', () => {
    const { view, cursorsOf } = make(1)
    const begun = cursorsOf(0).filter((cursor) => view.beginRun(cursor))
    expect(begun.length).toBe(16)
    const [first] = begun
    if (first !== undefined) view.endRun(first)
    const next = cursorsOf(0).find((cursor) => !cursor.holdsRun)
    expect(next !== undefined && view.beginRun(next)).toBe(true)
  })

  it('finishes when each entry has failed or was dropped, and then once', () => {
    const { view, consumer, cursorsOf, calls } = make(1)
    view.end(40)
    for (const cursor of cursorsOf(0)) {
      if (cursor.index % 2 === 0) view.drop(cursor.index)
      else view.fail(cursor, new Error('the disk says no'))
    }
    expect(consumer.partition(1).error?.code).toBe('DISK_FAILED')
    expect(consumer.finish).toEqual({
      partitionCount: 40,
      frameCount: 0,
      entryCount: 0,
      byteCount: 0,
    })
    expect(calls).toEqual(['closed', 'finished'])
    view.close()
    expect(calls).toEqual(['closed', 'finished'])
  })

  it('wakes the disks when credit comes or the connection drains, and not after its end', () => {
    const { view, disks } = make(1)
    const [disk] = disks
    const before = disk?.wakes ?? 0
    view.addCredit(1)
    view.onWritable()
    expect(disk?.wakes).toBeGreaterThanOrEqual(before + 2)
    view.close()
    const after = disk?.wakes
    view.addCredit(1)
    view.onWritable()
    view.afterDelivery()
    expect(disk?.wakes).toBe(after)
    expect(view.credit).toBe(0)
  })

  it('wakes the disks when its last body went out for its age: idle, it takes what is cut', async () => {
    const { bench, view, disks, cursorsOf, consumer } = make(1)
    const [cursor] = cursorsOf(0)
    if (cursor === undefined) throw new Error('the disk has entries')
    const entry = Buffer.alloc(entryHeaderLength + 10)
    entry.writeUInt32BE(10)
    view.append(cursor, { partition: 0, regionIndex: 0, subpartition: 0 }, entry)
    view.afterDelivery()
    expect([view.isIdle, consumer.bodySizes.length]).toEqual([false, 0])
    const before = disks[0]?.wakes ?? 0
    await bench.clock.advance(100)
    expect([view.isIdle, consumer.bodySizes.length]).toEqual([true, 1])
    expect(disks[0]?.wakes).toBe(before + 1)
    view.close()
  })

  it.each(['credit', 'the connection'])(
    'ends with the last body though no entry does: one was dropped whose data waited for %s',
    async (what) => {
      const bench = new ReadBench()
      const run = Array.from({ length: 100 }, () => bench.payload(1000))
      bench.add(0, 1, [{ kind: 'sorted', runs: [run] }])
      const consumer = bench.open()
      consumer.isGranting = false
      consumer.view?.addPartitions([entryOf(0, 0, [0, 0])])
      consumer.view?.end(1)
      await bench.clock.advance(1000)
      consumer.isWritable = what === 'credit'
      consumer.view?.drop(0)
      expect([consumer.view?.openEntries, consumer.view?.heldBuffers]).toEqual([0, 16])
      expect(consumer.finish).toBeUndefined()
      consumer.credit += 50
      consumer.view?.addCredit(50)
      consumer.isWritable = true
      consumer.view?.onWritable()
      expect(consumer.finish?.frameCount).toBe(consumer.bodySizes.length)
      await bench.clock.advance(1000)
      bench.expectNothingHeld()
    },
  )

  it('refuses what does not fit its list', () => {
    const { view } = make(1)
    expect(() => {
      view.drop(40)
    }).toThrow(/not in the list/)
    expect(() => {
      view.addCredit(10_000_000)
    }).toThrow(/credit/)
    view.end(40)
    expect(() => {
      view.addPartitions([])
    }).toThrow(/after ReadEnd/)
  })

  it('tells waiting for its turn from waiting for the disk', async () => {
    const bench = new ReadBench()
    bench.add(0, 1, [{ kind: 'sorted', runs: [[bench.payload(1000)]] }])
    bench.disk.latencyMs = [40, 40]
    const consumer = bench.open()
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0])])
    await bench.clock.advance(20)
    const sums = consumer.view?.stateSums()
    expect(sums).toMatchObject({ disk: 20, 'disk-queue': 0 })
    consumer.view?.close()
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('says what it waits for', async () => {
    const { view, bench, consumer } = make(1)
    await bench.clock.advance(100)
    consumer.isWritable = false
    view.addCredit(1)
    await bench.clock.advance(50)
    expect(view.stateSums()).toMatchObject({ 'disk-queue': 100, socket: 50 })
    view.close()
  })
})
