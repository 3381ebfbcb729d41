// One partition that some channel wants, at its place in the cyclic order of its disk. Pinned and
// opened at its first visit, or a little ahead of it, with the index of the region that is read first;
// closed when nobody wants it any more. Owned by the files of the disk's scheduler.

import { assert } from '../../client/common/assert.ts'
import type {
  FileImage,
  MapPartition,
  PartitionReader,
  RegionIndex,
} from '../storage/storage-types.ts'
import type { PartitionCursor } from './partition-cursor.ts'

interface IndexAhead {
  readonly regionIndex: number
  readonly index: Promise<RegionIndex>
}

export class SweepFile {
  readonly partition: MapPartition
  /** Of the channels that have begun it. */
  readonly wants = new Set<PartitionCursor>()
  /** Entries of channels that have not; kept by the files of the disk. */
  listedCount = 0
  #opening: Promise<PartitionReader> | undefined
  #ahead: IndexAhead | undefined

  constructor(partition: MapPartition) {
    this.partition = partition
  }

  get order(): number {
    return this.partition.fileOrder
  }

  /** What `image` holds of the file is not read from the disk. */
  open(image?: FileImage): Promise<PartitionReader> {
    if (this.#opening === undefined) {
      this.#opening = this.partition.openReader(image)
      // Opened ahead of its visit, it may fail before anyone waits for it.
      this.#opening.catch(() => undefined)
    }
    return this.#opening
  }

  /** Reads a region's index before its turn. One is kept at most. */
  readIndexAhead(regionIndex: number): void {
    if (this.#ahead?.regionIndex === regionIndex) return
    this.dropAhead()
    const index = this.open().then((reader) => reader.regionIndex(regionIndex))
    // Whoever comes for it is told.
    index.catch(() => undefined)
    this.#ahead = { regionIndex, index }
  }

  /** Gives the region's index to every cursor that has arrived at it and can take something. */
  async enterRegion(regionIndex: number, image?: FileImage): Promise<void> {
    const entering: PartitionCursor[] = []
    for (const cursor of this.wants) {
      if (cursor.wantedRegion === regionIndex && cursor.list.canTake(cursor)) entering.push(cursor)
    }
    if (entering.length === 0) return
    try {
      const index = await this.#regionIndex(regionIndex, image)
      for (const cursor of entering) {
        try {
          if (!cursor.isOver && cursor.wantedRegion === regionIndex) cursor.enterRegion(index)
        } catch (error) {
          cursor.list.channel.fail(cursor, error)
        }
      }
      index.release()
    } catch (error) {
      for (const cursor of entering) cursor.list.channel.fail(cursor, error)
    }
    settleEntered(entering)
  }

  /** The caller releases it. */
  async #regionIndex(regionIndex: number, image: FileImage | undefined): Promise<RegionIndex> {
    const ahead = this.#ahead
    if (ahead?.regionIndex === regionIndex) {
      this.#ahead = undefined
      try {
        return await ahead.index
      } catch {
        // For want of memory, perhaps: who has its turn now asks again.
      }
    }
    assert(this.#opening !== undefined, 'the index of an open file is read')
    return (await this.#opening).regionIndex(regionIndex, image)
  }

  /** What was read ahead is not needed now. */
  dropAhead(): void {
    const ahead = this.#ahead
    this.#ahead = undefined
    ahead?.index.then(
      (index) => {
        index.release()
      },
      () => undefined,
    )
  }

  /** Lets the pin go, also one that is on its way. */
  close(onError: (error: unknown) => void): void {
    this.dropAhead()
    const opening = this.#opening
    this.#opening = undefined
    // Who waits for the opening is told of its failure; here there is nothing to close then.
    opening?.then(
      (reader) => reader.close().catch(onError),
      () => undefined,
    )
  }

  /** The region whose index its next visit begins with; undefined when that was read already. */
  firstWantedRegion(): number | undefined {
    if (this.listedCount > 0) return 0
    const region = this.nextRegion(0)
    for (const cursor of this.wants) if (cursor.wantedRegion === region) return region
    return undefined
  }

  /** The lowest region at or above `from` that a want can go on with. */
  nextRegion(from: number): number | undefined {
    let lowest: number | undefined
    for (const cursor of this.wants) {
      const region = cursor.plannedRegion
      if (region < from || (lowest !== undefined && region >= lowest)) continue
      if (cursor.list.canTake(cursor)) lowest = region
    }
    return lowest
  }
}

/** Those of which nothing is left end here: no read of theirs will tell their channels. */
function settleEntered(cursors: readonly PartitionCursor[]): void {
  for (const cursor of cursors) {
    const { channel } = cursor.list
    channel.settle(cursor)
    if (cursor.isOver) channel.afterDelivery()
  }
}
