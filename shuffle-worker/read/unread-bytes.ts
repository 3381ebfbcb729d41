// How many bytes of an entry are still to come, as far as is known without reading anything: exact for
// regions whose index was looked at, by the share of the range for the others. Whole numbers, so that
// a sum over all entries comes back to zero. Pure; a channel's backlog is made of it.

import type { ListedEntry } from './listed-page.ts'
import type { PartitionCursor } from './partition-cursor.ts'

export function bytesOfListed(
  entry: Omit<ListedEntry, 'start'>,
  totals = entry.partition.totals,
): number {
  const { subpartitionCount } = entry.partition
  const rangeCount = entry.lastSubpartition - entry.firstSubpartition + 1
  return Math.ceil((totals.byteCount * rangeCount) / subpartitionCount)
}

export function bytesOfBegun(cursor: PartitionCursor): number {
  const regionsLeft = Math.max(0, cursor.totals.regionCount - cursor.countedRegions)
  if (regionsLeft === 0) return cursor.knownLeftBytes
  const { totals } = cursor
  const { subpartitionCount } = cursor.partition
  const share = cursor.subpartitionCount / subpartitionCount
  const unknown = (totals.byteCount * share * regionsLeft) / totals.regionCount
  return cursor.knownLeftBytes + Math.ceil(unknown)
}
