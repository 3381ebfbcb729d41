// Visits to files of their own: what is opened and read ahead of its turn.

import { describe, expect, it } from 'vitest'
import type { RegionContent } from './support/memory-partition.ts'
import { entryOf, ReadBench } from './support/read-bench.ts'

function readAll(bench: ReadBench, files: number, range: readonly [number, number] = [0, 0]) {
  const consumer = bench.open()
  consumer.view?.addPartitions(Array.from({ length: files }, (_, i) => entryOf(i, i, range)))
  consumer.view?.end(files)
  return consumer
}

describe('file visitor', () => {
  it('reads the index of the next file while the present one is read, and each once', async () => {
    const bench = new ReadBench()
    const files = 6
    const seen: string[] = []
    for (let index = 0; index < files; index++) {
      const region: RegionContent = { kind: 'sorted', runs: [[bench.payload(3000)]] }
      const partition = bench.add(index, 1, [region])
      const { openReader } = partition
      Object.assign(partition, {
        openReader: async () => {
          const reader = await openReader()
          const { regionIndex, read } = reader
          return {
            ...reader,
            regionIndex: (region: number) => {
              seen.push(`index ${String(index)}`)
              return regionIndex(region)
            },
            read: (target: Uint8Array, position: number) => {
              seen.push(`data ${String(index)}`)
              return read(target, position)
            },
          }
        },
      })
    }
    const consumer = readAll(bench, files)
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(seen.filter((each) => each.startsWith('index')).length).toBe(files)
    for (let index = 1; index < files; index++) {
      const before = seen.indexOf(`data ${String(index - 1)}`)
      expect(seen.indexOf(`index ${String(index)}`)).toBeLessThan(before)
    }
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('reads no index ahead that is large for the index memory', async () => {
    const bench = new ReadBench()
    // 40 bytes a run: more than a sixteenth of the part.
    const subpartitions = 4000
    const runs = Array.from({ length: subpartitions }, () => [Buffer.alloc(1)])
    for (let index = 0; index < 3; index++)
      bench.add(index, subpartitions, [{ kind: 'sorted', runs }])
    let most = 0
    const consumer = readAll(bench, 3)
    await bench.clock.runUntil(() => {
      most = Math.max(most, bench.disk.unreleasedIndexes)
      return consumer.finish !== undefined
    })
    expect(most).toBeLessThanOrEqual(1)
    expect(bench.disk.indexReads).toBe(3)
  })

  it('lets an index go that was read ahead for a channel that closed', async () => {
    const bench = new ReadBench()
    for (let index = 0; index < 3; index++) {
      bench.add(index, 1, [{ kind: 'sorted', runs: [[bench.payload(3000)]] }])
    }
    bench.disk.latencyMs = [100, 100]
    const consumer = readAll(bench, 3)
    consumer.isGranting = false
    await bench.clock.advance(50)
    consumer.view?.close()
    await bench.clock.advance(1000)
    bench.expectNothingHeld()
  })

  it('reads a broadcast region that fits a block once for all subpartitions there is room for', async () => {
    const bench = new ReadBench({ memoryBytes: 16 * 1024 * 1024 })
    const run = Array.from({ length: 10 }, () => bench.payload(2000))
    bench.add(0, 20, [{ kind: 'broadcast', run }])
    const consumer = bench.open()
    consumer.creditWindow = 200
    consumer.isGranting = false
    consumer.view?.addPartitions([entryOf(0, 0, [0, 19])])
    consumer.view?.end(1)
    await bench.clock.advance(100)
    const before = bench.disk.reads.length
    consumer.isGranting = true
    consumer.grant()
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    expect(consumer.partition(0).finish?.entryCount).toBe(200)
    expect(bench.disk.reads.length - before).toBeLessThanOrEqual(2)
  })

  it('never reads more of a broadcast region than goes out, however little room there is', async () => {
    const bench = new ReadBench({ memoryBytes: 2 * 1024 * 1024 })
    // Larger than a block, and much larger than the room of the channel.
    const run = Array.from({ length: 120 }, () => bench.payload(4000))
    bench.add(0, 3, [{ kind: 'broadcast', run }])
    const consumer = readAll(bench, 1, [0, 2])
    await bench.clock.runUntil(() => consumer.finish !== undefined)
    const readBytes = bench.disk.reads.reduce((sum, { length }) => sum + length, 0)
    const sent = consumer.partition(0).byteCount
    expect(consumer.partition(0).payloads.length).toBe(360)
    // An entry that a visit's end cuts is read again with the next.
    expect(readBytes).toBeLessThan(sent * 1.2)
  })
})
