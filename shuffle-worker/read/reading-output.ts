// What a reading view tells its consumer, beside data and backlog. The connection's handler makes
// frames of it.

import type { ShuffleError } from '../../client/common/errors.ts'
import type { ReadOutput } from './credit-sender.ts'

export interface ReadingOutput extends ReadOutput {
  sendPartitionFinish(totals: PartitionTotals): void
  sendPartitionFailed(partition: number, error: ShuffleError): void
  sendReadFinish(totals: ChannelTotals): void
}

export interface RangeTotals {
  readonly entryCount: number
  readonly byteCount: number
}

/** What one entry of the list came to. */
export interface PartitionTotals extends RangeTotals {
  readonly partition: number
}

export interface ChannelTotals extends RangeTotals {
  readonly partitionCount: number
  readonly frameCount: number
}
