// A data store on a virtual disk, and producers that write known partitions into it.

import { Registry } from 'prom-client'
import type { PooledBuffer } from '../../../../client/common/buffer.ts'
import {
  parseAttemptId,
  parseClusterId,
  parseDataSetId,
  parseJobId,
  type AllocationId,
  type PartitionKey,
} from '../../../../client/common/ids.ts'
import { silentLogger, type Logger } from '../../../../client/common/log.ts'
import type { World } from '../../../../client/common/world.ts'
import {
  broadcastSubpartition,
  EntryChecksum,
  entryFlags,
  entryHeaderLength,
  writeEntryHeader,
} from '../../../../client/protocol/entry.ts'
import { MemoryLedger } from '../../../../shuffle-worker/memory/memory-ledger.ts'
import { DataStore } from '../../../../shuffle-worker/storage/data-store.ts'
import type { DirectorySettings } from '../../../../shuffle-worker/storage/directory-io.ts'
import type { DataStoreOptions } from '../../../../shuffle-worker/storage/data-store-options.ts'
import type { PartitionFacts } from '../../../../shuffle-worker/storage/partition-format.ts'
import type {
  CommittedTotals,
  Durability,
  FilledBuffer,
  MapPartition,
  PartitionWriter,
} from '../../../../shuffle-worker/storage/storage-types.ts'

export const clusterId = parseClusterId('test-cluster')
export const bufferSizeBytes = 4096

export function keyOf(partitionIndex: number, attempt = 'a1'): PartitionKey {
  return {
    jobId: parseJobId('job'),
    dataSetId: parseDataSetId('data-set'),
    partitionIndex,
    attemptId: parseAttemptId(attempt),
  }
}

export function allocationOf(sequence: number): AllocationId {
  return { managerEpoch: 1, jobEpoch: 1, sequence }
}

export function factsOf(key: PartitionKey, durability: Durability = 'none'): PartitionFacts {
  return {
    key,
    allocation: allocationOf(key.partitionIndex),
    subpartitionCount: 3,
    bufferSizeBytes,
    codec: 'none',
    durability,
    regionCount: 0,
    entryCount: 0,
    byteCount: 0,
    recordCount: 0,
  }
}

export function newLedger(world: World): MemoryLedger {
  return new MemoryLedger({
    clock: world.clock,
    totalBytes: 8 * 1024 * 1024,
    bufferSizeBytes,
  })
}

export interface StoreFixture {
  readonly store: DataStore
  readonly ledger: MemoryLedger
  readonly registry: Registry
}

export async function openStore(
  world: World,
  options: Partial<DataStoreOptions> = {},
  directories: readonly DirectorySettings[] = [{ path: '/data', kind: 'ssd' }],
  logger: Logger = silentLogger,
): Promise<StoreFixture> {
  const ledger = newLedger(world)
  const registry = new Registry()
  const store = await DataStore.open({
    world,
    clusterId,
    directories,
    ledger,
    options: { minReservedSpaceBytes: 0, ...options },
    registry,
    logger,
  })
  return { store, ledger, registry }
}

/** What a producer has: per region the payloads of each subpartition. */
export interface TestRegion {
  readonly isBroadcast: boolean
  readonly runs: readonly {
    readonly subpartition: number
    readonly payloads: readonly Uint8Array[]
  }[]
}

/** Payloads that say where they are from, so that a wrong one is seen. */
export function regionOf(
  key: PartitionKey,
  regionIndex: number,
  shape: {
    readonly isBroadcast?: boolean
    readonly subpartitions: readonly number[]
    readonly entriesPerRun: number
    readonly payloadBytes: number
  },
): TestRegion {
  const runs = shape.subpartitions.map((subpartition) => ({
    subpartition: shape.isBroadcast === true ? broadcastSubpartition : subpartition,
    payloads: Array.from({ length: shape.entriesPerRun }, (_, position) => {
      const text = `${String(key.partitionIndex)}/${key.attemptId}/${String(regionIndex)}/${String(subpartition)}/${String(position)} `
      return Buffer.alloc(shape.payloadBytes, text)
    }),
  }))
  return { isBroadcast: shape.isBroadcast ?? false, runs }
}

