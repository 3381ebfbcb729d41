// Small partitions in one segment of the shared log: how many reads they cost, and what happens when
// one of them can't be read.

import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'
import { ReadService } from '../../../shuffle-worker/read/read-service.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { openStore, partitionOf, writePartition } from '../storage/support/store-fixture.ts'
import { Consumer } from './support/consumer.ts'
import { MemorySegment, type RegionContent } from './support/memory-partition.ts'
import { entryOf, ReadBench } from './support/read-bench.ts'

interface Job {
  readonly bench: ReadBench
  readonly consumers: readonly Consumer[]
  readonly contents: readonly RegionContent[][]
}

/** As many consumers as subpartitions, each wanting its one of every partition. */
function start(options: {
  readonly bench: ReadBench
  readonly partitions: number
  readonly subpartitions: number
  readonly regions?: number
  readonly segment?: MemorySegment
}): Job {
  const { bench, partitions, subpartitions, regions = 1 } = options
  const segment = options.segment ?? new MemorySegment(7)
  const contents = Array.from({ length: partitions }, (_, index) => {
    const content = Array.from({ length: regions }, (): RegionContent => {
      const runs = Array.from({ length: subpartitions }, () => [
        bench.payload(bench.random.integer(60)),
      ])
      return { kind: 'sorted', runs }
    })
    bench.add(index, subpartitions, content, segment)
    return content
  })
  const consumers = Array.from({ length: subpartitions }, (_, subpartition) => {
    const consumer = bench.open()
    const range: [number, number] = [subpartition, subpartition]
    consumer.view?.addPartitions(
      Array.from({ length: partitions }, (_p, index) => entryOf(index, index, range)),
    )
    consumer.view?.end(partitions)
    return consumer
  })
  return { bench, consumers, contents }
}

async function finish({ bench, consumers, contents }: Job, failed: readonly number[] = []) {
  await bench.clock.runUntil(() => consumers.every((consumer) => consumer.finish !== undefined))
  for (const [subpartition, consumer] of consumers.entries()) {
    // One look at all bytes: a comparison for each of 40,000 payloads is slow.
    const received: Uint8Array[] = []
    const expected: Uint8Array[] = []
    for (const [index, regions] of contents.entries()) {
      if (failed.includes(index)) continue
      received.push(...consumer.partition(index).payloads)
      for (const region of regions) {
        if (region.kind === 'sorted') expected.push(...(region.runs[subpartition] ?? []))
      }
    }
    expect(received.map(({ length }) => length)).toEqual(expected.map(({ length }) => length))
    expect(Buffer.concat(received).equals(Buffer.concat(expected))).toBe(true)
  }
  await bench.clock.advance(1000)
  bench.expectNothingHeld()
}

