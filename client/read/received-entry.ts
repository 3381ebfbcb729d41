// What passes from a read channel to the unpacker and to the reader that owns the channel.

import type { ShuffleError } from '../common/errors.ts'
import type { InputPartition } from './input-partition.ts'
import type { SharedBody } from './shared-body.ts'

/** One entry, checked, on its way to the unpacker, which releases the body. */
export interface ReceivedEntry {
  readonly partition: InputPartition
  /** Of the partition when it came. */
  readonly generation: number
  readonly regionIndex: number
  /** The one served. */
  readonly subpartition: number
  readonly type: number
  readonly isCompressed: boolean
  readonly isLastOfRun: boolean
  /** As stored; a view of the body. */
  readonly payload: Uint8Array
  readonly body: SharedBody
}

/** What a channel tells its owner. */
export interface ReadSink {
  onEntry(entry: ReceivedEntry): void
  /** Called after each frame, when its entries have been told. */
  onFrame(): void
  onPartitionFinished(partition: InputPartition): void
  /** The worker gave it up, or what came of it was wrong. It is no longer of this channel. */
  onPartitionFailed(partition: InputPartition, error: ShuffleError): void
}
