// One partition that some channel wants, at its place in the cyclic order of its disk. Pinned and
// opened at its first visit, closed when nobody wants it any more. Owned by the disk's scheduler.

import type { MapPartition, PartitionReader } from '../storage/storage-types.ts'
import type { DiskList } from './disk-list.ts'
import type { PartitionCursor } from './partition-cursor.ts'

export class SweepFile {
  readonly partition: MapPartition
  readonly wants = new Map<PartitionCursor, DiskList>()
  #opening: Promise<PartitionReader> | undefined

  constructor(partition: MapPartition) {
    this.partition = partition
  }

  get order(): number {
    return this.partition.fileOrder
  }

  open(): Promise<PartitionReader> {
    if (this.#opening === undefined) {
      this.#opening = this.partition.openReader()
      // Opened ahead of its visit, it may fail before anyone waits for it.
      this.#opening.catch(() => undefined)
    }
    return this.#opening
  }

  /** Lets the pin go, also one that is on its way. */
  close(onError: (error: unknown) => void): void {
    const opening = this.#opening
    this.#opening = undefined
    // Who waits for the opening is told of its failure; here there is nothing to close then.
    opening?.then(
      (reader) => reader.close().catch(onError),
      () => undefined,
    )
  }

  /** The lowest region at or above `from` that a want can go on with. */
  nextRegion(from: number): number | undefined {
    let lowest: number | undefined
    for (const [cursor, list] of this.wants) {
      const region = cursor.plannedRegion
      if (region < from || (lowest !== undefined && region >= lowest)) continue
      if (list.canTake(cursor)) lowest = region
    }
    return lowest
  }
}
