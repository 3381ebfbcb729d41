// What the write, read and control services see of storage: types only. The data store implements
// them; nothing here knows of files, journals or disks' insides.

import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { ErrorCode } from '../../client/common/errors.ts'
import type { AllocationId, PartitionKey } from '../../client/common/ids.ts'

/** Configured, never guessed: inside a virtual machine a disk does not say what it is. */
export type DiskKind = 'ssd' | 'hdd'

/**
 * `none` survives the death of the process, `sync` that of the machine.
 */
export type Durability = 'none' | 'sync'

/**
 * - `healthy`: chosen for new partitions while it has room
 * - `suspect`: missed a deadline or failed a probe; no new partitions, no grants, still serves
 * - `failed`: no probe has succeeded for too long, its partitions are lost; until the next start
 */
export type DiskHealth = 'healthy' | 'suspect' | 'failed'

export interface DirectoryStatus {
  /** Number of the directory in the configuration, 0-based. */
  readonly index: number
  readonly path: string
  readonly kind: DiskKind
  readonly health: DiskHealth
  /** Closed to new partitions for want of space; it keeps serving. */
  readonly isFull: boolean
  readonly totalBytes: number
  /** What new regions may still reserve: free, less the reserved floor and open reservations. */
  readonly availableBytes: number
  /** Names the file system: two directories with the same share its space. */
  readonly fileSystem?: string | undefined
  readonly partitionCount: number
  readonly partitionBytes: number
}

export interface OpenWriteRequest {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  readonly subpartitionCount: number
  /** The data set's, at most the pool's. */
  readonly bufferSizeBytes: number
  /** Name of the client's codec; kept and handed back, never used here. */
  readonly codec: string
  readonly expectedBytes?: number
}

/** A filled buffer: the first `length` bytes are whole entries. */
export interface FilledBuffer {
  readonly buffer: PooledBuffer
  readonly length: number
}

export interface RegionStart {
  /** 0 for the first, then one more each. */
  readonly regionIndex: number
  readonly isBroadcast: boolean
  /** The most that the entries of the region can take, headers counted. */
  readonly boundBytes: number
}

export interface RegionTotals {
  readonly entryCount: number
  /** Of the entries as stored, headers counted. */
  readonly byteCount: number
}

export interface WriteTotals {
  readonly regionCount: number
  readonly byteCount: number
  readonly recordCount: number
  /** One figure per subpartition. */
  readonly uncompressedBytes: readonly number[] | Float64Array
}

export interface CommittedTotals {
  readonly regionCount: number
  readonly entryCount: number
  /** Of the entries as stored, headers counted. */
  readonly byteCount: number
  readonly recordCount: number
  /** What the partition takes on the disk, index and footer counted. */
  readonly storedBytes: number
  readonly durability: Durability
}

/**
 * One open write. Calls come one after the other but `append` may be called again before the last
 * one's promise settles. After a rejection everything of the write is freed already, and only
 * `abort` may follow.
 */
export interface PartitionWriter {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  readonly directory: StorageDirectoryView
  /** Reserves the region's space; NO_SPACE when it is not there, and the write has failed. */
  startRegion(start: RegionStart): Promise<void>
  /**
   * Checks the entries and writes them. Takes the buffers: each is recycled when the disk is done
   * with it, on every path. Resolves when all are written; PROTOCOL when an entry is wrong.
   */
  append(buffers: readonly FilledBuffer[]): Promise<void>
  /** Writes the region's index row; COUNT_MISMATCH when the totals differ from what came. */
  finishRegion(totals: RegionTotals): Promise<void>
  /** Commits; when it resolves the partition can be read. */
  finish(totals: WriteTotals): Promise<CommittedTotals>
  /** Gives everything back and deletes what was written. Idempotent; nothing after a finish. */
  abort(): Promise<void>
  /** Why the write ended from within (released, disk failed); undefined while it lives. */
  readonly failure: Error | undefined
}

/**
 * A read under way. `result` is the outcome for the reader: the bytes read, or DISK_FAILED also
 * when the deadline passed. `ended` never rejects and resolves when the disk no longer touches the
 * memory: only then may the target be recycled.
 */
export interface DiskRead {
  readonly result: Promise<number>
  readonly ended: Promise<void>
}

/** A run, or neighbouring runs, of one region: where they lie in the file. */
export interface RegionRange {
  /** Absolute in the file, as `PartitionReader.read` takes it. */
  readonly position: number
  readonly byteLength: number
  readonly entryCount: number
}

export interface RegionRun extends RegionRange {
  readonly subpartition: number
}

