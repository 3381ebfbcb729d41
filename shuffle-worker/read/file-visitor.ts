// One visit of the sweep to a file: goes up through its regions and reads what the channels that are
// there can take, neighbouring slices with one read. Owned by the disk's scheduler.

import type { MapPartition } from '../storage/storage-types.ts'
import { type DiskList, orderBehind } from './disk-list.ts'
import type { CursorSlice, PartitionCursor } from './partition-cursor.ts'
import type { ReadPipeline } from './read-pipeline.ts'
import { planReads } from './read-plan.ts'
import { isInSegment } from './segment-visitor.ts'
import type { SweepFile } from './sweep-file.ts'
import type { SweepFiles } from './sweep-files.ts'

export interface FileVisitorOptions {
  readonly files: SweepFiles
  readonly pipeline: ReadPipeline
  readonly gapBytesMax: number
  /** Largest index of a region that is read before its turn. */
  readonly indexAheadBytesMax: number
  readonly onSwept: (bytes: number) => void
}

export interface VisitBounds {
  readonly from: number
  readonly bytesMax: number
  /** A detour for this list: only what lies near its place in the file. */
  readonly near?: DiskList
}

/** How far around the place of a late channel a detour reads. */
const nearBytes = 4 * 1024 * 1024
/** Of the index of a region: most bytes per run, while it is decoded. */
const indexBytesPerRun = 40

export class FileVisitor {
  readonly #options: FileVisitorOptions
  #prepared: SweepFile | undefined
  #isClosed = false

  constructor(options: FileVisitorOptions) {
    this.#options = options
  }

  /** Goes up through the file once; returns the region to go on with when `bytesMax` ended it. */
  async visit(partition: MapPartition, bounds: VisitBounds): Promise<number | undefined> {
    if (this.#hasClosed()) return undefined
    const { files } = this.#options
    const file = files.of(partition)
    try {
      await files.open(file)
    } catch (error) {
      files.fail(file, error)
      return undefined
    }
    files.begin(file)
    this.#prepareNext(file)
    // Who is late is served from where it stands.
    const near = cursorOf(file, bounds.near)
    let bytesLeft = bounds.bytesMax
    let region = file.nextRegion(near?.plannedRegion ?? bounds.from) ?? file.nextRegion(0)
    while (region !== undefined) {
      if (bytesLeft <= 0 || this.#hasClosed()) return region
      await file.enterRegion(region)
      bytesLeft -= await this.#readRegion(file, { region, near })
      region = file.nextRegion(region + 1)
    }
    return undefined
  }

  /** A visit under way ends soon. */
  close(): void {
    this.#isClosed = true
  }

  #hasClosed(): boolean {
    return this.#isClosed
  }

  /** Opens the file that is likely next, and reads the index it begins with, while this one is read. */
  #prepareNext(present: SweepFile): void {
    const { files, indexAheadBytesMax } = this.#options
    const next = files.nextFrom(orderBehind(present.order))
    const file = next === undefined || isInSegment(next) ? undefined : files.of(next)
    // The present one's own is about to be used.
    if (this.#prepared !== file && this.#prepared !== present) this.#prepared?.dropAhead()
    this.#prepared = file
    if (file !== undefined) {
      void files.open(file)
      const region = file.firstWantedRegion()
      const isSmall = file.partition.subpartitionCount * indexBytesPerRun <= indexAheadBytesMax
      if (region !== undefined && isSmall) file.readIndexAhead(region)
    }
    files.trim()
  }

  /** Plans and issues the reads of one region; returns their bytes. */
  async #readRegion(
    file: SweepFile,
    where: { readonly region: number; readonly near: PartitionCursor | undefined },
  ): Promise<number> {
    const { pipeline, gapBytesMax, onSwept } = this.#options
    const around = where.near?.plannedPosition
    const slices: CursorSlice[] = []
    for (const cursor of file.wants) {
      const position = cursor.plannedPosition
      if (position === undefined || cursor.plannedRegion !== where.region) continue
      if (around !== undefined && Math.abs(position - around) > nearBytes) continue
      const slice = cursor.list.plan(cursor, pipeline.readBytesMax)
      if (slice !== undefined) slices.push(slice)
    }
    const { readBytesMax, carryBytesMax } = pipeline
    const reads = planReads(slices, { readBytesMax, carryBytesMax, gapBytesMax })
    if (reads.length === 0) return 0
    let bytes = 0
    const reader = await file.open()
    for (const plan of reads) {
      await pipeline.read({ plan, reader })
      bytes += plan.end - plan.start
    }
    onSwept(bytes)
    return bytes
  }
}

/** The first cursor of the list in the file that can go on. */
function cursorOf(file: SweepFile, list: DiskList | undefined): PartitionCursor | undefined {
  if (list === undefined) return undefined
  for (const cursor of file.wants) {
    if (cursor.list === list && list.canTake(cursor)) return cursor
  }
  return undefined
}
