import { beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'
import type { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import { HeldPartitions } from '../../../shuffle-worker/storage/held-partitions.ts'
import { OpenWrite } from '../../../shuffle-worker/storage/open-write.ts'
import type { StorageDirectory } from '../../../shuffle-worker/storage/storage-directory.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { openDirectory } from './support/directory-bench.ts'
import {
  allocationOf,
  bufferSizeBytes,
  encodeRegion,
  fillBuffers,
  keyOf,
  newLedger,
  regionOf,
  sumOfLengths,
} from './support/store-fixture.ts'

const key = keyOf(1)
const entries = encodeRegion(
  key,
  0,
  regionOf(key, 0, { subpartitions: [0, 1], entriesPerRun: 2, payloadBytes: 1000 }),
)
const byteCount = sumOfLengths(entries)
const region = { regionIndex: 0, isBroadcast: false, boundBytes: 3 * byteCount } as const
const regionTotals = { entryCount: entries.length, byteCount }
const totals = { regionCount: 1, byteCount, recordCount: 1, uncompressedBytes: [1, 2] }

let virtual: VirtualWorld
let directory: StorageDirectory
let ledger: MemoryLedger
let write: OpenWrite
let ended: Error[]

beforeEach(async () => {
  virtual = new VirtualWorld()
  directory = (await virtual.drive(openDirectory(virtual.main))).directory
  ledger = newLedger(virtual.main)
  ended = []
  write = new OpenWrite({
    request: { key, allocation: allocationOf(1), subpartitionCount: 2, bufferSizeBytes, codec: '' },
    directory,
    ledger,
    held: new HeldPartitions({ bytesMax: 1e6 }),
    clock: virtual.main.clock,
    logger: silentLogger,
    durability: 'none',
    smallPartitionBytesMax: 100,
    abortTimeoutMs: 1000,
    onCommitted: ({ place, facts }) => ({ ...facts, storedBytes: place.byteLength }),
    onEnded: (failure) => ended.push(failure),
  })
  write.reserveEnd()
})

async function expectNothingLeft(): Promise<void> {
  await virtual.clock.runUntil(() => ended.length === 1)
  expect(ledger.usedBytes('write') + ledger.usedBytes('index')).toBe(0)
  expect(directory.space.reservedBytes).toBe(0)
  expect(virtual.disk().filesBelow('/data/partitions')).toEqual([])
}

describe('an open write', () => {
  it('gives back the reserve that a region did not need, and at the commit the rest', async () => {
    const before = directory.space.reservedBytes
    await virtual.drive(write.startRegion(region))
    expect(directory.space.reservedBytes).toBeGreaterThan(before + region.boundBytes)
    await virtual.drive(write.append(fillBuffers(ledger, entries)))
    await virtual.drive(write.finishRegion(regionTotals))
    expect(directory.space.reservedBytes).toBeLessThan(before + 100)
    expect(ledger.usedBytes('index')).toBe(0)
    const committed = await virtual.drive(write.finish(totals))
    expect(committed.storedBytes).toBeGreaterThan(byteCount)
    expect(directory.space.reservedBytes).toBe(0)
    expect(ended).toEqual([])
    await virtual.drive(write.abort())
    expect(ended).toEqual([])
  })

  it('takes the pieces of a region without waiting for each', async () => {
    await virtual.drive(write.startRegion(region))
    const appends = entries.map((entry) => write.append(fillBuffers(ledger, [entry])))
    await virtual.drive(Promise.all([...appends, write.finishRegion(regionTotals)]))
    await virtual.drive(write.finish(totals))
    const [path] = virtual.disk().filesBelow('/data/partitions')
    const content = Buffer.from(virtual.disk().contentOf(path ?? '') ?? [])
    expect(content.subarray(0, byteCount)).toEqual(Buffer.concat(entries))
  })

  it.each([
    [
      'an entry is wrong',
      'PROTOCOL',
      () => write.append(fillBuffers(ledger, entries.slice().reverse())),
    ],
    [
      'the counts differ',
      'COUNT_MISMATCH',
      () => write.finishRegion({ entryCount: 1, byteCount: 1 }),
    ],
    ['it finishes within a region', 'PROTOCOL', () => write.finish(totals)],
    [
      'a region starts within another',
      'PROTOCOL',
      () => write.startRegion({ ...region, regionIndex: 1 }),
    ],
  ] as const)('ends, and leaves nothing, when %s', async (_, code, step) => {
    await virtual.drive(write.startRegion(region))
    await expect(virtual.drive(step() as Promise<unknown>)).rejects.toMatchObject({ code })
    expect(write.failure).toMatchObject({ code })
    await expectNothingLeft()
    const late = fillBuffers(ledger, entries)
    await expect(write.append(late)).rejects.toMatchObject({ code })
    expect(ledger.usedBytes('write')).toBe(0)
  })

  it('ends with NO_SPACE when a region does not fit; a disk with much left stays open to others', async () => {
    const boundBytes = directory.space.availableBytes
    await expect(virtual.drive(write.startRegion({ ...region, boundBytes }))).rejects.toMatchObject(
      { code: 'NO_SPACE', fields: { directory: '/data' } },
    )
    expect(directory.isFull).toBe(false)
    await expectNothingLeft()
  })

  it('is not held up by a disk that hangs when it is aborted', async () => {
    await virtual.drive(write.startRegion(region))
    virtual.disk().inject({ operation: 'open', fault: { kind: 'hang' }, times: 1 })
    const appended = write.append(fillBuffers(ledger, entries))
    appended.catch(() => undefined)
    await virtual.drive(write.abort(), 2000)
    await expect(appended).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(ended).toEqual([])
    virtual.disk().releaseHung()
    await expectNothingLeft()
  })

  it.each([
    ['is written', 0],
    ['is written, and then takes no more', 1],
  ])('does not come back when it is released while the journal %s', async (_, times) => {
    virtual.disk().inject({
      operation: 'write',
      path: /journal/,
      after: 1,
      times,
      fault: { kind: 'error', code: 'ENOSPC' },
    })
    await virtual.drive(write.startRegion(region))
    await virtual.drive(write.append(fillBuffers(ledger, entries)))
    await virtual.drive(write.finishRegion(regionTotals))
    const finishing = write.finish(totals)
    const renamed = () =>
      virtual
        .disk()
        .filesBelow('/data')
        .some((path) => path.endsWith('.data'))
    await virtual.clock.runUntil(renamed)
    await virtual.clock.advance(0.001)
    write.end(new Error('released'))
    await expect(virtual.drive(finishing)).rejects.toThrow('released')
    await expectNothingLeft()
    expect(directory.journal.state.committed.size).toBe(0)
    expect(directory.journal.state.released.size).toBe(0)
  })
})