export function encodeRegion(
  key: PartitionKey,
  regionIndex: number,
  region: TestRegion,
): Uint8Array[] {
  const checksum = new EntryChecksum(key)
  return region.runs.flatMap(({ subpartition, payloads }) =>
    payloads.map((payload, position) => {
      const flags = position === payloads.length - 1 ? entryFlags.lastOfRun : 0
      const identity = { regionIndex, subpartition, position, flags, type: 0 }
      const entry = Buffer.alloc(entryHeaderLength + payload.byteLength)
      writeEntryHeader(entry, 0, {
        length: payload.byteLength,
        subpartition,
        flags,
        type: 0,
        checksum: checksum.of(identity, payload),
      })
      entry.set(payload, entryHeaderLength)
      return entry
    }),
  )
}

/** Buffers of the pool with as many whole entries as fit each. */
export function fillBuffers(ledger: MemoryLedger, entries: readonly Uint8Array[]): FilledBuffer[] {
  const filled: { buffer: PooledBuffer; length: number }[] = []
  for (const entry of entries) {
    let last = filled.at(-1)
    if (last === undefined || last.length + entry.byteLength > bufferSizeBytes) {
      const buffer = ledger.tryAcquire({ purpose: 'write', count: 1 })?.[0]
      if (buffer === undefined) throw new Error('the test wants more memory than there is')
      last = { buffer, length: 0 }
      filled.push(last)
    }
    last.buffer.bytes.set(entry, last.length)
    last.length += entry.byteLength
  }
  return filled
}

export async function writeRegion(
  ledger: MemoryLedger,
  writer: PartitionWriter,
  regionIndex: number,
  region: TestRegion,
): Promise<number> {
  const entries = encodeRegion(writer.key, regionIndex, region)
  const byteCount = sumOfLengths(entries)
  await writer.startRegion({ regionIndex, isBroadcast: region.isBroadcast, boundBytes: byteCount })
  await writer.append(fillBuffers(ledger, entries))
  await writer.finishRegion({ entryCount: entries.length, byteCount })
  return byteCount
}

export interface TestPartition {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  readonly subpartitionCount: number
  readonly regions: readonly TestRegion[]
}

export function partitionOf(
  partitionIndex: number,
  payloadBytes: number,
  options: { readonly attempt?: string; readonly regions?: number } = {},
): TestPartition {
  const key = keyOf(partitionIndex, options.attempt)
  const regions = Array.from({ length: options.regions ?? 2 }, (_, regionIndex) =>
    regionOf(key, regionIndex, { subpartitions: [0, 2], entriesPerRun: 2, payloadBytes }),
  )
  return { key, allocation: allocationOf(partitionIndex), subpartitionCount: 3, regions }
}

export async function writePartition(
  {
    store,
    ledger,
  }: { readonly store: Pick<DataStore, 'openWrite'> } & Pick<StoreFixture, 'ledger'>,
  partition: TestPartition,
): Promise<CommittedTotals> {
  const { key, allocation, subpartitionCount, regions } = partition
  const writer = await store.openWrite({
    key,
    allocation,
    subpartitionCount,
    bufferSizeBytes,
    codec: 'none',
  })
  let byteCount = 0
  for (const [index, region] of regions.entries()) {
    byteCount += await writeRegion(ledger, writer, index, region)
  }
  return writer.finish({
    regionCount: regions.length,
    byteCount,
    recordCount: 7,
    uncompressedBytes: Array.from({ length: subpartitionCount }, (_, each) => each * 10),
  })
}

/** All stored bytes of the partition's entries, region by region, read as a consumer's worker does. */
export async function readEntries(partition: MapPartition): Promise<Buffer> {
  const reader = await partition.openReader()
  const pieces: Buffer[] = []
  try {
    for (let index = 0; index < reader.regionCount; index += 1) {
      const region = await reader.regionIndex(index)
      for (const run of region.isBroadcast ? [region] : region.runs(0, 2 ** 31)) {
        const target = Buffer.alloc(run.byteLength)
        await reader.read(target, run.position).result
        pieces.push(target)
      }
      region.release()
    }
  } finally {
    await reader.close()
  }
  return Buffer.concat(pieces)
}

export function entriesOf(partition: TestPartition): Buffer {
  return Buffer.concat(
    partition.regions.flatMap((region, index) => encodeRegion(partition.key, index, region)),
  )
}

export function sumOfLengths(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0)
}
