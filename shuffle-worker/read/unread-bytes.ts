// How many bytes of an entry are still to come, as far as is known without reading anything: exact for
// regions whose index was looked at, by the share of the range for the others. Whole numbers, so that
// a sum over all entries comes back to zero. Pure; a channel's backlog is made of it.

import type { ListedEntry } from './listed-page.ts'
import type { PartitionCursor } from './partition-cursor.ts'

export function bytesOfListed(entry: ListedEntry): number {
  const { totals, subpartitionCount } = entry.partition
  const rangeCount = entry.lastSubpartition - entry.firstSubpartition + 1
  return Math.ceil((totals.byteCount * rangeCount) / subpartitionCount)
}

export function bytesOfBegun(cursor: PartitionCursor): number {
  const { totals, subpartitionCount } = cursor.partition
  const regionsLeft = Math.max(0, totals.regionCount - cursor.countedRegions)
  if (regionsLeft === 0) return cursor.knownLeftBytes
  const share = cursor.subpartitionCount / subpartitionCount
  const unknown = (totals.byteCount * share * regionsLeft) / totals.regionCount
  return cursor.knownLeftBytes + Math.ceil(unknown)
}