describe('segment visitor', () => {
  it('reads neighbours together, tables and indexes too: not one read for each', async () => {
    const bench = new ReadBench({ memoryBytes: 16 * 1024 * 1024 })
    const segment = new MemorySegment(7)
    const job = start({ bench, partitions: 100, subpartitions: 100, segment })
    await finish(job)
    const bytes = segment.bytes.length
    const readBytes = bench.disk.reads.reduce((sum, { length }) => sum + length, 0)
    expect(bench.disk.reads.length).toBeLessThanOrEqual(10)
    expect(readBytes).toBeLessThan(2 * bytes)
    expect([bench.disk.tableReads, bench.disk.indexReads]).toEqual([0, 0])
  })

  it('delivers regions in order to channels of little credit, over as many visits as it takes', async () => {
    const bench = new ReadBench({ memoryBytes: 1024 * 1024, seed: 5 })
    await finish(start({ bench, partitions: 40, subpartitions: 12, regions: 4 }))
    expect(bench.disk.tableReads).toBe(0)
  })

  it('serves a broadcast region to each subpartition of a range', async () => {
    const bench = new ReadBench()
    const run = [bench.payload(1000), bench.payload(30)]
    bench.add(0, 9, [{ kind: 'broadcast', run }], new MemorySegment(1))
    const consumer = bench.open()
    consumer.view?.addPartitions([entryOf(0, 0, [2, 7])])
    consumer.view?.end(1)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    const six = Array.from({ length: 6 }, () => run).flat()
    expect(consumer.partition(0).payloads).toEqual(six)
    expect(consumer.partition(0).finish?.entryCount).toBe(12)
  })

  it('fails a partition that was released before its turn, and no neighbour', async () => {
    const bench = new ReadBench()
    bench.disk.released.add(1)
    const job = start({ bench, partitions: 4, subpartitions: 3 })
    await finish(job, [1])
    for (const consumer of job.consumers) {
      expect(consumer.partition(1).error?.code).toBe('PARTITION_RELEASED')
    }
  })

  it('visits each alone when the read of all fails: what is broken fails alone', async () => {
    const bench = new ReadBench()
    bench.disk.failing.add(0)
    const job = start({ bench, partitions: 4, subpartitions: 3 })
    await finish(job, [0])
    for (const consumer of job.consumers) {
      expect(consumer.partition(0).error?.code).toBe('DISK_FAILED')
      expect(consumer.partition(1).finish?.entryCount).toBe(1)
    }
  })

  it('leaves alone what is not wanted, and does not read through long gaps for it', async () => {
    const bench = new ReadBench()
    const segment = new MemorySegment(3)
    const large = (): RegionContent => ({
      kind: 'sorted',
      runs: [Array.from({ length: 15 }, () => bench.payload(4000))],
    })
    for (let index = 0; index < 3; index++) bench.add(index, 1, [large()], segment)
    const consumer = bench.open()
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0]), entryOf(1, 2, [0, 0])])
    consumer.view?.end(2)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    const readBytes = bench.disk.reads.reduce((sum, { length }) => sum + length, 0)
    expect(readBytes).toBeLessThan(segment.bytes.length)
  })

  it('reads one that does not fit a block region by region', async () => {
    const bench = new ReadBench({ memoryBytes: 1024 * 1024 })
    const segment = new MemorySegment(3)
    const run = Array.from({ length: 30 }, () => bench.payload(4000))
    bench.add(0, 1, [{ kind: 'sorted', runs: [run] }], segment)
    const consumer = bench.open()
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0])])
    consumer.view?.end(1)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.partition(0).payloads).toEqual(run)
    expect(bench.disk.tableReads).toBe(1)
  })

  it('gives all back when its channels close while the read is under way', async () => {
    const bench = new ReadBench()
    bench.disk.latencyMs = [50, 50]
    const { consumers } = start({ bench, partitions: 4, subpartitions: 3 })
    await bench.clock.advance(10)
    for (const consumer of consumers) consumer.view?.close()
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
    const more = start({ bench, partitions: 4, subpartitions: 3, segment: new MemorySegment(9) })
    await bench.clock.advance(10)
    for (const consumer of more.consumers) consumer.view?.close()
    const closed = bench.service.close()
    await bench.clock.drive(closed)
    bench.expectNothingHeld()
  })

  it('asks the disk of a real store a handful of times for a hundred partitions', async () => {
    const virtual = new VirtualWorld()
    const { store, ledger } = await virtual.drive(openStore(virtual.main))
    const count = 100
    for (let index = 0; index < count; index++) {
      await virtual.drive(writePartition({ store, ledger }, partitionOf(index, 40)))
    }
    const service = new ReadService({
      clock: virtual.clock,
      logger: silentLogger,
      store,
      ledger,
      options: { entriesPerChannelMax: 1000, readAheadBytes: 1024 * 1024, openFilesMax: 100 },
      turnsOf: () => undefined,
      onDiskRead: () => undefined,
      onTimes: () => undefined,
    })
    const before = virtual.disk().operationCount
    const consumers = [0, 1, 2].map((subpartition) => {
      const consumer = new Consumer(virtual.clock)
      const fields = { bufferSizeBytes: 4096, initialCredit: 2 }
      consumer.view = service.open(fields, consumer, () => undefined)
      const list = Array.from({ length: count }, (_, index) => {
        const { key } = partitionOf(index, 40)
        return { ...entryOf(index, index, [subpartition, subpartition]), key }
      })
      consumer.view.addPartitions(list)
      consumer.view.end(count)
      return consumer
    })
    await virtual.clock.runUntil(() => consumers.every(({ finish }) => finish !== undefined))
    // Of each partition two regions, two entries in each of the subpartitions 0 and 2.
    expect(consumers.map(({ finish }) => finish?.entryCount)).toEqual([4 * count, 0, 4 * count])
    await virtual.clock.advance(1000)
    expect(virtual.disk().operationCount - before).toBeLessThan(20)
    expect([ledger.usedBytes('index'), ledger.usedBytes('control')]).toEqual([0, 0])
    await virtual.drive(service.close())
  })
})
