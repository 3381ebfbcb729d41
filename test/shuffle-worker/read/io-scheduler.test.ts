// The carousel over partitions in memory: what is read, for whom, in which order.

import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { RegionTurns } from '../../../shuffle-worker/write/region-turns.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'
import type { RegionContent } from './support/memory-partition.ts'
import { entryOf, ReadBench } from './support/read-bench.ts'

function sorted(bench: ReadBench, subpartitions: number, sizes: () => number[]): RegionContent {
  return {
    kind: 'sorted',
    runs: Array.from({ length: subpartitions }, () => sizes().map((size) => bench.payload(size))),
  }
}

describe('io scheduler', () => {
  it('goes up through the files and reads each once for all channels that can take it', async () => {
    const bench = new ReadBench()
    const files = 10
    for (let index = 0; index < files; index++) {
      bench.add(index, 8, [sorted(bench, 8, () => [200])])
    }
    const consumers = Array.from({ length: 8 }, (_, subpartition) => {
      const consumer = bench.open()
      const range: [number, number] = [subpartition, subpartition]
      const order = Array.from({ length: files }, (_f, i) => (i * 7) % files)
      consumer.view?.addPartitions(order.map((file, index) => entryOf(index, file, range)))
      consumer.view?.end(files)
      return consumer
    })
    await bench.clock.runUntil(() => consumers.every(({ finish }) => finish !== undefined))
    expect(bench.disk.reads.map(({ fileOrder }) => fileOrder)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    ])
  })

  it.each([
    [new ShuffleError('DISK_FAILED', 'no probe has succeeded'), []],
    [new Error('a mistake'), ['the read scheduler met an unexpected error']],
  ])(
    'delivers what it read when the file does not close for %s (simulation, seed 200620)',
    async (closeError, errors) => {
      const bench = new ReadBench()
      bench.add(0, 1, [sorted(bench, 1, () => [200])])
      bench.disk.closeError = closeError
      const consumer = bench.open()
      consumer.view?.addPartitions([entryOf(0, 0, [0, 0])])
      consumer.view?.end(1)
      await bench.clock.runUntil(() => consumer.finish !== undefined)
      await bench.clock.advance(1000)
      expect(consumer.partition(0).payloads).toHaveLength(1)
      expect(bench.errors).toEqual(errors)
      bench.expectNothingHeld()
    },
  )

  it('reads nothing for a channel that can take nothing', async () => {
    const bench = new ReadBench()
    for (let index = 0; index < 20; index++) {
      bench.add(index, 1, [sorted(bench, 1, () => Array.from({ length: 20 }, () => 4000))])
    }
    const consumer = bench.open()
    consumer.isGranting = false
    consumer.view?.addPartitions(Array.from({ length: 20 }, (_, i) => entryOf(i, i, [0, 0])))
    consumer.view?.end(20)
    await bench.clock.advance(60_000)
    const reads = bench.disk.reads.length
    await bench.clock.advance(60_000)
    expect(bench.disk.reads.length).toBe(reads)
    expect(bench.disk.reads.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(200_000)
    consumer.isGranting = true
    consumer.grant()
    await bench.clock.runUntil(() => consumer.finish !== undefined)
  })

  it('lets go of its blocks when there is nothing to read', async () => {
    const bench = new ReadBench()
    bench.add(0, 1, [sorted(bench, 1, () => [4000, 4000, 4000])])
    const consumer = bench.open()
    consumer.isGranting = false
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0])])
    await bench.clock.advance(1000)
    expect(bench.ledger.usedBytes('read')).toBe(4096 * (consumer.view?.heldBuffers ?? 0))
    consumer.view?.close()
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('finishes a thousand channels on little memory: none waits for what came while a sweep ended', async () => {
    const bench = new ReadBench({ memoryBytes: 1024 * 1024 })
    const subpartitions = 1000
    for (let index = 0; index < 2; index++) {
      bench.add(index, subpartitions, [sorted(bench, subpartitions, () => [900])])
    }
    const consumers = Array.from({ length: subpartitions }, (_, subpartition) => {
      const consumer = bench.open()
      const range: [number, number] = [subpartition, subpartition]
      consumer.view?.addPartitions([entryOf(0, 0, range), entryOf(1, 1, range)])
      consumer.view?.end(2)
      return consumer
    })
    await bench.clock.runUntil(() => consumers.every(({ finish }) => finish !== undefined))
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('keeps no more files open than its option says', async () => {
    const bench = new ReadBench({ openFilesMax: 4 })
    const files = 30
    for (let index = 0; index < files; index++) {
      bench.add(index, 1, [sorted(bench, 1, () => Array.from({ length: 6 }, () => 3000))])
    }
    const consumers = Array.from({ length: 3 }, () => {
      const consumer = bench.open()
      consumer.view?.addPartitions(Array.from({ length: files }, (_, i) => entryOf(i, i, [0, 0])))
      consumer.view?.end(files)
      return consumer
    })
    let most = 0
    await bench.clock.runUntil(() => {
      most = Math.max(most, bench.disk.openReaders)
      return consumers.every((consumer) => consumer.finish !== undefined)
    })
    // The present file and the next are opened before the oldest are closed.
    expect(most).toBeLessThanOrEqual(4 + 2)
    for (const consumer of consumers) expect(consumer.finish?.entryCount).toBe(files * 6)
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('gives a newcomer its first byte soon although a sweep over much is under way', async () => {
    const bench = new ReadBench({ memoryBytes: 16 * 1024 * 1024, kind: 'hdd' })
    bench.disk.latencyMs = [20, 30]
    const files = 24
    const payload = bench.payload(4000)
    for (let index = 0; index < files; index++) {
      const run = Array.from({ length: index === 0 ? 20 : 1000 }, () => payload)
      bench.add(index, 2, [{ kind: 'sorted', runs: [run, run] }])
    }
    const busy = bench.open()
    busy.creditWindow = 600
    busy.grantDelayMs = 0
    busy.view?.addPartitions(Array.from({ length: files }, (_, i) => entryOf(i, i, [0, 1])))
    busy.view?.end(files)
    await bench.clock.runUntil(() => busy.received.size > 5)
    const newcomer = bench.open()
    newcomer.view?.addPartitions([entryOf(0, 0, [1, 1])])
    newcomer.view?.end(1)
    await bench.clock.runUntil(() => newcomer.bodySizes.length > 0)
    expect(busy.received.size).toBeLessThan(files - 6)
    await bench.clock.runUntil(() => busy.finish !== undefined && newcomer.finish !== undefined)
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('takes turns with writes: waits for a region to end, and lets the next go first in time', async () => {
    const clock = new VirtualClock()
    const turns = new RegionTurns({ clock, idleMs: 1000 })
    const bench = new ReadBench({ clock, turns, kind: 'hdd', memoryBytes: 16 * 1024 * 1024 })
    const payload = bench.payload(4000)
    const files = 12
    for (let index = 0; index < files; index++) {
      const run = Array.from({ length: 1000 }, () => payload)
      bench.add(index, 1, [{ kind: 'sorted', runs: [run] }])
    }
    const region = turns.enter()
    expect(await region.acquire()).toBe(true)
    const consumer = bench.open()
    consumer.creditWindow = 600
    consumer.view?.addPartitions(Array.from({ length: files }, (_, i) => entryOf(i, i, [0, 0])))
    consumer.view?.end(files)
    await clock.advance(10_000)
    expect(bench.disk.reads.length).toBe(0)
    region.leave()
    await clock.runUntil(() => bench.disk.reads.length > 2)
    const next = turns.enter()
    let hasTurn = false
    const waiting = next.acquire().then(() => (hasTurn = true))
    await clock.runUntil(() => hasTurn)
    await waiting
    const swept = bench.disk.reads.reduce((sum, { length }) => sum + length, 0)
    expect(swept).toBeLessThan(40 * 1024 * 1024)
    expect(consumer.finish).toBeUndefined()
    next.leave()
    await clock.runUntil(() => consumer.finish !== undefined)
    await clock.advance(1000)
    bench.expectNothingHeld()
  })
})
