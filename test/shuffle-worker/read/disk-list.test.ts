import { describe, expect, it } from 'vitest'
import { entryHeaderLength } from '../../../client/protocol/entry.ts'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import { segmentHeaderLength } from '../../../client/protocol/read-segment.ts'
import { aheadBytesMin } from '../../../shuffle-worker/read/credit-sender.ts'
import { DiskList, orderBehind, type SweepChannel } from '../../../shuffle-worker/read/disk-list.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import type { MapPartition } from '../../../shuffle-worker/storage/storage-types.ts'
import { bufferSizeBytes } from './support/memory-partition.ts'
import { ReadBench } from './support/read-bench.ts'

function make() {
  const bench = new ReadBench()
  const state = { room: 1_000_000, mayBegin: true, hasCursorRoom: true, isIdle: false }
  const channel: SweepChannel = {
    isClosed: false,
    isStarved: false,
    get isIdle() {
      return state.isIdle
    },
    roomBytes: () => state.room,
    canBeginRun: () => state.mayBegin,
    settle: () => undefined,
    fail: () => undefined,
    afterDelivery: () => undefined,
    beginRun: () => true,
    endRun: () => undefined,
    append: () => true,
    hasCursorRoom: () => state.hasCursorRoom,
    beginEntry: (list, entry) => {
      const cursor = new PartitionCursor(entry)
      list.add(cursor)
      return cursor
    },
    failEntry: () => undefined,
    afterPlan: () => undefined,
  }
  const cursor = (order: number, entries = 1) =>
    new PartitionCursor({
      index: order,
      partition: bench.add(order, 1, [
        { kind: 'sorted', runs: [Array.from({ length: entries }, () => bench.payload(100))] },
      ]),
      firstSubpartition: 0,
      lastSubpartition: 0,
      start: fromBeginning,
    })
  const list = new DiskList(channel, new ListMemory(bench.ledger))
  const listEntry = (order: number, entries = 1) => {
    const { index, partition } = cursor(order, entries)
    const entry = { index, partition, firstSubpartition: 0, lastSubpartition: 0 }
    list.listed.add([{ ...entry, start: fromBeginning }], () => undefined)
    return partition
  }
  /** Of a cursor, or of one that is only listed. */
  const enter = async (cursor: PartitionCursor) => {
    const reader = await cursor.partition.openReader()
    const index = await reader.regionIndex(0)
    cursor.enterRegion(index)
    index.release()
  }
  return { state, list, cursor, listEntry, enter }
}

