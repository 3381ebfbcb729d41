// Which reads serve a set of slices of one file: neighbours share a read, short gaps are read
// through and dropped, and a stretch longer than a block is cut. Pure; used by the file visit.
//
//   slices   [aaaa][bbbbbbb]  [cc]                 [dddddddddddddddd]
//   reads    [____________________]                [__________][_____]
//                            ^ gap read through      ^ cut at the size of a block

import { assert } from '../../client/common/assert.ts'

/** Bytes of a file that somebody wants: from `start` up to, not including, `end`. */
export interface Slice {
  readonly start: number
  readonly end: number
}

export interface PlannedRead<S extends Slice> {
  readonly start: number
  readonly end: number
  /** The slices that it overlaps, by their start. */
  readonly slices: readonly S[]
  /** It begins where the read before ended, in the middle of a slice. */
  readonly isContinuation: boolean
}

export interface ReadPlanLimits {
  readonly readBytesMax: number
  /** Room for the end of the read before, which a read that continues none has for itself. */
  readonly carryBytesMax?: number
  readonly gapBytesMax: number
}

export function planReads<S extends Slice>(
  slices: readonly S[],
  limits: ReadPlanLimits,
): PlannedRead<S>[] {
  const sorted = slices.filter((slice) => slice.end > slice.start)
  sorted.sort((a, b) => a.start - b.start || a.end - b.end)
  const reads: PlannedRead<S>[] = []
  for (const stretch of stretchesOf(sorted, limits.gapBytesMax)) {
    appendReads(reads, stretch, limits)
  }
  return reads
}

interface Stretch<S extends Slice> extends Slice {
  end: number
  readonly slices: S[]
}

function stretchesOf<S extends Slice>(sorted: readonly S[], gapBytesMax: number): Stretch<S>[] {
  const stretches: Stretch<S>[] = []
  for (const slice of sorted) {
    const last = stretches.at(-1)
    if (last !== undefined && slice.start - last.end <= gapBytesMax) {
      last.end = Math.max(last.end, slice.end)
      last.slices.push(slice)
    } else {
      stretches.push({ start: slice.start, end: slice.end, slices: [slice] })
    }
  }
  return stretches
}

function appendReads<S extends Slice>(
  reads: PlannedRead<S>[],
  stretch: Stretch<S>,
  { readBytesMax, carryBytesMax = 0 }: ReadPlanLimits,
): void {
  assert(readBytesMax > 0, 'a read takes something')
  let active: S[] = []
  let next = 0
  let start = stretch.start
  while (start < stretch.end) {
    active = active.filter((slice) => slice.end > start)
    const isContinuation = active.length > 0
    const length = isContinuation ? readBytesMax : readBytesMax + carryBytesMax
    const cut = Math.min(start + length, stretch.end)
    for (let slice = stretch.slices[next]; slice !== undefined && slice.start < cut;) {
      active.push(slice)
      slice = stretch.slices[++next]
    }
    // A gap at the end of the piece need not be read.
    const wantedEnd = active.reduce((end, slice) => Math.max(end, slice.end), start)
    const end = Math.min(cut, wantedEnd)
    if (end > start) reads.push({ start, end, slices: [...active], isContinuation })
    const following = stretch.slices[next]
    start = wantedEnd > cut || following === undefined ? cut : following.start
  }
}
