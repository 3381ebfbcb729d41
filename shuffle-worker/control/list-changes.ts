// What of the worker's list the manager has not been told yet: the last state of each key, sent as
// numbered deltas. A delta is sent again, as it is, until it is answered. Owned by the WorkerControl.

import {
  partitionKeyText,
  type AllocationId,
  type PartitionKey,
  type PartitionKeyText,
} from '../../client/common/ids.ts'
import { encodeAttempts, groupBy, inPages } from '../../client/manager/key-columns.ts'
import { groupRowsMax } from '../../client/manager/list-pages.ts'
import type { ReportGroup, ReportState } from '../../client/manager/schemas.ts'

/** One partition as the manager is told of it. */
export interface ReportRow {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  readonly state: ReportState
  readonly byteCount: number
  readonly cause?: string
}

export interface NumberedDelta {
  readonly sequence: number
  readonly groups: ReportGroup[]
}

/** Rows of one delta: with the longest ids, each in a group of its own, below the body limit. */
const deltaRowsMax = 2_500

/** Of a partition that is gone nobody asks by which allocation it was written. */
export const noAllocation: AllocationId = { managerEpoch: 0, jobEpoch: 0, sequence: 0 }

export class ListChanges {
  readonly #rows = new Map<PartitionKeyText, ReportRow>()
  #outstanding: NumberedDelta | undefined
  #outstandingRows: readonly ReportRow[] = []
  #sequence = 0

  /** Number of the last delta that was answered. */
  get sequence(): number {
    return this.#sequence
  }

  get isEmpty(): boolean {
    return this.#outstanding === undefined && this.#rows.size === 0
  }

  add(row: ReportRow): void {
    this.#rows.set(partitionKeyText(row.key), row)
  }

  /** The delta under way, or the next one; undefined when there is nothing to tell. */
  next(): NumberedDelta | undefined {
    if (this.#outstanding !== undefined || this.#rows.size === 0) return this.#outstanding
    const rows: ReportRow[] = []
    for (const [name, row] of this.#rows) {
      if (rows.length >= deltaRowsMax) break
      this.#rows.delete(name)
      rows.push(row)
    }
    this.#outstandingRows = rows
    this.#outstanding = { sequence: this.#sequence + 1, groups: reportGroups(rows) }
    return this.#outstanding
  }

  answered(delta: NumberedDelta): void {
    if (delta !== this.#outstanding) return
    this.#outstanding = undefined
    this.#outstandingRows = []
    this.#sequence = delta.sequence
  }

  /**
   * A full list is being sent, made this moment. It tells all of this but what was lost: that is not
   * in the list, and without being told of it the manager could take it for never written.
   */
  restart(): void {
    const rows = [...this.#outstandingRows, ...this.#rows.values()]
    this.#rows.clear()
    this.#outstanding = undefined
    this.#outstandingRows = []
    this.#sequence = 0
    for (const row of rows) {
      if (row.state === 'lost') this.add(row)
    }
  }
}

/** Rows as groups of what they have in common, none longer than a page takes. */
export function reportGroups(rows: Iterable<ReportRow>): ReportGroup[] {
  const groups = groupBy(rows, ({ key, allocation, state, cause }) =>
    JSON.stringify([
      key.jobId,
      key.dataSetId,
      state,
      allocation.managerEpoch,
      allocation.jobEpoch,
      cause,
    ]),
  )
  return groups.flatMap((group) => inPages(group.items, groupRowsMax).map(reportGroup))
}

function reportGroup(rows: readonly ReportRow[]): ReportGroup {
  const first = rows[0]
  if (first === undefined) throw new RangeError('a group has a row')
  return {
    jobId: first.key.jobId,
    dataSetId: first.key.dataSetId,
    ...encodeAttempts(rows.map((row) => row.key)),
    state: first.state,
    ...(first.cause === undefined ? {} : { cause: first.cause }),
    managerEpoch: first.allocation.managerEpoch,
    jobEpoch: first.allocation.jobEpoch,
    sequences: rows.map((row) => row.allocation.sequence),
    byteCounts: rows.map((row) => row.byteCount),
  }
}