/** The index of one region. Its memory is counted in the ledger until it is released. */
export interface RegionIndex extends RegionRange {
  readonly regionIndex: number
  readonly isBroadcast: boolean
  /** All runs of the subpartitions `first` to `last`, which are neighbours; of a broadcast region, the whole. */
  range(first: number, last: number): RegionRange
  /**
   * The runs that are not empty, ascending. Of a broadcast region: one per subpartition of the
   * range, all over the same bytes.
   */
  runs(first: number, last: number): Iterable<RegionRun>
  release(): void
}

/** Bytes of a partition's file, of neighbours in it too, that were read before. */
export interface FileImage {
  readonly bytes: Uint8Array
  /** Position in the file of the first. */
  readonly start: number
}

/** The file of a pinned partition, to be read together with neighbours before any is opened. */
export interface PinnedFile {
  /** As {@link PartitionReader.read}. */
  read(target: Uint8Array, position: number): DiskRead
  /** Exactly once. */
  close(): Promise<void>
}

/** A pin on a committed partition: its bytes stay until `close`, even when it is released. */
export interface PartitionReader {
  readonly partition: MapPartition
  readonly regionCount: number
  /**
   * DATA_CORRUPT when the stored row is damaged, BUSY when the index memory stays full. What `image`
   * holds is not read from the disk; it may be recycled when the promise has settled.
   */
  regionIndex(regionIndex: number, image?: FileImage): Promise<RegionIndex>
  /** What positions, lengths and memory of a read should be multiples of: 1, or a block. */
  readonly blockBytes: number
  /**
   * Reads through the disk's queue; positions are absolute in the file. Fewer than `bytesMin` bytes
   * (all of `target` unless given) are an error.
   */
  read(target: Uint8Array, position: number, bytesMin?: number): DiskRead
  /** Waits for reads under way. Idempotent. */
  close(): Promise<void>
}

/** Where a partition's bytes lie. Partitions of one segment share a file. */
export interface PartitionExtent {
  /** Allocation order of the files of one directory. */
  readonly fileOrdinal: number
  readonly offset: number
  readonly byteLength: number
}

/** A committed partition. */
export interface MapPartition {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  readonly directory: StorageDirectoryView
  readonly extent: PartitionExtent
  /** Ascending in allocation order within a directory: the cyclic order of the sweep. */
  readonly fileOrder: number
  readonly subpartitionCount: number
  readonly bufferSizeBytes: number
  readonly codec: string
  readonly totals: CommittedTotals
  /**
   * Pins at the call; PARTITION_RELEASED, DATA_CORRUPT or DISK_FAILED when it can't be opened. `image`
   * as in {@link PartitionReader.regionIndex}.
   */
  openReader(image?: FileImage): Promise<PartitionReader>
  /** Pins at the call and reads nothing; errors as of `openReader`. */
  openFile(): Promise<PinnedFile>
  /** Uncompressed bytes of each subpartition, from the file's table. */
  uncompressedBytes(): Promise<Float64Array>
}

export type LookupResult =
  | { readonly state: 'committed'; readonly partition: MapPartition }
  | { readonly state: 'writing' }
  | { readonly state: 'released' }
  /** Was here and can't be served any more; `code` is what a reader gets. */
  | { readonly state: 'lost'; readonly code: ErrorCode }
  | { readonly state: 'unknown' }

/** One line of the full list for the manager. */
export interface PartitionReport {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  /** `releasing`: told to release, readers still there. `released`: gone, not yet confirmed. */
  readonly state: 'writing' | 'committed' | 'releasing' | 'released'
  /** Stored bytes; 0 while it is being written. */
  readonly byteCount: number
}

export const lossCauses = ['disk-failed', 'data-corrupt', 'file-missing', 'not-durable'] as const
export type LossCause = (typeof lossCauses)[number]

export type StoreChange =
  | { readonly kind: 'opened'; readonly partition: PartitionReport }
  | { readonly kind: 'aborted'; readonly key: PartitionKey }
  | { readonly kind: 'committed'; readonly partition: PartitionReport }
  /** Gone from the disk. Repeated in `list` as `released` until confirmed. */
  | { readonly kind: 'released'; readonly keys: readonly PartitionKey[] }
  | {
      readonly kind: 'lost'
      readonly cause: LossCause
      readonly directoryIndex: number
      readonly keys: readonly PartitionKey[]
    }
  /** Health or room changed; tell the manager at once. */
  | { readonly kind: 'directory'; readonly status: DirectoryStatus }

/** What other services see of a directory; the scheduler keeps one carousel per directory. */
export interface StorageDirectoryView {
  readonly index: number
  readonly path: string
  readonly kind: DiskKind
  readonly health: DiskHealth
  /** Most reads and writes that its queue has in flight at once. */
  readonly limits: { readonly reads: number; readonly writes: number }
  status(): DirectoryStatus
}
