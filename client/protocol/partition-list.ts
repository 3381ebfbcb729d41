// The body of AddPartitions and Describe: a list of partitions to read.

import type { PartitionKey } from '../common/ids.ts'

/** Where in a partition to begin: after what was received before. Zeros: at its beginning. */
export interface ReadStart {
  readonly regionIndex: number
  /** The subpartition served. */
  readonly subpartition: number
  /** Bytes of entries of that run received, headers included. */
  readonly byteOffset: number
}

export interface PartitionListEntry {
  /** Index in the list of the channel, ascending over all its frames, from 0. */
  readonly index: number
  readonly key: PartitionKey
  readonly firstSubpartition: number
  /** Inclusive. */
  readonly lastSubpartition: number
  readonly start: ReadStart
  /** The consumer was told that it may not be committed yet. */
  readonly isPending: boolean
}

export const fromBeginning: ReadStart = { regionIndex: 0, subpartition: 0, byteOffset: 0 }

/** One AddPartitions frame. */
export interface PartitionListPage {
  readonly partitionCount: number
  readonly body: Uint8Array
}

/** Codes the entries into as many pages as they take. */
export function encodePartitionList(entries: Iterable<PartitionListEntry>): PartitionListPage[] {
  void entries
  throw new Error('to be written')
}

/** The inverse, for one page. Throws PROTOCOL for anything malformed. */
export function decodePartitionList(
  body: Uint8Array,
  partitionCount: number,
): PartitionListEntry[] {
  void [body, partitionCount]
  throw new Error('to be written')
}
