// The disks that one read channel wants something from: its list on each, and how its room and its
// unfinished runs are divided among them. Owned by the reading view.

import type { MapPartition } from '../storage/storage-types.ts'
import { DiskList, type SweepChannel } from './disk-list.ts'
import type { ListMemory } from './list-memory.ts'
import type { PartitionCursor } from './partition-cursor.ts'

/** Most unfinished runs of a channel: as many half records its consumer holds at most. */
export const unfinishedRunsMax = 16

/** The scheduler of one disk, as a view needs it. */
export interface SweepScheduler {
  /** One more entry of the partition is in the list. */
  listed(list: DiskList, partition: MapPartition): void
  /** An entry is over that was not begun. */
  unlisted(list: DiskList, partition: MapPartition): void
  /** An entry is over that had been begun. */
  remove(list: DiskList, cursor: PartitionCursor): void
  /** The channel may be able to take something again. */
  wake(list: DiskList): void
}

export interface DiskPart {
  readonly list: DiskList
  readonly scheduler: SweepScheduler
}

export class ChannelDisks {
  readonly #channel: SweepChannel
  readonly #memory: ListMemory
  readonly #schedulerOf: (partition: MapPartition) => SweepScheduler
  readonly #parts = new Map<SweepScheduler, DiskPart>()
  /** While there is one alone, which nearly always is all. */
  #only: DiskPart | undefined
  #unfinishedRuns = 0

  constructor(
    channel: SweepChannel,
    options: {
      readonly memory: ListMemory
      readonly schedulerOf: (partition: MapPartition) => SweepScheduler
    },
  ) {
    this.#channel = channel
    this.#memory = options.memory
    this.#schedulerOf = options.schedulerOf
  }

  get parts(): Iterable<DiskPart> {
    return this.#parts.values()
  }

  /** Bytes of slices under way, of all disks. */
  get plannedBytes(): number {
    if (this.#only !== undefined) return this.#only.list.plannedBytes
    let planned = 0
    for (const { list } of this.#parts.values()) planned += list.plannedBytes
    return planned
  }

  get listedCount(): number {
    if (this.#only !== undefined) return this.#only.list.listed.count
    let count = 0
    for (const { list } of this.#parts.values()) count += list.listed.count
    return count
  }

  of(partition: MapPartition): DiskPart {
    const scheduler = this.#schedulerOf(partition)
    if (this.#only?.scheduler === scheduler) return this.#only
    let part = this.#parts.get(scheduler)
    if (part === undefined) {
      part = { scheduler, list: new DiskList(this.#channel, this.#memory) }
      this.#parts.set(scheduler, part)
      this.#only = this.#parts.size === 1 ? part : undefined
    }
    return part
  }

  /** What of the channel's room a disk may have: no more than half where there are several. */
  roomBytes(list: DiskList, room: number, leastBytes: number): number {
    const left = room - this.plannedBytes
    if (this.#parts.size < 2) return left
    // So one disk that hangs can't keep the others from serving.
    const half = Math.max(leastBytes, Math.floor(room / 2))
    return Math.min(left, half - list.plannedBytes)
  }

  canBeginRun(list: DiskList): boolean {
    if (this.#unfinishedRuns >= unfinishedRunsMax) return false
    return this.#parts.size < 2 || list.runs < unfinishedRunsMax / 2
  }

  beginRun(cursor: PartitionCursor): boolean {
    const { list } = this.of(cursor.partition)
    if (!this.canBeginRun(list)) return false
    cursor.holdsRun = true
    this.#unfinishedRuns += 1
    list.changeRuns(1)
    return true
  }

  endRun(cursor: PartitionCursor): void {
    if (!cursor.holdsRun) return
    cursor.holdsRun = false
    this.#unfinishedRuns -= 1
    this.of(cursor.partition).list.changeRuns(-1)
  }

  wake(): void {
    if (this.#only !== undefined) {
      this.#only.scheduler.wake(this.#only.list)
      return
    }
    for (const { scheduler, list } of this.#parts.values()) scheduler.wake(list)
  }
}
