// How far one listed partition has been read for one channel. There are two marks: what is planned
// (reads for it are under way) and what is delivered (copied into bodies). They meet whenever
// nothing is under way. Owned by its reading view; moved by the sweep of its disk.
//
//   region 0          region 1                     region 2
//   [ delivered ][ ... slices under way ... ][ not planned ]
//                ^ position                  ^ planned
//
// Where a slice was cut short by the channel's room its end is no entry boundary, so nothing more is
// planned until it has been delivered (`isBlocked`). When a delivery has to stop early, the planned
// mark falls back to the delivered one and slices under way from before are void (`generation`).

import { assert } from '../../client/common/assert.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import {
  broadcastSubpartition,
  entryFlags,
  entryHeaderLength,
} from '../../client/protocol/entry.ts'
import { fromBeginning, type ReadStart } from '../../client/protocol/partition-list.ts'
import { segmentHeaderLength } from '../../client/protocol/read-segment.ts'
import type { MapPartition, RegionIndex } from '../storage/storage-types.ts'
import type { SegmentPlace } from './credit-sender.ts'
import type { DiskList } from './disk-list.ts'
import type { Slice } from './read-plan.ts'

/** The bytes of one region that the cursor's range covers; of a broadcast region, all. */
interface RegionSpan {
  readonly regionIndex: number
  readonly isBroadcast: boolean
  readonly start: number
  readonly end: number
}

export interface CursorSlice extends Slice {
  readonly cursor: PartitionCursor
  readonly span: RegionSpan
  readonly generation: number
  /** Where delivery begins: a broadcast slice may hold bytes before it. */
  readonly position: number
  readonly subpartition: number
  /** What it was counted with against the channel's room. */
  readonly plannedBytes: number
  readonly reachesEnd: boolean
}

/** Memory that holds the bytes [start, end) of the file. */
export interface FileWindow {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
}

/** Where the entries go: the channel. */
export interface EntrySink {
  /** Whether one more run may be unfinished. */
  beginRun(cursor: PartitionCursor): boolean
  endRun(cursor: PartitionCursor): void
  /** Copies one entry; false when there is no room for it now. */
  append(cursor: PartitionCursor, place: SegmentPlace, bytes: Uint8Array): boolean
}

export interface CursorOptions {
  readonly index: number
  readonly partition: MapPartition
  readonly firstSubpartition: number
  readonly lastSubpartition: number
  readonly start: ReadStart
}

export class PartitionCursor {
  readonly index: number
  readonly partition: MapPartition
  readonly firstSubpartition: number
  readonly lastSubpartition: number
  /** Over by completion, failure or drop; set by the view. */
  isOver = false
  /** A run is counted as unfinished for it; set by the view. */
  holdsRun = false
  /** Bytes still to come, as they are counted in the view's backlog; set by the view. */
  estimatedBytes = 0
  /** Over the whole range, as far as its regions have been entered. */
  entryTotal = 0
  byteTotal = 0
  /** Bytes of regions entered that are not delivered yet. */
  knownLeftBytes = 0
  #list: DiskList | undefined
  readonly #start: ReadStart
  #plannedRegion = 0
  #countedRegions = 0
  #span: RegionSpan | undefined
  #planned = 0
  #plannedSubpartition: number
  #position = 0
  #subpartition: number
  #isMidRun = false
  /** Of the last entry delivered: kept, because the next is mostly of the same run. */
  #place: SegmentPlace | undefined
  #begunSlice: CursorSlice | undefined
  #underWay = 0
  #isBlocked = false
  #generation = 0

  constructor(options: CursorOptions) {
    this.index = options.index
    this.partition = options.partition
    this.firstSubpartition = options.firstSubpartition
    this.lastSubpartition = options.lastSubpartition
    this.#start = options.start
    this.#plannedSubpartition = options.firstSubpartition
    this.#subpartition = options.firstSubpartition
  }

