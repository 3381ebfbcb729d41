import { describe, expect, it } from 'vitest'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import { DiskList, type SweepChannel } from '../../../shuffle-worker/read/disk-list.ts'
import { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import { ReadBench } from './support/read-bench.ts'

function make() {
  const bench = new ReadBench()
  const state = { room: 1_000_000, mayBegin: true }
  const channel: SweepChannel = {
    isClosed: false,
    isStarved: false,
    roomBytes: () => state.room,
    canBeginRun: () => state.mayBegin,
    settle: () => undefined,
    fail: () => undefined,
    afterDelivery: () => undefined,
    beginRun: () => true,
    endRun: () => undefined,
    append: () => true,
  }
  const cursor = (order: number) =>
    new PartitionCursor({
      index: order,
      partition: bench.add(order, 1, [{ kind: 'sorted', runs: [[bench.payload(100)]] }]),
      firstSubpartition: 0,
      lastSubpartition: 0,
      start: fromBeginning,
    })
  return { state, list: new DiskList(channel), cursor }
}

describe('disk list', () => {
  it('gives the next cursor in the order of the files, whatever the order they came in', () => {
    const { list, cursor } = make()
    const [five, one, nine] = [cursor(5), cursor(1), cursor(9)]
    for (const each of [five, one, nine]) list.add(each)
    expect(list.nextFrom(0)).toBe(one)
    expect(list.nextFrom(2)).toBe(five)
    expect(list.nextFrom(6)).toBe(nine)
    expect(list.nextFrom(10)).toBeUndefined()
    list.remove(five)
    expect(list.nextFrom(2)).toBe(nine)
    list.remove(five)
    expect(list.cursorCount).toBe(2)
  })

  it('removes the one that is meant among several of one file', () => {
    const { list, cursor } = make()
    const [first, second] = [cursor(3), cursor(3)]
    list.add(first)
    list.add(second)
    list.remove(second)
    expect(list.nextFrom(0)).toBe(first)
  })

  it('gives none without room, and only unfinished runs when no more may begin', () => {
    const { list, cursor, state } = make()
    const [one, two] = [cursor(1), cursor(2)]
    list.add(one)
    list.add(two)
    two.holdsRun = true
    state.mayBegin = false
    expect(list.nextFrom(0)).toBe(two)
    expect(list.canTake(one)).toBe(false)
    expect(list.plan(one)).toBeUndefined()
    state.room = 10
    expect(list.nextFrom(0)).toBeUndefined()
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
