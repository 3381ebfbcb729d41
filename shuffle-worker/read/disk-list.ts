// What one read channel wants from one disk: entries that have not been begun, the cursors of those
// that have, both in the order of the sweep, and how much is under way for it there. Owned by the
// reading view; asked by the disk's scheduler.

import { segmentHeaderLength } from '../../client/protocol/read-segment.ts'
import type { MapPartition } from '../storage/storage-types.ts'
import { aheadBytesMin } from './credit-sender.ts'
import { EntryList } from './entry-list.ts'
import type { ListMemory } from './list-memory.ts'
import type { ListedEntry } from './listed-page.ts'
import type { CursorSlice, EntrySink, PartitionCursor } from './partition-cursor.ts'

/** A read channel as the schedulers of the disks see it. */
export interface SweepChannel extends EntrySink {
  readonly isClosed: boolean
  /** Bytes that may be planned for it from this disk now. */
  roomBytes(list: DiskList): number
  /** Whether a cursor that holds no run may begin one. */
  canBeginRun(list: DiskList): boolean
  /** Whether there is memory for one more cursor. */
  hasCursorRoom(): boolean
  /** The cursor of an entry whose turn has come. */
  beginEntry(list: DiskList, entry: ListedEntry): PartitionCursor
  /** The cursor's planned or delivered mark has moved: finishes it when it is complete. */
  settle(cursor: PartitionCursor): void
  fail(cursor: PartitionCursor, error: unknown): void
  /** Of an entry that was never begun. */
  failEntry(entry: ListedEntry, error: unknown): void
  /** The next slice of something of it was planned. */
  afterPlan(): void
  /** A read has been delivered: sends what can be sent. */
  afterDelivery(): void
  /** Its last refusal was for want of memory. */
  readonly isStarved: boolean
  /** Its consumer could take something, and nothing waits to be sent to it. */
  readonly isIdle: boolean
}

/** The least order behind `fileOrder`: orders of neighbours in a segment differ by 2^-27 at least. */
export function orderBehind(fileOrder: number): number {
  return fileOrder + 2 ** -28
}

export class DiskList {
  readonly channel: SweepChannel
  readonly listed: EntryList
  readonly #cursors: PartitionCursor[] = []
  #plannedBytes = 0
  /** Since when it could take something and got nothing. */
  #waitingSinceMs: number | undefined
  #hasBeenServed = false
  #runs = 0

  constructor(channel: SweepChannel, memory: ListMemory) {
    this.channel = channel
    this.listed = new EntryList(memory)
  }

  /** Nothing is wanted from this disk. */
  get isEmpty(): boolean {
    return this.#cursors.length === 0 && this.listed.count === 0
  }

  /** Bytes of slices under way. */
  get plannedBytes(): number {
    return this.#plannedBytes
  }

  get cursorCount(): number {
    return this.#cursors.length
  }

  get hasBeenServed(): boolean {
    return this.#hasBeenServed
  }

  get waitingSinceMs(): number | undefined {
    return this.#waitingSinceMs
  }

  /** Unfinished runs of its cursors. */
  get runs(): number {
    return this.#runs
  }

  changeRuns(delta: 1 | -1): void {
    this.#runs += delta
  }

