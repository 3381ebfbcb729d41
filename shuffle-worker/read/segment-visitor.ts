// One visit of the sweep to neighbours in a segment of the shared log: small partitions that lie one
// behind the other are read with one read, tables, indexes and data together, and all that channels
// can take of them is delivered from its block.
//
//   segment   … | record | p7: regions, table, footer | record | p8: … | record | p9: … | …
//   one read             [______________________________________________________]
//   for each partition in turn: open ▸ begin ▸ enter its regions ▸ deliver, without the disk
//
// Owned by the disk's scheduler.

import { assert } from '../../client/common/assert.ts'
import type { FileImage, MapPartition } from '../storage/storage-types.ts'
import { orderBehind } from './disk-list.ts'
import type { ReadPipeline } from './read-pipeline.ts'
import type { SweepFile } from './sweep-file.ts'
import type { SweepFiles } from './sweep-files.ts'

export interface SegmentVisitorOptions {
  readonly files: SweepFiles
  readonly pipeline: ReadPipeline
  readonly gapBytesMax: number
  readonly nowMs: () => number
  readonly onSwept: (bytes: number) => void
  /** A file that was read did not close. */
  readonly onNotClosed: (error: unknown) => void
}

/** So that choosing neighbours doesn't hold up the event loop, however tiny they are. */
const neighboursMax = 64

/** Whether it shares its file with others: there it lies behind a header. */
export function isInSegment(partition: MapPartition): boolean {
  return partition.extent.offset > 0
}

export class SegmentVisitor {
  readonly #options: SegmentVisitorOptions

  constructor(options: SegmentVisitorOptions) {
    this.#options = options
  }

  /**
   * Serves `first` and those wanted that follow it closely; returns the last that was served. Undefined
   * when it couldn't be read so: it doesn't fit a block, or the read failed. Then it is visited alone,
   * so that what is broken fails alone.
   */
  async visit(first: MapPartition): Promise<MapPartition | undefined> {
    const { pipeline, onSwept, onNotClosed } = this.#options
    if (!isInSegment(first) || first.extent.byteLength > pipeline.readBytesMax) return undefined
    let served: MapPartition | undefined
    try {
      const pinned = await first.openFile()
      try {
        await pipeline.readWhole<Neighbours>({
          read: (target, position) => pinned.read(target, position),
          choose: (bytesMax) => this.#choose(first, bytesMax),
          use: async ({ partitions }, image) => {
            for (const partition of partitions) await this.#serve(partition, image)
            served = partitions.at(-1)
            onSwept(image.bytes.byteLength)
          },
        })
      } finally {
        // Not awaited: a read that hangs keeps the file from closing.
        pinned.close().catch(onNotClosed)
      }
    } catch {
      // The visit to the partition itself meets the error again and tells whom it concerns.
      return undefined
    }
    return served
  }

  /** Wanted neighbours from `first` on, as many as fit. */
  #choose(first: MapPartition, bytesMax: number): Neighbours | undefined {
    const { files, gapBytesMax } = this.#options
    const start = first.extent.offset
    let end = endOf(first)
    if (end - start > bytesMax) return undefined
    const partitions = [first]
    let next = files.nextFrom(orderBehind(first.fileOrder))
    while (next !== undefined && partitions.length < neighboursMax) {
      const { fileOrdinal, offset } = next.extent
      if (fileOrdinal !== first.extent.fileOrdinal || offset - end > gapBytesMax) break
      if (endOf(next) - start > bytesMax) break
      assert(offset >= end, 'partitions of a segment do not overlap')
      end = endOf(next)
      partitions.push(next)
      next = files.nextFrom(orderBehind(next.fileOrder))
    }
    return { start, end, partitions }
  }

  async #serve(partition: MapPartition, image: FileImage): Promise<void> {
    const { files } = this.#options
    const file = files.of(partition)
    try {
      await files.open(file, image)
    } catch (error) {
      files.fail(file, error)
      return
    }
    files.begin(file)
    let region = file.nextRegion(0)
    while (region !== undefined) {
      await file.enterRegion(region, image)
      this.#deliver(file, { region, image })
      region = file.nextRegion(region + 1)
    }
    files.trim()
  }

  #deliver(file: SweepFile, from: { readonly region: number; readonly image: FileImage }): void {
    const { bytes, start } = from.image
    const window = {
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      start,
      end: start + bytes.byteLength,
    }
    for (const cursor of [...file.wants]) {
      const { list } = cursor
      if (cursor.plannedPosition === undefined || cursor.plannedRegion !== from.region) continue
      const slice = list.plan(cursor, window.bytes.length)
      if (slice === undefined) continue
      try {
        cursor.deliver(slice, window, list.channel)
        list.served(this.#options.nowMs())
      } catch (error) {
        list.channel.fail(cursor, error)
      }
      list.retire(slice)
      list.channel.settle(cursor)
      list.channel.afterDelivery()
    }
  }
}

export interface Neighbours {
  readonly start: number
  readonly end: number
  readonly partitions: readonly MapPartition[]
}

function endOf(partition: MapPartition): number {
  return partition.extent.offset + partition.extent.byteLength
}
