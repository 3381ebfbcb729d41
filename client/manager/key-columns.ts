// Partition keys as columns, and back: grouped by what they share, attempt ids without their common
// prefix. Used by both sides of the HTTP contract.

import { ShuffleError } from '../common/errors.ts'
import { parseAttemptId, type AttemptId, type DataSetId, type PartitionKey } from '../common/ids.ts'
import type { KeyGroup } from './schemas.ts'

/** A key within a job. */
export type DataSetKey = Pick<PartitionKey, 'dataSetId' | 'partitionIndex' | 'attemptId'>

export interface AttemptColumns {
  readonly attemptPrefix: string
  readonly partitionIndices: readonly number[]
  readonly attempts: readonly string[]
}

/** The columns of attempts, in their order. */
export function encodeAttempts(
  attempts: readonly Pick<PartitionKey, 'partitionIndex' | 'attemptId'>[],
): { attemptPrefix: string; partitionIndices: number[]; attempts: string[] } {
  const attemptPrefix = commonPrefix(attempts)
  return {
    attemptPrefix,
    partitionIndices: attempts.map((attempt) => attempt.partitionIndex),
    attempts: attempts.map((attempt) => attempt.attemptId.slice(attemptPrefix.length)),
  }
}

/**
 * Calls `visit` for each row. Throws INVALID_ARGUMENT when the columns have different lengths or an
 * attempt id is not one; `more` are columns that must have the same length.
 */
export function decodeAttempts(
  columns: AttemptColumns,
  more: readonly { readonly length: number }[],
  visit: (partitionIndex: number, attemptId: AttemptId, position: number) => void,
): void {
  const length = columns.partitionIndices.length
  for (const column of [columns.attempts, ...more]) {
    if (column.length === length) continue
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `the columns of a list of partitions must be equally long, got ${String(length)} and ${String(column.length)}`,
    )
  }
  for (let position = 0; position < length; position++) {
    const partitionIndex = columns.partitionIndices[position] ?? 0
    const attempt = columns.attempts[position] ?? ''
    visit(partitionIndex, parseAttemptId(columns.attemptPrefix + attempt), position)
  }
}

/** One group a data set, each in the order of `keys`. */
export function encodeKeys(keys: readonly DataSetKey[]): KeyGroup[] {
  return groupBy(keys, (key) => key.dataSetId).map((group) => ({
    dataSetId: group.name,
    ...encodeAttempts(group.items),
  }))
}

/** Keys of one page of groups, in the order in which they were given by {@link encodeKeys}. */
export function decodeKeys(groups: readonly KeyGroup[]): DataSetKey[] {
  const keys: DataSetKey[] = []
  for (const group of groups) {
    decodeAttempts(group, [], (partitionIndex, attemptId) => {
      keys.push({ dataSetId: group.dataSetId as DataSetId, partitionIndex, attemptId })
    })
  }
  return keys
}

/** Items by name, in order of first appearance. */
export function groupBy<T>(
  items: Iterable<T>,
  nameOf: (item: T) => string,
): { readonly name: string; readonly items: T[] }[] {
  const groups = new Map<string, { name: string; items: T[] }>()
  for (const item of items) {
    const name = nameOf(item)
    const group = groups.get(name)
    if (group === undefined) groups.set(name, { name, items: [item] })
    else group.items.push(item)
  }
  return [...groups.values()]
}

/** Pieces of at most `sizeMax` items. */
export function inPages<T>(items: readonly T[], sizeMax: number): T[][] {
  const pages: T[][] = []
  for (let start = 0; start < items.length; start += sizeMax) {
    pages.push(items.slice(start, start + sizeMax))
  }
  return pages
}

function commonPrefix(attempts: readonly { readonly attemptId: string }[]): string {
  const [first] = attempts
  if (first === undefined) return ''
  let prefix = first.attemptId
  for (const { attemptId } of attempts) {
    let length = Math.min(prefix.length, attemptId.length)
    while (length > 0 && prefix.slice(0, length) !== attemptId.slice(0, length)) length--
    if (length < prefix.length) prefix = prefix.slice(0, length)
    if (prefix === '') break
  }
  return prefix
}