  /** The one it was added to. */
  get list(): DiskList {
    assert(this.#list !== undefined, 'a cursor is in a list before it is read')
    return this.#list
  }

  joined(list: DiskList): void {
    this.#list = list
  }

  /** Regions whose index has been looked at. */
  get countedRegions(): number {
    return this.#countedRegions
  }

  get subpartitionCount(): number {
    return this.lastSubpartition - this.firstSubpartition + 1
  }

  /** Whether more of it can be planned, given room. */
  get isPlannable(): boolean {
    return !this.isOver && !this.#isBlocked && !this.isFullyPlanned
  }

  /** Whether `roomBytes` are enough to go on: for what is left of the region, or for any entry. */
  canPlanWith(roomBytes: number): boolean {
    if (!this.isPlannable) return false
    const any = this.partition.bufferSizeBytes
    const span = this.#span
    if (span === undefined) return roomBytes >= any
    return roomBytes >= Math.min(this.#leftInSpan(span) + segmentHeaderLength, any)
  }

  /** Of its region, not planned yet; undefined before that was entered. */
  get leftBytes(): number | undefined {
    return this.#span === undefined ? undefined : this.#leftInSpan(this.#span)
  }

  get isFullyPlanned(): boolean {
    return this.#span === undefined && this.#plannedRegion >= this.partition.totals.regionCount
  }

  /** Nothing is left to plan or to deliver. */
  get isComplete(): boolean {
    return this.isFullyPlanned && this.#underWay === 0
  }

  get isMidRun(): boolean {
    return this.#isMidRun
  }

  /** Slices planned and not retired. */
  get underWay(): number {
    return this.#underWay
  }

  /** The region whose bytes are planned next. */
  get plannedRegion(): number {
    return this.#span?.regionIndex ?? this.#plannedRegion
  }

  /** Where in the file the next slice begins; undefined before its region was entered. */
  get plannedPosition(): number | undefined {
    return this.#span === undefined ? undefined : this.#planned
  }

  /** The region whose index is needed before more can be planned. */
  get wantedRegion(): number | undefined {
    return this.#span === undefined && !this.isFullyPlanned ? this.#plannedRegion : undefined
  }

  /** The index of the wanted region is there. Throws PROTOCOL when `start` does not lie in it. */
  enterRegion(index: RegionIndex): void {
    assert(index.regionIndex === this.wantedRegion, 'regions are entered in order')
    const range = index.range(this.firstSubpartition, this.lastSubpartition)
    const copies = index.isBroadcast ? this.subpartitionCount : 1
    // After a fall-back a region is entered again, and counted no more.
    const isNew = index.regionIndex >= this.#countedRegions
    if (isNew) {
      this.#countedRegions = index.regionIndex + 1
      this.entryTotal += range.entryCount * copies
      this.byteTotal += range.byteLength * copies
    }
    this.#plannedRegion += 1
    if (index.regionIndex < this.#start.regionIndex || range.byteLength === 0) return
    const span = {
      regionIndex: index.regionIndex,
      isBroadcast: index.isBroadcast,
      start: range.position,
      end: range.position + range.byteLength,
    }
    this.#span = span
    this.#planned = span.start
    this.#plannedSubpartition = this.firstSubpartition
    if (isNew) this.knownLeftBytes += range.byteLength * copies
    if (index.regionIndex === this.#start.regionIndex && !isAtBeginning(this.#start)) {
      this.#skipToStart(index, span)
    }
  }

  /**
   * The next slice, of at most `roomBytes`; undefined when that is too little to begin. A broadcast
   * region is read as a whole, for as many subpartitions as there is room for, where both one read and
   * the room hold it. Else it is read copy by copy, and of each only what is delivered: never more
   * bytes than go out, but for channels that stand at the same place, which share a read.
   */
  plan(roomBytes: number, readBytesMax: number): CursorSlice | undefined {
    const span = this.#span
    if (span === undefined || !this.canPlanWith(roomBytes)) return undefined
    const slice = this.#sliceOf(span, roomBytes, readBytesMax)
    this.#underWay += 1
    if (slice.reachesEnd) this.#span = undefined
    else this.#isBlocked = true
    return slice
  }

  /**
   * Copies what `window` holds of the slice into the sink. `more`: the rest lies behind the window.
   * `stopped`: the sink has no room; the rest is planned again later.
   */
  deliver(slice: CursorSlice, window: FileWindow, sink: EntrySink): 'more' | 'done' | 'stopped' {
    if (this.isOver || slice.generation !== this.#generation) return 'done'
    if (this.#begunSlice !== slice) {
      this.#begunSlice = slice
      this.#position = slice.position
      this.#subpartition = slice.subpartition
    }
    for (;;) {
      if (this.#isAtEndOf(slice.span)) return 'done'
      const outcome = this.#deliverEntry(slice.span, window, sink)
      if (outcome === 'stopped') {
        this.#fallBack(slice)
        return outcome
      }
      if (outcome === 'more') return outcome
    }
  }

  /** The first byte of the slice that was not delivered yet; its end when none was left. */
  undeliveredFrom(slice: CursorSlice): number {
    if (this.isOver || slice.generation !== this.#generation) return slice.end
    return this.#begunSlice === slice ? this.#position : slice.position
  }

  /** All reads of the slice are over; exactly once for each slice. */
  retire(slice: CursorSlice): void {
    assert(this.#underWay > 0, 'a slice is retired once')
    this.#underWay -= 1
    if (this.isOver || slice.generation !== this.#generation) return
    if (this.#begunSlice !== slice || !this.#isAtEndOf(slice.span)) {
      this.#fallBack(slice)
      return
    }
    if (!slice.reachesEnd) {
      this.#span = undefined
      this.#isBlocked = false
    }
  }

  #leftInSpan(span: RegionSpan): number {
    const left = span.end - this.#planned
    if (!span.isBroadcast) return left
    return left + (this.lastSubpartition - this.#plannedSubpartition) * (span.end - span.start)
  }

  #sliceOf(span: RegionSpan, roomBytes: number, readBytesMax: number): CursorSlice {
    const isLastCopy = !span.isBroadcast || this.#plannedSubpartition === this.lastSubpartition
    const isWhole = !isLastCopy && span.end - span.start <= Math.min(roomBytes, readBytesMax)
    const pieceEnd = Math.min(span.end, this.#planned + roomBytes)
    const left = isWhole ? this.#leftInSpan(span) : pieceEnd - this.#planned
    return {
      cursor: this,
      span,
      generation: this.#generation,
      start: isWhole ? span.start : this.#planned,
      end: isWhole ? span.end : pieceEnd,
      position: this.#planned,
      subpartition: this.#plannedSubpartition,
      plannedBytes: Math.min(left, roomBytes),
      reachesEnd: isWhole ? left <= roomBytes : isLastCopy && pieceEnd === span.end,
    }
  }

  /** Moves on from finished copies of a broadcast region; true when nothing of the span is left. */
  #isAtEndOf(span: RegionSpan): boolean {
    if (this.#position < span.end) return false
    if (!span.isBroadcast || this.#subpartition >= this.lastSubpartition) return true
    this.#subpartition += 1
    this.#position = span.start
    return false
  }

  #deliverEntry(
    span: RegionSpan,
    window: FileWindow,
    sink: EntrySink,
  ): 'delivered' | 'more' | 'stopped' {
    const offset = this.#position - window.start
    const available = window.end - this.#position
    if (offset < 0 || available < entryHeaderLength) return 'more'
    const length = entryHeaderLength + window.bytes.readUInt32BE(offset)
    if (length > this.partition.bufferSizeBytes || this.#position + length > span.end) {
      throw this.#corrupt(`an entry of ${String(length)} bytes passes the end of its region`)
    }
    if (length > available) return 'more'
    const subpartition = this.#subpartitionOf(span, window.bytes.readUInt32BE(offset + 4))
    if (!this.holdsRun && !sink.beginRun(this)) return 'stopped'
    const bytes = window.bytes.subarray(offset, offset + length)
    if (!sink.append(this, this.#placeOf(span.regionIndex, subpartition), bytes)) {
      if (!this.#isMidRun) sink.endRun(this)
      return 'stopped'
    }
    this.#position += length
    this.knownLeftBytes -= length
    this.#isMidRun = ((window.bytes[offset + 8] ?? 0) & entryFlags.lastOfRun) === 0
    if (!this.#isMidRun) sink.endRun(this)
    return 'delivered'
  }

  #placeOf(regionIndex: number, subpartition: number): SegmentPlace {
    let place = this.#place
    if (place?.regionIndex !== regionIndex || place.subpartition !== subpartition) {
      place = { partition: this.index, regionIndex, subpartition }
      this.#place = place
    }
    return place
  }

  #subpartitionOf(span: RegionSpan, stored: number): number {
    if (span.isBroadcast && stored === broadcastSubpartition) return this.#subpartition
    if (!span.isBroadcast && stored >= this.firstSubpartition && stored <= this.lastSubpartition) {
      return stored
    }
    throw this.#corrupt(`an entry of subpartition ${String(stored)} where none belongs`)
  }

  #fallBack(slice: CursorSlice): void {
    if (this.#begunSlice === slice) {
      this.#planned = this.#position
      this.#plannedSubpartition = this.#subpartition
    } else {
      this.#planned = slice.position
      this.#plannedSubpartition = slice.subpartition
    }
    this.#generation += 1
    this.#isBlocked = false
    this.#begunSlice = undefined
    // Regions entered after this one are entered again.
    this.#span = slice.span
    this.#plannedRegion = slice.span.regionIndex + 1
  }

  #skipToStart(index: RegionIndex, span: RegionSpan): void {
    const { subpartition, byteOffset } = this.#start
    if (subpartition > this.lastSubpartition) {
      this.knownLeftBytes -= this.#leftInSpan(span)
      this.#span = undefined
      return
    }
    if (subpartition < this.firstSubpartition) {
      if (byteOffset > 0) throw this.#badStart('lies before the range')
      return
    }
    const before = this.#leftInSpan(span)
    const run = index.range(subpartition, subpartition)
    if (byteOffset > run.byteLength) throw this.#badStart('lies behind the end of its run')
    this.#plannedSubpartition = subpartition
    this.#planned = (span.isBroadcast ? span.start : run.position) + byteOffset
    this.#isMidRun = byteOffset > 0 && byteOffset < run.byteLength
    if (span.isBroadcast && byteOffset === run.byteLength) {
      this.#plannedSubpartition += 1
      this.#planned = span.start
    }
    const isPastEnd = this.#plannedSubpartition > this.lastSubpartition || this.#planned >= span.end
    this.knownLeftBytes -= isPastEnd ? before : before - this.#leftInSpan(span)
    if (isPastEnd) this.#span = undefined
  }

  #badStart(what: string): ShuffleError {
    const { regionIndex, subpartition, byteOffset } = this.#start
    return new ShuffleError('PROTOCOL', `the start of partition ${String(this.index)} ${what}`, {
      fields: { partition: this.index, regionIndex, subpartition, byteOffset },
    })
  }

  #corrupt(what: string): ShuffleError {
    const { key } = this.partition
    return new ShuffleError('DATA_CORRUPT', `${what}, at byte ${String(this.#position)}`, {
      fields: { ...key, position: this.#position },
    })
  }
}

function isAtBeginning(start: ReadStart): boolean {
  return (
    start.regionIndex === fromBeginning.regionIndex &&
    start.subpartition === fromBeginning.subpartition &&
    start.byteOffset === fromBeginning.byteOffset
  )
}
