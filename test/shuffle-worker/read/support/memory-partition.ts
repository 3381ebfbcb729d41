// A committed partition in memory, for tests of the read path: its file, its index, and a reader
// whose reads take a random time on the virtual clock and end in any order.

import {
  type PartitionKey,
  parseAttemptId,
  parseDataSetId,
  parseJobId,
} from '../../../../client/common/ids.ts'
import { ShuffleError } from '../../../../client/common/errors.ts'
import {
  broadcastSubpartition,
  entryFlags,
  entryHeaderLength,
  writeEntryHeader,
} from '../../../../client/protocol/entry.ts'
import type {
  DiskRead,
  FileImage,
  MapPartition,
  PartitionReader,
  RegionIndex,
  RegionRange,
  StorageDirectoryView,
} from '../../../../shuffle-worker/storage/storage-types.ts'
import type { VirtualClock } from '../../../support/virtual-clock.ts'
import type { VirtualRandom } from '../../../support/virtual-random.ts'

/** Payloads by subpartition; of a broadcast region, the payloads alone. */
export type RegionContent =
  | { readonly kind: 'sorted'; readonly runs: readonly (readonly Uint8Array[])[] }
  | { readonly kind: 'broadcast'; readonly run: readonly Uint8Array[] }

export const bufferSizeBytes = 4096

export interface MemoryDisk {
  readonly clock: VirtualClock
  readonly random: VirtualRandom
  latencyMs: readonly [number, number]
  /** Reads issued, in order. */
  readonly reads: { readonly fileOrder: number; readonly start: number; readonly length: number }[]
  openReaders: number
  unreleasedIndexes: number
  /** Tables and index rows read from the disk, not from an image. */
  tableReads: number
  indexReads: number
  /** Reads of this partition fail. */
  readonly failing: Set<number>
  readonly released: Set<number>
  /** Files are closed with it. */
  closeError: Error | undefined
}

export function newDisk(clock: VirtualClock, random: VirtualRandom): MemoryDisk {
  return {
    clock,
    random,
    latencyMs: [0.1, 2],
    reads: [],
    openReaders: 0,
    unreleasedIndexes: 0,
    tableReads: 0,
    indexReads: 0,
    failing: new Set(),
    released: new Set(),
    closeError: undefined,
  }
}

export function keyOf(partitionIndex: number): PartitionKey {
  return {
    jobId: parseJobId('job'),
    dataSetId: parseDataSetId('data'),
    partitionIndex,
    attemptId: parseAttemptId('attempt'),
  }
}

/** A file that partitions share, each behind a header. */
export class MemorySegment {
  readonly ordinal: number
  readonly #parts: Buffer[] = [Buffer.alloc(8, 0xdd)]
  #length = 8
  #bytes: Buffer | undefined

  constructor(ordinal: number) {
    this.ordinal = ordinal
  }

  get bytes(): Buffer {
    this.#bytes ??= Buffer.concat(this.#parts)
    return this.#bytes
  }

  /** Returns where it begins. */
  append(bytes: Buffer): number {
    this.#parts.push(Buffer.alloc(20, 0xdd), bytes)
    this.#bytes = undefined
    const offset = this.#length + 20
    this.#length = offset + bytes.length
    return offset
  }
}

interface StoredRegion {
  readonly isBroadcast: boolean
  position: number
  /** Start of each run relative to the region, and its end. */
  readonly offsets: readonly number[]
  readonly entryCounts: readonly number[]
}