describe('disk list', () => {
  it('gives the next cursor in the order of the files, whatever the order they came in', () => {
    const { list, cursor } = make()
    const [five, one, nine] = [cursor(5), cursor(1), cursor(9)]
    for (const each of [five, one, nine]) list.add(each)
    expect(list.nextFrom(0)).toBe(one.partition)
    expect(list.nextFrom(2)).toBe(five.partition)
    expect(list.nextFrom(6)).toBe(nine.partition)
    expect(list.nextFrom(10)).toBeUndefined()
    list.remove(five)
    expect(list.nextFrom(2)).toBe(nine.partition)
    list.remove(five)
    expect(list.cursorCount).toBe(2)
  })

  it('keeps neighbours of one segment in order: their orders differ by fractions', () => {
    const { list, cursor } = make()
    const orders = [5.1, 5.3, 5.2, 5.25]
    const cursors = orders.map(cursor)
    for (const each of cursors) list.add(each)
    const seen: number[] = []
    let next = list.nextFrom(0)
    while (next !== undefined) {
      seen.push(next.fileOrder)
      next = list.nextFrom(orderBehind(next.fileOrder))
    }
    expect(seen).toEqual([5.1, 5.2, 5.25, 5.3])
  })

  it('gives what is listed among what was begun, and makes cursors when there is room for them', () => {
    const { list, cursor, listEntry, state } = make()
    const four = cursor(4)
    const [two, six] = [listEntry(2), listEntry(6)]
    const begin = (partition: MapPartition) => {
      const begun: MapPartition[] = []
      list.begin(partition, (each) => begun.push(each.partition))
      return begun
    }
    list.add(four)
    expect(list.nextFrom(0)).toBe(two)
    expect(list.nextFrom(3)).toBe(four.partition)
    expect(list.nextFrom(5)).toBe(six)
    state.hasCursorRoom = false
    expect(list.nextFrom(0)).toBe(four.partition)
    expect(begin(two)).toEqual([])
    state.hasCursorRoom = true
    expect(begin(two)).toEqual([two])
    expect(begin(two)).toEqual([])
    expect(list.listed.count).toBe(1)
    expect(list.isEmpty).toBe(false)
  })

  it('removes the one that is meant among several of one file', () => {
    const { list, cursor } = make()
    const [first, second] = [cursor(3), cursor(3)]
    list.add(first)
    list.add(second)
    list.remove(second)
    expect(list.nextFrom(0)).toBe(first.partition)
  })

  it('gives none without room, and only unfinished runs when no more may begin', () => {
    const { list, cursor, state } = make()
    const [one, two] = [cursor(1), cursor(2)]
    list.add(one)
    list.add(two)
    two.holdsRun = true
    state.mayBegin = false
    expect(list.nextFrom(0)).toBe(two.partition)
    expect(list.canTake(one)).toBe(false)
    expect(list.plan(one, 1_000_000)).toBeUndefined()
    state.room = 10
    expect(list.nextFrom(0)).toBeUndefined()
  })

  it('begins no run before there is room for all of it, while something else is on its way', async () => {
    const { list, cursor, listEntry, enter, state } = make()
    const runBytes = 40 * (entryHeaderLength + 100)
    const wishedBytes = runBytes + segmentHeaderLength
    const short = cursor(1, 40)
    list.add(short)
    await enter(short)
    const listed = listEntry(2, 40)
    state.room = wishedBytes - 1
    expect(list.nextFrom(0)).toBeUndefined()
    expect(list.canTake(short)).toBe(false)
    expect(list.plan(short, 1_000_000)).toBeUndefined()
    state.room = wishedBytes
    expect(list.nextFrom(0)).toBe(short.partition)
    expect(list.nextFrom(2)).toBe(listed)
    expect(list.plan(short, 1_000_000)?.plannedBytes).toBe(runBytes)
  })

  it('begins a long run with what any channel may have', async () => {
    const { list, cursor, enter, state } = make()
    const long = cursor(1, 700)
    list.add(long)
    await enter(long)
    state.room = aheadBytesMin + bufferSizeBytes - 1
    expect(list.nextFrom(0)).toBeUndefined()
    state.room += 1
    expect(list.nextFrom(0)).toBe(long.partition)
    expect(list.plan(long, 1_000_000)?.plannedBytes).toBe(state.room)
  })

  it('begins a run with the room there is where its consumer has nothing else to wait for, or goes on', async () => {
    const { list, cursor, listEntry, enter, state } = make()
    const [idle, begun] = [cursor(1, 40), cursor(3, 40)]
    for (const each of [idle, begun]) {
      list.add(each)
      await enter(each)
    }
    const listed = listEntry(2, 40)
    state.room = bufferSizeBytes
    begun.holdsRun = true
    expect(list.nextFrom(0)).toBe(begun.partition)
    state.isIdle = true
    expect(list.nextFrom(0)).toBe(idle.partition)
    expect(list.nextFrom(2)).toBe(listed)
    const slice = list.plan(idle, 1_000_000)
    expect(slice?.plannedBytes).toBe(bufferSizeBytes)
    expect(list.nextFrom(2)).toBe(begun.partition)
    if (slice !== undefined) list.retire(slice)
    expect(list.nextFrom(2)).toBe(listed)
  })

  it('knows since when it waits', () => {
    const { list } = make()
    list.startWaiting(5)
    list.startWaiting(9)
    expect(list.waitingSinceMs).toBe(5)
    list.served(20)
    expect(list.waitingSinceMs).toBe(20)
    expect(list.hasBeenServed).toBe(true)
    list.stopWaiting()
    expect(list.waitingSinceMs).toBeUndefined()
  })
})