  add(cursor: PartitionCursor): void {
    cursor.joined(this)
    const index = this.#indexFrom(orderBehind(cursor.partition.fileOrder))
    if (index === this.#cursors.length) this.#cursors.push(cursor)
    else this.#cursors.splice(index, 0, cursor)
  }

  /** Makes cursors of the entries of `partition` that can be taken now; calls back with each. */
  begin(partition: MapPartition, onBegun: (cursor: PartitionCursor) => void): void {
    if (this.listed.count === 0) return
    const roomBytes = this.channel.roomBytes(this)
    while (this.#canBegin(partition, roomBytes)) {
      const entry = this.listed.take(partition)
      if (entry === undefined) return
      onBegun(this.channel.beginEntry(this, entry))
    }
  }

  remove(cursor: PartitionCursor): void {
    const order = cursor.partition.fileOrder
    for (let index = this.#indexFrom(order); index < this.#cursors.length; index++) {
      if (this.#cursors[index] === cursor) {
        if (index === this.#cursors.length - 1) this.#cursors.pop()
        else this.#cursors.splice(index, 1)
        return
      }
      if (this.#cursors[index]?.partition.fileOrder !== order) return
    }
  }

  /** The first partition at or behind `fileOrder` of which something can be taken now. */
  nextFrom(fileOrder: number, roomBytes = this.channel.roomBytes(this)): MapPartition | undefined {
    const begun = this.#nextBegun(fileOrder, roomBytes)
    const listed = this.listed.nextFrom(fileOrder)
    if (listed === undefined || !this.#canBegin(listed, roomBytes)) return begun
    return begun === undefined || listed.fileOrder < begun.fileOrder ? listed : begun
  }

  /** Whether something of the cursor can be taken now. */
  canTake(cursor: PartitionCursor): boolean {
    if (!cursor.isPlannable) return false
    if (!cursor.holdsRun && !this.channel.canBeginRun(this)) return false
    return this.#hasRoomFor(cursor, this.channel.roomBytes(this))
  }

  /**
   * The next slice of `cursor`, counted against the channel's room; undefined when there is none.
   * `readBytesMax`: what one read takes.
   */
  plan(cursor: PartitionCursor, readBytesMax: number): CursorSlice | undefined {
    if (!cursor.holdsRun && !this.channel.canBeginRun(this)) return undefined
    const roomBytes = this.channel.roomBytes(this)
    if (!this.#hasRoomFor(cursor, roomBytes)) return undefined
    const slice = cursor.plan(roomBytes, readBytesMax)
    if (slice === undefined) return undefined
    this.#plannedBytes += slice.plannedBytes
    this.channel.afterPlan()
    return slice
  }

  retire(slice: CursorSlice): void {
    this.#plannedBytes -= slice.plannedBytes
    slice.cursor.retire(slice)
  }

  /** Something can be taken from now on, if nothing could before. */
  startWaiting(nowMs: number): void {
    this.#waitingSinceMs ??= nowMs
  }

  stopWaiting(): void {
    this.#waitingSinceMs = undefined
  }

  served(nowMs: number): void {
    this.#hasBeenServed = true
    this.#waitingSinceMs = nowMs
  }

  #nextBegun(fileOrder: number, roomBytes: number): MapPartition | undefined {
    const mayBegin = this.channel.canBeginRun(this)
    for (let index = this.#indexFrom(fileOrder); index < this.#cursors.length; index++) {
      const cursor = this.#cursors[index]
      if (cursor === undefined || !(mayBegin || cursor.holdsRun)) continue
      if (this.#hasRoomFor(cursor, roomBytes)) return cursor.partition
    }
    return undefined
  }

  /** What is on its way from another disk doesn't count: that one may hang. */
  get #isIdle(): boolean {
    return this.#plannedBytes === 0 && this.channel.isIdle
  }

  #canBegin(partition: MapPartition, roomBytes: number): boolean {
    if (roomBytes < partition.bufferSizeBytes) return false
    if (!this.channel.canBeginRun(this) || !this.channel.hasCursorRoom()) return false
    return roomBytes >= wishedBytes(partition, averageRunBytes(partition)) || this.#isIdle
  }

  /**
   * A run that is cut is gone on with when the sweep comes around, or by a detour. So none is begun
   * before there is room for all of it, or for as much as any channel gets, while its consumer has
   * something else to wait for.
   */
  #hasRoomFor(cursor: PartitionCursor, roomBytes: number): boolean {
    if (!cursor.canPlanWith(roomBytes)) return false
    if (cursor.holdsRun) return true
    const { partition, leftBytes = averageRunBytes(partition) } = cursor
    return roomBytes >= wishedBytes(partition, leftBytes) || this.#isIdle
  }

  #indexFrom(fileOrder: number): number {
    let low = 0
    let high = this.#cursors.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#cursors[middle]?.partition.fileOrder ?? 0) < fileOrder) low = middle + 1
      else high = middle
    }
    return low
  }
}

function averageRunBytes({ totals, subpartitionCount }: MapPartition): number {
  return totals.byteCount / Math.max(1, totals.regionCount * subpartitionCount)
}

/** A slow channel has a credit now and then, and what it may hold ahead of that. */
function wishedBytes({ bufferSizeBytes }: MapPartition, runBytes: number): number {
  return Math.min(runBytes + segmentHeaderLength, aheadBytesMin + bufferSizeBytes)
}