export function memoryPartition(
  disk: MemoryDisk,
  directory: StorageDirectoryView,
  options: {
    readonly fileOrder: number
    readonly subpartitionCount: number
    readonly regions: readonly RegionContent[]
    /** Bytes between regions, as index rows are. */
    readonly gapBytes?: number
    /** Where it lies; a file of its own without. `fileOrder` is only its number then. */
    readonly segment?: MemorySegment | undefined
  },
): MapPartition {
  const parts: Buffer[] = []
  const stored: StoredRegion[] = []
  let position = 0
  for (const region of options.regions) {
    const runs = region.kind === 'broadcast' ? [region.run] : region.runs
    const offsets = [0]
    const entryCounts: number[] = []
    const start = position
    runs.forEach((run, index) => {
      const mark = region.kind === 'broadcast' ? broadcastSubpartition : index
      for (const bytes of encodeRun(run, mark)) {
        parts.push(bytes)
        position += bytes.length
      }
      offsets.push(position - start)
      entryCounts.push(run.length)
    })
    stored.push({
      isBroadcast: region.kind === 'broadcast',
      position: start,
      offsets,
      entryCounts,
    })
    parts.push(Buffer.alloc(options.gapBytes ?? 40, 0xee))
    position += options.gapBytes ?? 40
  }
  const content = Buffer.concat(parts)
  const offset = options.segment?.append(content) ?? 0
  for (const region of stored) region.position += offset
  const fileBytes = () => options.segment?.bytes ?? content
  const byteCount = stored.reduce((sum, region) => sum + (region.offsets.at(-1) ?? 0), 0)
  const partition: MapPartition = {
    key: keyOf(options.fileOrder),
    allocation: { managerEpoch: 1, jobEpoch: 1, sequence: options.fileOrder },
    directory,
    extent: {
      fileOrdinal: options.segment?.ordinal ?? options.fileOrder,
      offset,
      byteLength: content.length,
    },
    fileOrder: options.segment ? options.segment.ordinal + offset / 2 ** 27 : options.fileOrder,
    subpartitionCount: options.subpartitionCount,
    bufferSizeBytes,
    codec: 'none',
    totals: {
      regionCount: stored.length,
      entryCount: 0,
      byteCount,
      recordCount: 0,
      storedBytes: content.length,
      durability: 'none',
    },
    openReader: (image) => {
      if (disk.released.has(options.fileOrder)) {
        return Promise.reject(new ShuffleError('PARTITION_RELEASED', 'released'))
      }
      disk.openReaders += 1
      if (!isInImage(partition, image)) disk.tableReads += 1
      return Promise.resolve(readerOf(disk, partition, stored, fileBytes()))
    },
    openFile: () => {
      if (disk.released.has(options.fileOrder)) {
        return Promise.reject(new ShuffleError('PARTITION_RELEASED', 'released'))
      }
      disk.openReaders += 1
      return Promise.resolve({
        read: (target, position) => startRead(disk, partition, fileBytes(), { target, position }),
        close: () => {
          disk.openReaders -= 1
          return closed(disk)
        },
      })
    },
    uncompressedBytes: () => Promise.resolve(new Float64Array(options.subpartitionCount)),
  }
  return partition
}

function closed({ closeError }: MemoryDisk): Promise<void> {
  return closeError === undefined ? Promise.resolve() : Promise.reject(closeError)
}

function isInImage(partition: MapPartition, image: FileImage | undefined): boolean {
  const { offset, byteLength } = partition.extent
  if (image === undefined || offset < image.start) return false
  return offset + byteLength <= image.start + image.bytes.length
}

function encodeRun(run: readonly Uint8Array[], subpartition: number): Buffer[] {
  return run.map((payload, index) => {
    const entry = Buffer.alloc(entryHeaderLength + payload.length)
    writeEntryHeader(entry, 0, {
      length: payload.length,
      subpartition,
      flags: index === run.length - 1 ? entryFlags.lastOfRun : 0,
      type: 0,
      checksum: 0,
    })
    entry.set(payload, entryHeaderLength)
    return entry
  })
}

function readerOf(
  disk: MemoryDisk,
  partition: MapPartition,
  stored: readonly StoredRegion[],
  file: Buffer,
): PartitionReader {
  let isOpen = true
  return {
    partition,
    blockBytes: 1,
    regionCount: stored.length,
    regionIndex: (index, image) => {
      if (!isInImage(partition, image)) disk.indexReads += 1
      const region = stored[index]
      if (region === undefined) return Promise.reject(new Error('no such region'))
      disk.unreleasedIndexes += 1
      return Promise.resolve(indexOf(disk, region, index))
    },
    read: (target, position) => startRead(disk, partition, file, { target, position }),
    close: () => {
      if (isOpen) disk.openReaders -= 1
      isOpen = false
      return closed(disk)
    },
  }
}

function startRead(
  disk: MemoryDisk,
  partition: MapPartition,
  file: Buffer,
  read: { readonly target: Uint8Array; readonly position: number },
): DiskRead {
  const { target, position } = read
  disk.reads.push({ fileOrder: partition.fileOrder, start: position, length: target.length })
  const [least, most] = disk.latencyMs
  const delay = least + disk.random.float() * (most - least)
  const ended = new Promise<void>((resolve) => {
    disk.clock.schedule(delay, () => {
      target.set(file.subarray(position, position + target.length))
      resolve()
    })
  })
  const result = ended.then(() => {
    if (disk.failing.has(partition.key.partitionIndex)) {
      throw new ShuffleError('DISK_FAILED', 'the read failed')
    }
    return Math.min(target.length, file.length - position)
  })
  result.catch(() => undefined)
  return { result, ended }
}

function indexOf(disk: MemoryDisk, region: StoredRegion, regionIndex: number): RegionIndex {
  const offset = (subpartition: number) => region.offsets[subpartition] ?? 0
  const range = (first: number, last: number): RegionRange => {
    const [low, high] = region.isBroadcast ? [0, 0] : [first, last]
    return {
      position: region.position + offset(low),
      byteLength: offset(high + 1) - offset(low),
      entryCount: region.entryCounts.slice(low, high + 1).reduce((sum, count) => sum + count, 0),
    }
  }
  return {
    ...range(0, region.entryCounts.length - 1),
    regionIndex,
    isBroadcast: region.isBroadcast,
    range,
    runs: () => [],
    release: () => {
      disk.unreleasedIndexes -= 1
    },
  }
}
