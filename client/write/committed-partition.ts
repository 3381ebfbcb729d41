// What a finished ResultPartition says about itself, for the runtime's statistics and scheduling.

import { ShuffleError } from '../common/errors.ts'

/** The totals of a committed partition. */
export interface CommittedPartition {
  readonly recordCount: number
  readonly regionCount: number
  /** Entries (records packed together, events) as they lie in the worker. */
  readonly entryCount: number
  /** Bytes of the records and events as emitted, with four bytes of framing for each record. */
  readonly uncompressedBytes: number
  /** Bytes of the entries as sent and stored, headers included. */
  readonly storedBytes: number
  /**
   * Uncompressed bytes that each subpartition will be served; data that was broadcast counts for
   * every one of them.
   */
  readonly bytesBySubpartition: Float64Array
  /** `true` when it survives power loss, `false` when only the death of the worker's process. */
  readonly isDurable: boolean
}

export interface SentTotals {
  readonly regionCount: number
  readonly entryCount: number
  readonly byteCount: number
}

/** COUNT_MISMATCH unless the worker stored what was sent. */
export function compareTotals(sent: SentTotals, stored: SentTotals): void {
  if (
    stored.byteCount === sent.byteCount &&
    stored.entryCount === sent.entryCount &&
    stored.regionCount === sent.regionCount
  ) {
    return
  }
  throw new ShuffleError('COUNT_MISMATCH', 'the worker committed other totals than were sent', {
    fields: {
      sentBytes: sent.byteCount,
      storedBytes: stored.byteCount,
      sentEntries: sent.entryCount,
      storedEntries: stored.entryCount,
    },
  })
}
