// Answers Describe: totals of partitions, and where wanted their bytes per subpartition. One answer
// after the other, so that one table is in memory at a time.

import { errorTable, isShuffleError, type ErrorCode } from '../../client/common/errors.ts'
import { byteCountPages } from '../../client/protocol/byte-counts.ts'
import type { MessageFields } from '../../client/protocol/messages.ts'
import type { PartitionListEntry } from '../../client/protocol/partition-list.ts'
import type { LookupResult, MapPartition } from '../storage/storage-types.ts'

export interface DescribeRequest {
  readonly entries: readonly PartitionListEntry[]
  readonly withSubpartitions: boolean
  readonly lookup: (key: PartitionListEntry['key']) => LookupResult
  readonly send: (fields: MessageFields<'Described'>, body: Uint8Array) => void
  /** Resolves when the connection takes more; false when the channel is over. */
  readonly ready: () => Promise<boolean>
}

const noBody = new Uint8Array(0)

export async function describePartitions(request: DescribeRequest): Promise<void> {
  const { entries } = request
  for (const [position, entry] of entries.entries()) {
    if (!(await request.ready())) return
    await describeOne(request, entry, position === entries.length - 1)
  }
}

async function describeOne(
  request: DescribeRequest,
  entry: PartitionListEntry,
  isLast: boolean,
): Promise<void> {
  const found = request.lookup(entry.key)
  if (found.state !== 'committed') {
    request.send(failed(entry.index, codeOf(found), isLast), noBody)
    return
  }
  const { partition } = found
  if (!request.withSubpartitions) {
    request.send(described(entry.index, partition, 0, isLast), noBody)
    return
  }
  try {
    const pages = byteCountPages(await partition.uncompressedBytes())
    for (const page of pages) {
      if (!(await request.ready())) return
      const isLastFrame = isLast && page.isLast
      request.send(
        described(entry.index, partition, page.firstSubpartition, isLastFrame),
        page.body,
      )
    }
  } catch (error) {
    const code = isShuffleError(error) ? error.code : 'DISK_FAILED'
    request.send(failed(entry.index, code, isLast), noBody)
  }
}

function described(
  index: number,
  partition: MapPartition,
  firstSubpartition: number,
  isLast: boolean,
): MessageFields<'Described'> {
  const { totals } = partition
  return {
    partition: index,
    code: 0,
    subpartitionCount: partition.subpartitionCount,
    regionCount: totals.regionCount,
    entryCount: totals.entryCount,
    byteCount: totals.byteCount,
    recordCount: totals.recordCount,
    firstSubpartition,
    isLast,
  }
}

function failed(index: number, code: ErrorCode, isLast: boolean): MessageFields<'Described'> {
  return {
    partition: index,
    code: errorTable[code].wireCode,
    subpartitionCount: 0,
    regionCount: 0,
    entryCount: 0,
    byteCount: 0,
    recordCount: 0,
    firstSubpartition: 0,
    isLast,
  }
}

function codeOf(found: Exclude<LookupResult, { readonly state: 'committed' }>): ErrorCode {
  switch (found.state) {
    case 'writing':
      return 'PARTITION_NOT_READY'
    case 'released':
      return 'PARTITION_RELEASED'
    case 'lost':
      return found.code
    case 'unknown':
      return 'PARTITION_NOT_FOUND'
  }
}
