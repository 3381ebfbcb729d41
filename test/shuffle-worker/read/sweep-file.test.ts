import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import { DiskList, type SweepChannel } from '../../../shuffle-worker/read/disk-list.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import { SweepFile } from '../../../shuffle-worker/read/sweep-file.ts'
import type { MapPartition } from '../../../shuffle-worker/storage/storage-types.ts'
import type { RegionContent } from './support/memory-partition.ts'
import { ReadBench } from './support/read-bench.ts'

/** The file with one cursor over it that can take everything. */
function wantedOf(bench: ReadBench, partition: MapPartition) {
  const channel: SweepChannel = {
    isClosed: false,
    isStarved: false,
    isIdle: false,
    roomBytes: () => 1_000_000,
    canBeginRun: () => true,
    hasCursorRoom: () => true,
    beginEntry: () => cursor,
    settle: () => undefined,
    fail: (_cursor, error) => {
      throw error
    },
    failEntry: () => undefined,
    afterPlan: () => undefined,
    afterDelivery: () => undefined,
    beginRun: () => true,
    endRun: () => undefined,
    append: () => true,
  }
  const range = { firstSubpartition: 0, lastSubpartition: 0, start: fromBeginning }
  const cursor = new PartitionCursor({ index: 0, partition, ...range })
  const file = new SweepFile(partition)
  new DiskList(channel, new ListMemory(bench.ledger)).add(cursor)
  file.wants.add(cursor)
  return { file, cursor }
}

describe('sweep file', () => {
  it('opens its partition once and lets it go, also while it is being opened', async () => {
    const bench = new ReadBench()
    const file = new SweepFile(bench.add(0, 1, []))
    expect(await file.open()).toBe(await file.open())
    expect(bench.disk.openReaders).toBe(1)
    const faults: unknown[] = []
    file.close((error) => faults.push(error))
    file.close((error) => faults.push(error))
    await bench.clock.settle()
    expect(bench.disk.openReaders).toBe(0)
    void file.open()
    file.close((error) => faults.push(error))
    await bench.clock.settle()
    expect(bench.disk.openReaders).toBe(0)
    expect(faults).toEqual([])
  })

  it('tells who waits for it that it can not be opened, and nobody else', async () => {
    const bench = new ReadBench()
    bench.disk.released.add(0)
    const file = new SweepFile(bench.add(0, 1, []))
    await expect(file.open()).rejects.toMatchObject({ code: 'PARTITION_RELEASED' })
    const faults: unknown[] = []
    file.close((error) => faults.push(error))
    await bench.clock.settle()
    expect(faults).toEqual([])
  })

  it('reads an index ahead once, and again for the one whose turn it is when that failed', async () => {
    const bench = new ReadBench()
    const partition = bench.add(0, 1, [{ kind: 'sorted', runs: [[bench.payload(10)]] }])
    const { file, cursor } = wantedOf(bench, partition)
    file.readIndexAhead(0)
    file.readIndexAhead(0)
    await file.enterRegion(0)
    expect(bench.disk.indexReads).toBe(1)
    expect(cursor.plannedRegion).toBe(0)
    expect(cursor.plannedPosition).toBe(0)
    const failing = bench.add(1, 1, [{ kind: 'sorted', runs: [[bench.payload(10)]] }])
    let asked = 0
    const { openReader } = failing
    const again = {
      ...failing,
      openReader: async () => {
        const reader = await openReader()
        return {
          ...reader,
          regionIndex: (region: number) => {
            asked += 1
            if (asked === 1) return Promise.reject(new ShuffleError('BUSY', 'no index memory'))
            return reader.regionIndex(region)
          },
        }
      },
    }
    const second = wantedOf(bench, again)
    second.file.readIndexAhead(0)
    await second.file.enterRegion(0)
    expect([asked, second.cursor.plannedPosition]).toEqual([2, 0])
    for (const each of [file, second.file]) each.close(() => undefined)
    await bench.clock.settle()
    expect([bench.disk.openReaders, bench.disk.unreleasedIndexes]).toEqual([0, 0])
  })

  it('lets go of an index that was read ahead when it is not needed, or when it is closed', async () => {
    const bench = new ReadBench()
    const region: RegionContent = { kind: 'sorted', runs: [[bench.payload(10)]] }
    const file = new SweepFile(bench.add(0, 1, [region, region]))
    file.readIndexAhead(0)
    file.readIndexAhead(1)
    await bench.clock.settle()
    expect(bench.disk.unreleasedIndexes).toBe(1)
    file.dropAhead()
    await bench.clock.settle()
    expect(bench.disk.unreleasedIndexes).toBe(0)
    file.readIndexAhead(0)
    file.close(() => undefined)
    await bench.clock.settle()
    expect([bench.disk.openReaders, bench.disk.unreleasedIndexes]).toEqual([0, 0])
  })

  it('has no region to go on with when nobody wants anything', () => {
    const bench = new ReadBench()
    expect(new SweepFile(bench.add(7, 1, [])).nextRegion(0)).toBeUndefined()
    expect(new SweepFile(bench.add(7, 1, [])).order).toBe(7)
  })
})
