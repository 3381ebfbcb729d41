// Why an entry of a list can't be read: what its consumer is told. "Not yet", "never written" and
// "released" are different errors, and none of them ever reads as empty.

import { ShuffleError } from '../../client/common/errors.ts'
import type { PartitionKey } from '../../client/common/ids.ts'
import type { PartitionListEntry } from '../../client/protocol/partition-list.ts'
import type { LookupResult, MapPartition } from '../storage/storage-types.ts'

/** Undefined when it can be read. */
export function refusalOf(
  entry: PartitionListEntry,
  found: LookupResult,
  bufferSizeBytes: number,
): ShuffleError | undefined {
  // Asked for every entry of every list: nothing is made for one that can be read.
  if (found.state === 'committed') return misfitOf(entry, found.partition, bufferSizeBytes)
  const fields = { ...entry.key, state: found.state }
  switch (found.state) {
    case 'writing':
      return new ShuffleError('PARTITION_NOT_READY', 'the partition is being written', { fields })
    case 'released':
      return new ShuffleError('PARTITION_RELEASED', 'the partition was released', { fields })
    case 'lost':
      return new ShuffleError(found.code, 'the partition was here and can not be read any more', {
        fields,
      })
    case 'unknown':
      if (!entry.isPending) {
        return new ShuffleError('PARTITION_NOT_FOUND', 'no such partition was committed here', {
          fields,
        })
      }
      return new ShuffleError('PARTITION_NOT_READY', 'the partition has not been opened yet', {
        fields,
      })
  }
}

/** What went wrong while it was read. */
export function asReadError(error: unknown, key: PartitionKey): ShuffleError {
  if (error instanceof ShuffleError) return error
  return new ShuffleError('DISK_FAILED', 'reading the partition failed', {
    cause: error,
    fields: { ...key },
  })
}

function misfitOf(
  entry: PartitionListEntry,
  partition: MapPartition,
  bufferSizeBytes: number,
): ShuffleError | undefined {
  const { firstSubpartition, lastSubpartition } = entry
  const { subpartitionCount } = partition
  if (partition.bufferSizeBytes > bufferSizeBytes) {
    return new ShuffleError(
      'LIMIT_EXCEEDED',
      "the partition's buffers are larger than the channel's: open the channel with its buffer size",
      { fields: { ...entry.key, bufferSizeBytes: partition.bufferSizeBytes } },
    )
  }
  if (firstSubpartition <= lastSubpartition && lastSubpartition < subpartitionCount) {
    return undefined
  }
  return new ShuffleError('PROTOCOL', 'the range does not lie in the partition', {
    fields: { ...entry.key, firstSubpartition, lastSubpartition, subpartitionCount },
  })
}
