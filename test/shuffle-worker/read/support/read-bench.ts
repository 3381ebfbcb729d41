// A worker's read side over partitions in memory: ledger, one or more disks, consumers.

import { expect } from 'vitest'
import { silentLogger, type Logger } from '../../../../client/common/log.ts'
import {
  fromBeginning,
  type PartitionListEntry,
  type ReadStart,
} from '../../../../client/protocol/partition-list.ts'
import { MemoryLedger } from '../../../../shuffle-worker/memory/memory-ledger.ts'
import type { SweepTurns } from '../../../../shuffle-worker/read/io-scheduler.ts'
import { ReadService } from '../../../../shuffle-worker/read/read-service.ts'
import type {
  DiskKind,
  LookupResult,
  MapPartition,
  StorageDirectoryView,
} from '../../../../shuffle-worker/storage/storage-types.ts'
import { VirtualClock } from '../../../support/virtual-clock.ts'
import { VirtualRandom } from '../../../support/virtual-random.ts'
import { Consumer } from './consumer.ts'
import {
  bufferSizeBytes,
  keyOf,
  type MemoryDisk,
  memoryPartition,
  type MemorySegment,
  newDisk,
  type RegionContent,
} from './memory-partition.ts'

export interface BenchOptions {
  readonly seed?: number
  readonly memoryBytes?: number
  readonly kind?: DiskKind
  readonly readAheadBytes?: number
  readonly entriesPerChannelMax?: number
  readonly openFilesMax?: number
  readonly clock?: VirtualClock
  readonly turns?: SweepTurns
  /** Partitions go to one after the other, by their file order. */
  readonly diskCount?: number
}

export class ReadBench {
  readonly clock: VirtualClock
  readonly random: VirtualRandom
  readonly disk: MemoryDisk
  readonly ledger: MemoryLedger
  readonly service: ReadService
  readonly directories: readonly StorageDirectoryView[]
  readonly partitions = new Map<string, LookupResult>()
  /** What the log says went wrong. */
  readonly errors: string[] = []

  constructor(options: BenchOptions = {}) {
    this.clock = options.clock ?? new VirtualClock()
    this.random = new VirtualRandom(options.seed ?? 1)
    this.disk = newDisk(this.clock, this.random)
    this.ledger = new MemoryLedger({
      clock: this.clock,
      totalBytes: options.memoryBytes ?? 4 * 1024 * 1024,
      bufferSizeBytes,
    })
    const { kind = 'ssd', diskCount = 1 } = options
    this.directories = Array.from({ length: diskCount }, (_, index) => directoryOf(kind, index))
    this.service = new ReadService({
      clock: this.clock,
      logger: this.#logger(),
      store: {
        lookup: (key) => this.partitions.get(String(key.partitionIndex)) ?? { state: 'unknown' },
        directories: this.directories,
      },
      ledger: this.ledger,
      options: {
        entriesPerChannelMax: options.entriesPerChannelMax ?? 1_000_000,
        readAheadBytes: options.readAheadBytes ?? 1024 * 1024,
        openFilesMax: options.openFilesMax ?? 4096,
      },
      turnsOf: () => options.turns,
      onDiskRead: () => undefined,
      onTimes: () => undefined,
    })
  }

  add(
    fileOrder: number,
    subpartitionCount: number,
    regions: readonly RegionContent[],
    segment?: MemorySegment,
  ): MapPartition {
    const directory = this.directories[Math.floor(fileOrder) % this.directories.length]
    if (directory === undefined) throw new Error('a bench has a disk')
    const partition = memoryPartition(this.disk, directory, {
      fileOrder,
      subpartitionCount,
      regions,
      segment,
    })
    this.partitions.set(String(fileOrder), { state: 'committed', partition })
    return partition
  }

  open(): Consumer {
    const consumer = new Consumer(this.clock)
    consumer.view = this.service.open(
      { bufferSizeBytes, initialCredit: 2 },
      consumer,
      () => undefined,
    )
    return consumer
  }

  payload(length: number): Buffer {
    return this.random.bytes(length)
  }

  /** Every buffer, block, pin and index row is back. */
  expectNothingHeld(): void {
    expect(this.ledger.usedBytes('read')).toBe(0)
    expect(this.ledger.usedBytes('control')).toBe(0)
    expect(this.service.aheadBuffers).toBe(0)
    expect(this.service.heldBuffers).toBe(0)
    expect(this.disk.openReaders).toBe(0)
    expect(this.disk.unreleasedIndexes).toBe(0)
    expect(this.service.openReads).toBe(0)
  }

  #logger(): Logger {
    return {
      ...silentLogger,
      error: (_fields, message) => this.errors.push(message),
      child: () => this.#logger(),
    }
  }
}

export function entryOf(
  index: number,
  partitionIndex: number,
  range: readonly [number, number],
  more: { readonly start?: ReadStart; readonly isPending?: boolean } = {},
): PartitionListEntry {
  return {
    index,
    key: keyOf(partitionIndex),
    firstSubpartition: range[0],
    lastSubpartition: range[1],
    start: more.start ?? fromBeginning,
    isPending: more.isPending ?? false,
  }
}

function directoryOf(kind: DiskKind, index: number): StorageDirectoryView {
  return {
    index,
    path: `/data${String(index)}`,
    kind,
    health: 'healthy',
    limits: { reads: 8, writes: 4 },
    status: () => {
      throw new Error('not needed')
    },
  }
}
