import { beforeEach, describe, expect, it } from 'vitest'
import type { MapPartition } from '../../../shuffle-worker/storage/storage-types.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import {
  openStore,
  partitionOf,
  writePartition,
  type StoreFixture,
  type TestPartition,
} from './support/store-fixture.ts'

let virtual: VirtualWorld
let fixture: StoreFixture

beforeEach(async () => {
  virtual = new VirtualWorld()
  fixture = await virtual.drive(openStore(virtual.main, { smallPartitionBytesMax: 1024 }))
})

async function committed(partition: TestPartition): Promise<MapPartition> {
  await virtual.drive(writePartition(fixture, partition))
  const found = fixture.store.lookup(partition.key)
  if (found.state !== 'committed') throw new Error(found.state)
  return found.partition
}

describe('a stored partition', () => {
  it('opens its file once for all readers and closes it with the last', async () => {
    const partition = await committed(partitionOf(1, 1000))
    const idle = virtual.disk().openFileCount
    const readers = await virtual.drive(
      Promise.all([partition.openReader(), partition.openReader()]),
    )
    expect(virtual.disk().openFileCount).toBe(idle + 1)
    await virtual.drive(readers[0].close())
    expect(virtual.disk().openFileCount).toBe(idle + 1)
    await virtual.drive(readers[1].close())
    await virtual.drive(readers[1].close())
    expect(virtual.disk().openFileCount).toBe(idle)
    expect(() => readers[0].read(Buffer.alloc(1), 0)).toThrow(/reads no more/)
  })

  it('lies in the order in which files were made, and by offset within a segment', async () => {
    const partitions = []
    for (const [index, size] of [1000, 40, 40, 1000].entries()) {
      partitions.push(await committed(partitionOf(index, size)))
    }
    const orders = partitions.map((partition) => partition.fileOrder)
    expect(orders).toEqual([...orders].sort((a, b) => a - b))
    expect(new Set(orders).size).toBe(4)
    expect(partitions[1]?.extent.fileOrdinal).toBe(partitions[2]?.extent.fileOrdinal)
  })

  it('is opened and read from an image of its segment without the disk, neighbours too', async () => {
    const partitions: MapPartition[] = []
    for (const index of [1, 2, 3]) partitions.push(await committed(partitionOf(index, 40)))
    const [first] = partitions
    const last = partitions.at(-1)
    if (first === undefined || last === undefined) throw new Error('there are three')
    const start = first.extent.offset
    const bytes = Buffer.alloc(last.extent.offset + last.extent.byteLength - start)
    const idle = virtual.disk().openFileCount
    const pinned = await virtual.drive(first.openFile())
    await virtual.drive(pinned.read(bytes, start).result)
    virtual.disk().inject({ operation: 'read', fault: { kind: 'error', code: 'EIO' } })
    const image = { bytes, start }
    for (const partition of partitions) {
      const reader = await virtual.drive(partition.openReader(image))
      let entryCount = 0
      for (let region = 0; region < reader.regionCount; region++) {
        const index = await virtual.drive(reader.regionIndex(region, image))
        expect(index.position).toBeGreaterThanOrEqual(partition.extent.offset)
        entryCount += index.entryCount
        index.release()
      }
      expect(entryCount).toBe(partition.totals.entryCount)
      await virtual.drive(reader.close())
    }
    await virtual.drive(pinned.close())
    expect(virtual.disk().openFileCount).toBe(idle)
    expect(fixture.ledger.usedBytes('index')).toBe(0)
  })

  it('finds damage in an image as it does on the disk', async () => {
    const partition = await committed(partitionOf(1, 40))
    const { offset, byteLength } = partition.extent
    const image = { bytes: Buffer.alloc(byteLength), start: offset }
    await expect(virtual.drive(partition.openReader(image))).rejects.toMatchObject({
      code: 'DATA_CORRUPT',
    })
    expect(fixture.store.lookup(partition.key).state).not.toBe('committed')
  })

  it('pins its file for reading neighbours until that is closed', async () => {
    const partition = await committed(partitionOf(1, 40))
    const pinned = await virtual.drive(partition.openFile())
    fixture.store.release([partition.key])
    await expect(partition.openFile()).rejects.toMatchObject({ code: 'PARTITION_RELEASED' })
    const target = Buffer.alloc(partition.extent.byteLength)
    const read = pinned.read(target, partition.extent.offset)
    expect(await virtual.drive(read.result)).toBe(target.length)
    await virtual.drive(pinned.close())
  })

  it('stays readable after a reader failed to open it for want of descriptors', async () => {
    const partition = await committed(partitionOf(1, 1000))
    virtual.disk().inject({
      operation: 'open',
      path: /data$/,
      times: 1,
      fault: { kind: 'error', code: 'EMFILE' },
    })
    await expect(virtual.drive(partition.openReader())).rejects.toMatchObject({
      code: 'DISK_FAILED',
    })
    const reader = await virtual.drive(partition.openReader())
    await virtual.drive(reader.close())
  })

  it('keeps what it was written with', async () => {
    const partition = await committed(partitionOf(1, 1000))
    expect(partition).toMatchObject({ subpartitionCount: 3, bufferSizeBytes: 4096, codec: 'none' })
    expect(partition.totals.storedBytes).toBe(partition.extent.byteLength)
  })
})
