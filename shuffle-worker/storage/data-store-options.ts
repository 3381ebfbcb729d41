// What an operator may set of the store. The worker's options declare them; here are the defaults
// and what makes a set consistent.

import { ShuffleError } from '../../client/common/errors.ts'
import { logRecordLengthMax } from './log-record.ts'
import type { DiskKind, Durability } from './storage-types.ts'

export interface DataStoreOptions {
  readonly durability: Durability
  /** Tried first for new partitions. */
  readonly preferredDiskKind: DiskKind
  /** Left free on each disk for others. */
  readonly minReservedSpaceBytes: number
  readonly diskOperationTimeoutMs: number
  readonly probeIntervalMs: number
  /** No probe has succeeded for so long: the disk has failed. */
  readonly diskFailedAfterMs: number
  /** Partitions up to this size need no file of their own. */
  readonly smallPartitionBytesMax: number
  readonly segmentSizeBytes: number
  /** How long readers of a released partition may go on. */
  readonly releasedReadersTimeoutMs: number
  /** How long a stop may sync what is not durable yet. */
  readonly cleanStopTimeoutMs: number
}

export const defaultStoreOptions: DataStoreOptions = {
  durability: 'none',
  preferredDiskKind: 'ssd',
  minReservedSpaceBytes: 1024 ** 3,
  diskOperationTimeoutMs: 30_000,
  probeIntervalMs: 10_000,
  diskFailedAfterMs: 60_000,
  smallPartitionBytesMax: 64 * 1024,
  segmentSizeBytes: 64 * 1024 * 1024,
  releasedReadersTimeoutMs: 300_000,
  cleanStopTimeoutMs: 30_000,
}

/** INVALID_ARGUMENT, saying which options don't fit together. */
export function checkStoreOptions(
  options: DataStoreOptions,
  directories: readonly { readonly path: string }[],
): void {
  if (directories.length === 0) throw invalid('a worker needs at least one data directory')
  const paths = new Set(directories.map((each) => each.path))
  if (paths.size < directories.length) throw invalid('a data directory is configured twice')
  if (options.diskFailedAfterMs < 2 * options.probeIntervalMs) {
    throw invalid(
      `a disk must not fail before two probes: the time to failure, ${String(options.diskFailedAfterMs)} ms, is less than twice the probe interval, ${String(options.probeIntervalMs)} ms`,
    )
  }
  if (options.diskFailedAfterMs < options.diskOperationTimeoutMs) {
    throw invalid(
      `a disk must not fail before one operation may: the time to failure, ${String(options.diskFailedAfterMs)} ms, is less than the operation timeout, ${String(options.diskOperationTimeoutMs)} ms`,
    )
  }
  if (options.smallPartitionBytesMax > logRecordLengthMax / 2) {
    throw invalid('a partition of more than 1 MiB is not small')
  }
  // The order of partitions within a segment is kept in 27 bits.
  if (options.segmentSizeBytes < 4096 || options.segmentSizeBytes > 2 ** 26) {
    throw invalid('a segment of the shared log has from 4 KiB to 64 MiB')
  }
}

function invalid(message: string): ShuffleError {
  return new ShuffleError('INVALID_ARGUMENT', message)
}
