import { beforeEach, describe, expect, it } from 'vitest'
import type { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import { KeptIndexes } from '../../../shuffle-worker/storage/kept-indexes.ts'
import { layoutOf } from '../../../shuffle-worker/storage/directory-layout.ts'
import { PartitionBuilder } from '../../../shuffle-worker/storage/partition-builder.ts'
import {
  PartitionFile,
  type PartitionFileSettings,
} from '../../../shuffle-worker/storage/partition-file-reader.ts'
import { ReadingFiles } from '../../../shuffle-worker/storage/reading-files.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'
import {
  allocationOf,
  bufferSizeBytes,
  encodeRegion,
  keyOf,
  newLedger,
  regionOf,
} from './support/store-fixture.ts'

const key = keyOf(1)
const path = '/data/partitions/000000000001.data'
/** So many that table and footer don't fit one read of the file's end. */
const manySubpartitions = 32_768

let virtual: VirtualWorld
let ledger: MemoryLedger
let settings: PartitionFileSettings
let content: Buffer

beforeEach(() => {
  virtual = new VirtualWorld()
  ledger = newLedger(virtual.main)
  put(manySubpartitions)
})

/** A partition of one region, whose first run is of subpartition 3 and whose last of another. */
function put(subpartitionCount: number): void {
  const shape = { key, allocation: allocationOf(1), subpartitionCount, bufferSizeBytes, codec: '' }
  const builder = new PartitionBuilder(shape)
  const entries = Buffer.concat(
    encodeRegion(
      key,
      0,
      regionOf(key, 0, {
        subpartitions: [3, Math.min(30_000, subpartitionCount - 1)],
        entriesPerRun: 2,
        payloadBytes: 100,
      }),
    ),
  )
  const byteCount = entries.byteLength
  builder.startRegion({ regionIndex: 0, isBroadcast: false, boundBytes: byteCount })
  builder.add(entries, byteCount)
  const row = builder.finishRegion({ entryCount: 4, byteCount })
  const uncompressedBytes = Array.from({ length: subpartitionCount }, (_, each) => 1000 + each)
  const totals = { regionCount: 1, byteCount, recordCount: 9, uncompressedBytes }
  content = Buffer.concat([entries, row, builder.finish(totals, 'none')])
  virtual.disk().put(path, content)
  settings = {
    files: new ReadingFiles(newQueuedDisk(virtual.main), layoutOf('/data')),
    ledger,
    place: { kind: 'file', ordinal: 1, offset: 0, byteLength: content.byteLength },
    facts: {
      ...shape,
      durability: 'none',
      regionCount: 1,
      entryCount: 4,
      byteCount,
      recordCount: 9,
    },
  }
}

const open = () => virtual.drive(PartitionFile.open(settings))

async function expectNothingHeld(): Promise<void> {
  await virtual.clock.advance(100)
  expect(ledger.usedBytes('index')).toBe(0)
  expect(virtual.disk().openFileCount).toBe(0)
}

describe('an open partition', () => {
  it('reads its index and its entries, and counts their memory until the last hand lets go', async () => {
    const file = await open()
    const held = await virtual.drive(Promise.all([file.regionIndex(0), file.regionIndex(0)]))
    expect(ledger.usedBytes('index')).toBeGreaterThan(0)
    const runs = [...held[0].runs(0, manySubpartitions)]
    expect(runs.map((run) => run.subpartition)).toEqual([3, 30_000])
    const run = runs[1] ?? { position: 0, byteLength: 0 }
    const target = Buffer.alloc(run.byteLength)
    await virtual.drive(file.read(target, run.position).result)
    expect(target).toEqual(content.subarray(run.position, run.position + run.byteLength))
    const before = ledger.usedBytes('index')
    held[0].release()
    expect(ledger.usedBytes('index')).toBe(before)
    held[1].release()
    expect(ledger.usedBytes('index')).toBeLessThan(before)
    await virtual.drive(file.close())
    await expectNothingHeld()
  })

  it('reads the bytes per subpartition when they are asked for', async () => {
    const bytes = await virtual.drive(PartitionFile.uncompressedBytes(settings))
    expect(bytes[32_767]).toBe(33_767)
    await expectNothingHeld()
  })

  it('never shows a damaged table, row or footer as data', async () => {
    const rowAt = settings.facts.byteCount + 2
    for (const at of [
      content.byteLength - 20,
      content.byteLength - 100,
      content.byteLength - 100_000,
    ]) {
      const damaged = Buffer.from(content)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      virtual.disk().put(path, damaged)
      await expect(open()).rejects.toMatchObject({ code: 'DATA_CORRUPT' })
      await expectNothingHeld()
    }
    const damaged = Buffer.from(content)
    damaged[rowAt] = (damaged[rowAt] ?? 0) ^ 1
    virtual.disk().put(path, damaged)
    const file = await open()
    await expect(virtual.drive(file.regionIndex(0))).rejects.toMatchObject({ code: 'DATA_CORRUPT' })
    await virtual.drive(file.close())
    await expectNothingHeld()
  })

  it('gives the memory back when the last row, kept for the next reads, is damaged', async () => {
    put(8)
    const damaged = Buffer.from(content)
    const rowAt = settings.facts.byteCount + 2
    damaged[rowAt] = (damaged[rowAt] ?? 0) ^ 1
    virtual.disk().put(path, damaged)
    const kept = new KeptIndexes({ clock: virtual.clock, ledger }).of(key.jobId)
    settings = { ...settings, kept }
    await expect(open()).rejects.toMatchObject({ code: 'DATA_CORRUPT' })
    await expectNothingHeld()
  })

  it('is DATA_CORRUPT when the file holds another partition or is too short', async () => {
    settings = { ...settings, facts: { ...settings.facts, recordCount: 10 } }
    await expect(open()).rejects.toThrow(/another partition/)
    virtual.disk().put(path, content.subarray(0, 100))
    await expect(open()).rejects.toMatchObject({ code: 'DATA_CORRUPT' })
    await expectNothingHeld()
  })

  it('never takes a short read for a whole one', async () => {
    const file = await open()
    const { result } = file.read(Buffer.alloc(10), content.byteLength - 5)
    await expect(virtual.drive(result)).rejects.toMatchObject({ code: 'DATA_CORRUPT' })
    await virtual.drive(file.close())
  })

  it('keeps the memory of a hung read counted until it ends', async () => {
    virtual.disk().inject({ operation: 'read', fault: { kind: 'hang' }, times: 1 })
    await expect(open()).rejects.toMatchObject({ code: 'DISK_FAILED' })
    expect(ledger.usedBytes('index')).toBeGreaterThan(0)
    virtual.disk().releaseHung()
    await expectNothingHeld()
  })

  it('waits for index memory, and is BUSY when it stays full', async () => {
    const all = ledger.tryReserve({ purpose: 'index', bytes: ledger.partBytes('index') })
    await expect(open()).rejects.toMatchObject({ code: 'BUSY' })
    all?.release()
    await expectNothingHeld()
  })
})
