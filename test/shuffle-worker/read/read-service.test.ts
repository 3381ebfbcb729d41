// The read side as a whole over partitions in memory: order, credit, resume, errors, liveness.

import { describe, expect, it } from 'vitest'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import type { PartitionListEntry } from '../../../client/protocol/partition-list.ts'
import { ReadMemory } from '../../../shuffle-worker/read/read-memory.ts'
import type { RegionContent } from './support/memory-partition.ts'
import { bufferSizeBytes, MemorySegment } from './support/memory-partition.ts'
import { entryOf, ReadBench } from './support/read-bench.ts'

function sorted(bench: ReadBench, subpartitions: number, sizes: () => number[]): RegionContent {
  return {
    kind: 'sorted',
    runs: Array.from({ length: subpartitions }, () => sizes().map((size) => bench.payload(size))),
  }
}

function payloadsOf(regions: readonly RegionContent[], first: number, last: number): Buffer[] {
  const result: Uint8Array[] = []
  for (const region of regions) {
    if (region.kind === 'broadcast') {
      for (let subpartition = first; subpartition <= last; subpartition++)
        result.push(...region.run)
    } else {
      for (const run of region.runs.slice(first, last + 1)) result.push(...run)
    }
  }
  return result.map((bytes) => Buffer.from(bytes))
}

/** Compares by one look at all bytes: element by element is slow for thousands of payloads. */
function expectPayloads(received: readonly Buffer[], expected: readonly Buffer[]): void {
  expect(received.map((bytes) => bytes.length)).toEqual(expected.map((bytes) => bytes.length))
  expect(Buffer.concat(received).equals(Buffer.concat(expected))).toBe(true)
}

function takeRead(bench: ReadBench): PooledBuffer | undefined {
  return bench.ledger.tryAcquire({ purpose: 'read', count: 1 })?.[0]
}

/** Buffers of the least block that a disk reads into. */
const least = new ReadMemory(new ReadBench().ledger).blockBytesMin / bufferSizeBytes

/** One channel, and so many buffers left for it and its disk. */
function shortOfMemory(left: number) {
  const bench = new ReadBench()
  bench.disk.latencyMs = [10, 10]
  bench.add(0, 1, [sorted(bench, 1, () => [3000, 3000, 3000])])
  const taken: PooledBuffer[] = []
  for (let one = takeRead(bench); one !== undefined; one = takeRead(bench)) taken.push(one)
  for (const buffer of taken.splice(0, left)) buffer.recycle()
  const consumer = bench.open()
  consumer.view?.addPartitions([entryOf(0, 0, [0, 0])])
  consumer.view?.end(1)
  return { bench, consumer, taken }
}

