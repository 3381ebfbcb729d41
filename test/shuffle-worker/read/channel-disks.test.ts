import { describe, expect, it } from 'vitest'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import {
  ChannelDisks,
  type SweepScheduler,
  unfinishedRunsMax,
} from '../../../shuffle-worker/read/channel-disks.ts'
import type { SweepChannel } from '../../../shuffle-worker/read/disk-list.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import { ReadBench } from './support/read-bench.ts'

function make(diskCount: number) {
  const bench = new ReadBench()
  const woken: number[] = []
  const schedulers = Array.from({ length: diskCount }, (_, disk): SweepScheduler => ({
    listed: () => undefined,
    unlisted: () => undefined,
    remove: () => undefined,
    wake: () => woken.push(disk),
  }))
  const channel = {} as SweepChannel
  const disks = new ChannelDisks(channel, {
    memory: new ListMemory(bench.ledger),
    schedulerOf: (partition) => {
      const scheduler = schedulers[partition.fileOrder % diskCount]
      if (scheduler === undefined) throw new Error('no such disk')
      return scheduler
    },
  })
  const cursors = Array.from({ length: 40 }, (_, index) => {
    const partition = bench.add(index, 1, [])
    const range = { firstSubpartition: 0, lastSubpartition: 0 }
    return new PartitionCursor({ index, partition, ...range, start: fromBeginning })
  })
  const lists = cursors.slice(0, diskCount).map(({ partition }) => disks.of(partition).list)
  return { disks, cursors, lists, woken }
}

describe('channel disks', () => {
  it('keeps one list a disk and wakes them all', () => {
    const { disks, lists, woken, cursors } = make(3)
    expect(new Set(lists).size).toBe(3)
    expect(
      cursors.every(({ partition, index }) => disks.of(partition).list === lists[index % 3]),
    ).toBe(true)
    disks.wake()
    expect(woken).toEqual([0, 1, 2])
    expect([...disks.parts].length).toBe(3)
    expect(disks.listedCount + disks.plannedBytes).toBe(0)
  })

  it('leaves the whole room to a single disk and half of it to one of several', () => {
    const [only] = make(1).lists
    const [one] = make(2).lists
    if (only === undefined || one === undefined) throw new Error('there are disks')
    expect(make(1).disks.roomBytes(only, 1000, 10)).toBe(1000)
    expect(make(2).disks.roomBytes(one, 1000, 10)).toBe(500)
    // Never less than one entry needs.
    expect(make(2).disks.roomBytes(one, 1000, 900)).toBe(900)
  })

  it('counts unfinished runs, of one disk at most half where there are several', () => {
    const { disks, cursors, lists } = make(2)
    const begun = cursors.filter((cursor) => disks.beginRun(cursor))
    expect(begun.length).toBe(unfinishedRunsMax)
    expect(lists.map((list) => list.runs)).toEqual([8, 8])
    for (const cursor of cursors) disks.endRun(cursor)
    expect(lists.map((list) => list.runs)).toEqual([0, 0])
    const alone = make(1)
    expect(alone.cursors.filter((cursor) => alone.disks.beginRun(cursor)).length).toBe(
      unfinishedRunsMax,
    )
  })
})