describe('read service', () => {
  it('delivers a range region by region, each broadcast region once a subpartition', async () => {
    const bench = new ReadBench()
    const regions: RegionContent[] = [
      sorted(bench, 4, () => [700, 0, 3000]),
      { kind: 'broadcast', run: [bench.payload(100), bench.payload(2000)] },
      sorted(bench, 4, () => [10]),
    ]
    bench.add(0, 4, regions)
    const consumer = bench.open()
    consumer.view?.addPartitions([entryOf(0, 0, [1, 2])])
    consumer.view?.end(1)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    const received = consumer.partition(0)
    expectPayloads(received.payloads, payloadsOf(regions, 1, 2))
    expect(received.places).toEqual(['0/1', '0/2', '1/1', '1/2', '2/1', '2/2'])
    expect(received.finish).toEqual({
      entryCount: received.entryCount,
      byteCount: received.byteCount,
    })
    expect(consumer.finish).toMatchObject({ partitionCount: 1, entryCount: received.entryCount })
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it.each([
    ['a disk that has nothing to read into', 0, 0, 1],
    ['a channel that has nothing to send in, and then its disk', least + 1, 1, 2],
  ])('counts %s, until there is memory', async (_, left, takenLater, count) => {
    const { bench, consumer, taken } = shortOfMemory(left)
    expect(bench.service.shortOfMemory).toBe(0)
    await bench.clock.advance(1)
    taken.push(...(bench.ledger.tryAcquire({ purpose: 'read', count: takenLater }) ?? []))
    await bench.clock.runUntil(() => bench.service.shortOfMemory === count)
    expect(consumer.received.size).toBe(0)
    for (const buffer of taken) buffer.recycle()
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.partition(0).payloads).toHaveLength(3)
    expect(bench.service.shortOfMemory).toBe(0)
  })

  it('reads nothing again and again while there is memory to read into and none to send in', async () => {
    const { bench, consumer, taken } = shortOfMemory(least)
    await bench.clock.advance(5000)
    expect(bench.disk.reads.length).toBeLessThanOrEqual(1)
    for (const buffer of taken) buffer.recycle()
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.partition(0).payloads).toHaveLength(3)
  })

  it('packs the small slices of many partitions into full bodies', async () => {
    const bench = new ReadBench()
    for (let index = 0; index < 200; index++) bench.add(index, 8, [sorted(bench, 8, () => [100])])
    const consumer = bench.open()
    consumer.view?.addPartitions(Array.from({ length: 200 }, (_, i) => entryOf(i, i, [3, 3])))
    consumer.view?.end(200)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.received.size).toBe(200)
    const slices = 200 * (100 + 16 + 16)
    expect(consumer.bodySizes.length).toBeLessThanOrEqual(Math.ceil(slices / bufferSizeBytes) + 3)
  })

  it('serves neighbouring slices of many channels with few reads', async () => {
    const bench = new ReadBench()
    bench.add(0, 64, [sorted(bench, 64, () => [500, 500])])
    const consumers = Array.from({ length: 64 }, (_, subpartition) => {
      const consumer = bench.open()
      consumer.view?.addPartitions([entryOf(0, 0, [subpartition, subpartition])])
      consumer.view?.end(1)
      return consumer
    })
    await bench.clock.runUntil(() => consumers.every((consumer) => consumer.finish !== undefined))
    expect(bench.disk.reads.length).toBeLessThan(8)
  })

  it('answers an empty range and an empty partition with PartitionFinish and no data', async () => {
    const bench = new ReadBench()
    bench.add(0, 2, [{ kind: 'sorted', runs: [[], [bench.payload(10)]] }])
    bench.add(1, 2, [])
    const consumer = bench.open()
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0]), entryOf(1, 1, [0, 1])])
    consumer.view?.end(2)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.bodySizes).toEqual([])
    expect(consumer.partition(0).finish).toEqual({ entryCount: 0, byteCount: 0 })
    expect(consumer.partition(1).finish).toEqual({ entryCount: 0, byteCount: 0 })
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('sends what it has at once when the rest of the list turns out to be empty', async () => {
    const bench = new ReadBench()
    const segment = new MemorySegment(0)
    bench.add(0, 2, [sorted(bench, 2, () => [100])], segment)
    for (let index = 1; index < 20; index++) {
      bench.add(index, 2, [{ kind: 'sorted', runs: [[], [bench.payload(10)]] }], segment)
    }
    const consumer = bench.open()
    consumer.view?.addPartitions(Array.from({ length: 20 }, (_, i) => entryOf(i, i, [0, 0])))
    consumer.view?.end(20)
    // A body that is not full would wait for more until then.
    await bench.clock.runUntil(() => consumer.finish !== undefined, { withinMs: 15 })
    expect(consumer.bodySizes).toHaveLength(1)
  })

  it('tells not ready, never written, released and lost apart, and goes on with the others', async () => {
    const bench = new ReadBench()
    bench.add(0, 1, [sorted(bench, 1, () => [10])])
    bench.partitions.set('1', { state: 'writing' })
    bench.partitions.set('2', { state: 'released' })
    bench.partitions.set('3', { state: 'lost', code: 'DISK_FAILED' })
    const consumer = bench.open()
    consumer.view?.addPartitions([
      entryOf(0, 0, [0, 0]),
      entryOf(1, 1, [0, 0], { isPending: true }),
      entryOf(2, 2, [0, 0]),
      entryOf(3, 3, [0, 0]),
      entryOf(4, 4, [0, 0]),
      entryOf(5, 5, [0, 0], { isPending: true }),
      entryOf(6, 0, [0, 1]),
    ])
    consumer.view?.end(7)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    const codes = [1, 2, 3, 4, 5, 6].map((index) => consumer.partition(index).error?.code)
    expect(codes).toEqual([
      'PARTITION_NOT_READY',
      'PARTITION_RELEASED',
      'DISK_FAILED',
      'PARTITION_NOT_FOUND',
      'PARTITION_NOT_READY',
      'PROTOCOL',
    ])
    expect(consumer.partition(0).entryCount).toBe(1)
  })

  it('fails a partition whose read fails, or that was released before its turn, and no other', async () => {
    const bench = new ReadBench()
    for (let index = 0; index < 3; index++) bench.add(index, 1, [sorted(bench, 1, () => [10])])
    bench.disk.failing.add(1)
    bench.disk.released.add(2)
    const consumer = bench.open()
    consumer.view?.addPartitions([0, 1, 2].map((index) => entryOf(index, index, [0, 0])))
    consumer.view?.end(3)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.partition(0).finish?.entryCount).toBe(1)
    expect(consumer.partition(1).error?.code).toBe('DISK_FAILED')
    expect(consumer.partition(2).error?.code).toBe('PARTITION_RELEASED')
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'resumes after any entry with the same bytes (%i)',
    async (seed) => {
      const bench = new ReadBench({ seed })
      const regions: RegionContent[] = [
        sorted(bench, 3, () => [1500, 1500, 20]),
        { kind: 'broadcast', run: [bench.payload(900), bench.payload(30)] },
        { kind: 'sorted', runs: [[], [bench.payload(5)], [bench.payload(3900)]] },
      ]
      bench.add(0, 3, regions)
      const all = payloadsOf(regions, 0, 2)
      // Every place after an entry, as a consumer would name it.
      let regionIndex = 0
      let delivered = 0
      for (const region of regions) {
        for (let subpartition = 0; subpartition < 3; subpartition++) {
          const run = region.kind === 'broadcast' ? region.run : (region.runs[subpartition] ?? [])
          let byteOffset = 0
          for (const payload of run) {
            byteOffset += 16 + payload.length
            delivered += 1
            const consumer = bench.open()
            const start = { regionIndex, subpartition, byteOffset }
            consumer.view?.addPartitions([entryOf(0, 0, [0, 2], { start })])
            consumer.view?.end(1)
            await bench.clock.runUntil(() => consumer.finish !== undefined)
            expect(consumer.partition(0).error).toBeUndefined()
            expectPayloads(consumer.partition(0).payloads, all.slice(delivered))
            expect(consumer.partition(0).finish?.entryCount).toBe(all.length)
          }
        }
        regionIndex += 1
      }
      await bench.clock.advance(1000)
      bench.expectNothingHeld()
    },
  )

  it('fails a start that lies behind its run', async () => {
    const bench = new ReadBench()
    bench.add(0, 1, [sorted(bench, 1, () => [10])])
    const consumer = bench.open()
    const start = { regionIndex: 0, subpartition: 0, byteOffset: 27 }
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0], { start })])
    consumer.view?.end(1)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.partition(0).error?.code).toBe('PROTOCOL')
  })

  it('finishes many channels of tiny credit over many files, in little memory', async () => {
    const bench = new ReadBench({ memoryBytes: 1024 * 1024, seed: 7 })
    const subpartitions = 20
    const files = 60
    const contents = Array.from({ length: files }, (_, index) => {
      const regions = Array.from({ length: 3 }, (_unused, region): RegionContent => {
        if (region === 1 && index % 5 === 0) {
          return { kind: 'broadcast', run: [bench.payload(50), bench.payload(2500)] }
        }
        return sorted(bench, subpartitions, () =>
          Array.from({ length: bench.random.integer(5) }, () => bench.random.integer(4000)),
        )
      })
      bench.add(index, subpartitions, regions)
      return regions
    })
    const consumers = Array.from({ length: subpartitions }, (_, subpartition) => {
      const consumer = bench.open()
      consumer.grantDelayMs = bench.random.integer(200)
      consumer.creditWindow = 1 + bench.random.integer(4)
      const range: [number, number] =
        subpartition % 4 === 0 ? [subpartition, subpartition + 3] : [subpartition, subpartition]
      consumer.view?.addPartitions(Array.from({ length: files }, (_f, i) => entryOf(i, i, range)))
      consumer.view?.end(files)
      return { consumer, range }
    })
    await bench.clock.runUntil(() =>
      consumers.every(({ consumer }) => consumer.finish !== undefined),
    )
    for (const { consumer, range } of consumers) {
      expect(consumer.unfinishedRunsMost).toBeLessThanOrEqual(16)
      contents.forEach((regions, index) => {
        expectPayloads(consumer.partition(index).payloads, payloadsOf(regions, ...range))
        expect(consumer.partition(index).finish).toEqual({
          entryCount: consumer.partition(index).entryCount,
          byteCount: consumer.partition(index).byteCount,
        })
      })
    }
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('serves the others at full speed while a consumer grants nothing', async () => {
    const bench = new ReadBench({ memoryBytes: 2 * 1024 * 1024 })
    const files = 40
    for (let index = 0; index < files; index++) {
      bench.add(index, 2, [sorted(bench, 2, () => Array.from({ length: 10 }, () => 4000))])
    }
    const stuck = bench.open()
    stuck.isGranting = false
    const quick = bench.open()
    for (const [consumer, subpartition] of [
      [stuck, 0],
      [quick, 1],
    ] as const) {
      consumer.view?.addPartitions(
        Array.from({ length: files }, (_, i) => entryOf(i, i, [subpartition, subpartition])),
      )
      consumer.view?.end(files)
    }
    await bench.clock.runUntil(() => quick.finish !== undefined)
    expect(stuck.bodySizes.length).toBe(2)
    // Its ahead of credit is bounded, whatever its list holds.
    expect(stuck.view?.heldBuffers).toBeLessThanOrEqual((64 * 1024) / bufferSizeBytes)
    stuck.view?.close()
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('gives everything back when a channel is closed midway, and ignores late credit', async () => {
    const bench = new ReadBench()
    for (let index = 0; index < 10; index++) {
      bench.add(index, 1, [sorted(bench, 1, () => Array.from({ length: 20 }, () => 3000))])
    }
    const consumer = bench.open()
    consumer.view?.addPartitions(Array.from({ length: 10 }, (_, i) => entryOf(i, i, [0, 0])))
    await bench.clock.runUntil(() => consumer.bodySizes.length > 3)
    consumer.view?.close()
    consumer.view?.addCredit(100)
    const frames = consumer.bodySizes.length
    await bench.clock.advance(1000)
    expect(consumer.bodySizes.length).toBe(frames)
    bench.expectNothingHeld()
  })

  it('forgets a dropped partition and finishes the rest', async () => {
    const bench = new ReadBench()
    for (let index = 0; index < 3; index++) {
      bench.add(index, 1, [sorted(bench, 1, () => Array.from({ length: 20 }, () => 3000))])
    }
    const consumer = bench.open()
    consumer.view?.addPartitions([0, 1, 2].map((index) => entryOf(index, index, [0, 0])))
    await bench.clock.runUntil(() => consumer.bodySizes.length > 2)
    consumer.view?.drop(1)
    consumer.view?.drop(1)
    consumer.view?.end(3)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.partition(0).finish?.entryCount).toBe(20)
    expect(consumer.partition(1).finish).toBeUndefined()
    expect(consumer.partition(2).finish?.entryCount).toBe(20)
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('sends nothing while the connection takes nothing, and goes on when it does', async () => {
    const bench = new ReadBench()
    bench.add(0, 1, [sorted(bench, 1, () => Array.from({ length: 20 }, () => 3000))])
    const consumer = bench.open()
    consumer.isWritable = false
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0])])
    consumer.view?.end(1)
    await bench.clock.advance(1000)
    expect(consumer.bodySizes).toEqual([])
    consumer.isWritable = true
    consumer.view?.onWritable()
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.partition(0).entryCount).toBe(20)
  })

  it('announces at least one buffer while anything is unsent, and enough to finish', async () => {
    const bench = new ReadBench()
    bench.add(0, 1, [sorted(bench, 1, () => [1])])
    bench.add(1, 1, [sorted(bench, 1, () => Array.from({ length: 50 }, () => 2100))])
    const consumer = bench.open()
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0])])
    expect(consumer.backlogs.at(-1)).toBe(1)
    consumer.view?.addPartitions([entryOf(1, 1, [0, 0])])
    expect(consumer.backlogs.at(-1)).toBeGreaterThan(20)
    consumer.view?.end(2)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.finish?.frameCount).toBe(consumer.bodySizes.length)
  })

  it('counts at most 64 bytes for an entry of a list, and far less where channels list the same', () => {
    const bench = new ReadBench({ memoryBytes: 16 * 1024 * 1024 })
    const partitions = 1000
    for (let index = 0; index < partitions; index++) {
      bench.add(index, 100, [{ kind: 'sorted', runs: [] }])
    }
    const used = () => bench.ledger.usedBytes('control')
    const openOne = (entryOfList: (index: number) => PartitionListEntry) => {
      const consumer = bench.open()
      consumer.isWritable = false
      const before = used()
      consumer.view?.addPartitions(Array.from({ length: partitions }, (_, i) => entryOfList(i)))
      return { consumer, entryBytes: (used() - before) / partitions }
    }
    // The dearest: a range of its own for each, and each resumed somewhere.
    const start = { regionIndex: 1, subpartition: 2, byteOffset: 3 }
    const dearest = openOne((i) => entryOf(i, i, [i % 50, 99], { start }))
    expect(dearest.entryBytes).toBeGreaterThan(0)
    expect(dearest.entryBytes).toBeLessThanOrEqual(64)
    dearest.consumer.view?.close()
    const all = Array.from({ length: 100 }, (_, k) => openOne((i) => entryOf(i, i, [k, k])))
    expect(all[0]?.entryBytes).toBeLessThanOrEqual(16)
    for (const { entryBytes } of all.slice(1)) expect(entryBytes).toBeLessThanOrEqual(1)
    expect(bench.service.openEntries).toBe(100 * partitions)
    for (const { consumer } of all) consumer.view?.close()
    bench.expectNothingHeld()
  })

  it('refuses a list with BUSY when control memory is taken, and takes it when it is free', async () => {
    const bench = new ReadBench()
    for (let index = 0; index < 40; index++) bench.add(index, 1, [sorted(bench, 1, () => [10])])
    const consumer = bench.open()
    const free = bench.ledger.partBytes('control') - bench.ledger.usedBytes('control')
    const held = bench.ledger.tryReserve({ purpose: 'control', bytes: free - 100 })
    const entries = Array.from({ length: 40 }, (_, i) => entryOf(i, i, [0, 0]))
    expect(() => consumer.view?.addPartitions(entries)).toThrow(
      expect.objectContaining({ code: 'BUSY' }),
    )
    consumer.view?.close()
    const second = bench.open()
    held?.release()
    second.view?.addPartitions(entries)
    second.view?.end(40)
    await bench.clock.runUntil(() => second.finish !== undefined)
  })

  it('goes on with one cursor when there is control memory for no more', async () => {
    const bench = new ReadBench()
    for (let index = 0; index < 40; index++) {
      bench.add(index, 1, [sorted(bench, 1, () => [3000, 3000, 3000])])
    }
    const consumer = bench.open()
    consumer.view?.addPartitions(Array.from({ length: 40 }, (_, i) => entryOf(i, i, [0, 0])))
    consumer.view?.end(40)
    const free = bench.ledger.partBytes('control') - bench.ledger.usedBytes('control')
    const held = bench.ledger.tryReserve({ purpose: 'control', bytes: free })
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.finish?.entryCount).toBe(120)
    held?.release()
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('goes on with one cursor on another disk when all of the first turned out to be empty', async () => {
    const bench = new ReadBench({ diskCount: 2 })
    for (const index of [0, 2, 4]) {
      bench.add(index, 2, [{ kind: 'sorted', runs: [[], [bench.payload(10)]] }])
    }
    for (const index of [1, 3, 5]) bench.add(index, 2, [sorted(bench, 2, () => [1000])])
    const consumer = bench.open()
    const free = bench.ledger.partBytes('control') - bench.ledger.usedBytes('control')
    const listBytes = 1000
    const held = bench.ledger.tryReserve({ purpose: 'control', bytes: free - listBytes })
    consumer.view?.addPartitions(Array.from({ length: 6 }, (_, i) => entryOf(i, i, [0, 0])))
    consumer.view?.end(6)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.finish?.entryCount).toBe(3)
    held?.release()
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('reads many disks in the least memory with the smallest buffers', async () => {
    const bench = new ReadBench({ memoryBytes: 128 * bufferSizeBytes, diskCount: 12 })
    for (let index = 0; index < 24; index++) {
      bench.add(index, 1, [sorted(bench, 1, () => [4000, 4000, 4000])])
    }
    const consumer = bench.open()
    consumer.view?.addPartitions(Array.from({ length: 24 }, (_, i) => entryOf(i, i, [0, 0])))
    consumer.view?.end(24)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.finish?.entryCount).toBe(72)
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('reads runs that are longer than its share of the room while another disk hangs', async () => {
    const bench = new ReadBench({ diskCount: 2 })
    const long = () => [sorted(bench, 1, () => Array.from({ length: 100 }, () => 2000))]
    const [hung, good] = [bench.add(0, 1, long()), bench.add(1, 1, long())]
    const never = { result: new Promise<number>(() => undefined), ended: Promise.resolve() }
    const openHung = async () => ({ ...(await hung.openReader()), read: () => never })
    const openLater = async () => {
      await new Promise<void>((resolve) => bench.clock.schedule(5, resolve))
      return good.openReader()
    }
    for (const [index, openReader] of [openHung, openLater].entries()) {
      const partition = { ...(index === 0 ? hung : good), openReader }
      bench.partitions.set(String(index), { state: 'committed', partition })
    }
    const consumer = bench.open()
    consumer.view?.addPartitions([entryOf(0, 0, [0, 0]), entryOf(1, 1, [0, 0])])
    await bench.clock.runUntil(() => consumer.partition(1).finish !== undefined)
    expect(consumer.partition(1).payloads).toHaveLength(100)
    consumer.view?.close()
  })

  it('refuses more entries than a channel may list, by the name of the option', () => {
    const bench = new ReadBench({ entriesPerChannelMax: 1 })
    const consumer = bench.open()
    expect(() =>
      consumer.view?.addPartitions([entryOf(0, 0, [0, 0]), entryOf(1, 1, [0, 0])]),
    ).toThrow(/entries-per-channel-max/)
  })

  it('refuses entries out of number, and an end that does not fit the list', () => {
    const bench = new ReadBench()
    const consumer = bench.open()
    expect(() => consumer.view?.addPartitions([entryOf(1, 0, [0, 0])])).toThrow(/numbered/)
    const other = bench.open()
    expect(() => other.view?.end(3)).toThrow(/ReadEnd/)
    other.view?.end(0)
    expect(other.finish?.partitionCount).toBe(0)
  })

  it('refuses a buffer size that the worker does not have', () => {
    const bench = new ReadBench()
    const consumer = bench.open()
    expect(() =>
      bench.service.open(
        { bufferSizeBytes: bufferSizeBytes * 2, initialCredit: 2 },
        consumer,
        () => undefined,
      ),
    ).toThrow(/buffer-size/)
  })
})
