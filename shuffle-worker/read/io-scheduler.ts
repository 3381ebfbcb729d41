// The carousel: when each file of one disk is read, and for whom. One per disk. The files lie in one
// fixed cyclic order; a cursor goes up through them and serves every channel that wants something of
// the file and can take it.
//
//          ╭──────────────────────────────────────────────────╮
//   files  │ 3   7   8  ▸12   15   16   21   30   31   44   … │   ▸ the cursor, one sweep at a time
//          ╰──────────────────────────────────────────────────╯
//            late channel's file: a detour, at most once in 48 MiB swept, then back
//
// Owned by the read service. Runs while some channel can take something, else sleeps.

import type { Clock } from '../../client/common/clock.ts'
import type { Logger } from '../../client/common/log.ts'
import type { MapPartition } from '../storage/storage-types.ts'
import type { SweepScheduler } from './channel-disks.ts'
import { type DiskList, orderBehind } from './disk-list.ts'
import type { CursorSlice, PartitionCursor } from './partition-cursor.ts'
import type { ReadMemory } from './read-memory.ts'
import { ReadPipeline } from './read-pipeline.ts'
import { planReads } from './read-plan.ts'
import type { SweepFile } from './sweep-file.ts'
import { SweepFiles } from './sweep-files.ts'

/** The sweep's place among those that use a disk with heads; see write/region-turns.ts. */
export interface SweepTurns {
  readonly waitingRegions: number
  enter(): { acquire(): Promise<boolean>; leave(): void }
}

export interface IoSchedulerOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly memory: ReadMemory
  readonly blockBytes: number
  readonly readsInFlightMax: number
  /** Unwanted bytes between two slices that are read through. */
  readonly gapBytesMax: number
  /** Most files kept open; past it the one visited longest ago is closed, and opened again later. */
  readonly openFilesMax: number
  /** Largest index of a region that is read before its turn. */
  readonly indexAheadBytesMax: number
  /** Undefined where reads and writes don't disturb each other. */
  readonly turns: SweepTurns | undefined
  readonly onRead: (bytes: number) => void
}

/** A channel is late when it has waited so long for its first byte, or since its last. */
const lateFirstMs = 250
const lateNextMs = 4000
/** At most one detour in so many bytes swept. */
const detourEveryBytes = 48 * 1024 * 1024
/** What one detour reads at most. */
const detourBytesMax = 8 * 1024 * 1024
/** Of the index of a region: most bytes per run, while it is decoded. */
const indexBytesPerRun = 40
/** After so many bytes a sweep lets waiting writes go first. */
const turnBytes = 16 * 1024 * 1024

export class IoScheduler implements SweepScheduler {
  readonly #options: IoSchedulerOptions
  readonly #pipeline: ReadPipeline
  readonly #files: SweepFiles
  readonly #lists = new Set<DiskList>()
  #prepared: SweepFile | undefined
  #cursorOrder = 0
  #cursorRegion = 0
  #sweptBytes = 0
  #turnLeftBytes = turnBytes
  #isRunning = false
  #isWoken = false
  #isStarved = false
  #isClosed = false

  constructor(options: IoSchedulerOptions) {
    this.#options = options
    this.#files = new SweepFiles({
      openFilesMax: options.openFilesMax,
      listedCountOf: (partition) => this.#listedCountOf(partition),
      onFault: this.#onFault,
    })
    this.#pipeline = new ReadPipeline({
      memory: options.memory,
      blockBytes: options.blockBytes,
      readsInFlightMax: options.readsInFlightMax,
      nowMs: () => options.clock.nowMs(),
      onCompleted: (bytes) => {
        options.onRead(bytes)
        this.#run()
      },
      onFault: this.#onFault,
    })
  }

  get openFileCount(): number {
    return this.#files.openCount
  }

  listed(list: DiskList, partition: MapPartition): void {
    this.#lists.add(list)
    this.#files.changeListed(partition, 1)
  }

  unlisted(list: DiskList, partition: MapPartition): void {
    this.#files.changeListed(partition, -1)
    if (list.isEmpty) this.#lists.delete(list)
  }

  remove(list: DiskList, cursor: PartitionCursor): void {
    const file = this.#files.get(cursor.partition)
    file?.wants.delete(cursor)
    if (file !== undefined) this.#files.dropIfUnwanted(file)
    if (list.isEmpty) this.#lists.delete(list)
  }

  wake(list: DiskList): void {
    if (this.#isClosed || !this.#lists.has(list)) return
    if (list.channel.roomBytes(list) <= 0) return
    list.startWaiting(this.#options.clock.nowMs())
    this.#run()
  }

  /** Read memory may be free again. */
  retry(): void {
    this.#pipeline.retry()
    if (!this.#isStarved) return
    this.#isStarved = false
    this.#run()
  }

  /** Stops to read. The channels are closed by their owner before. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#pipeline.close()
    this.#files.close()
    this.#lists.clear()
    await this.#pipeline.settled
  }

  readonly #onFault = (error: unknown): void => {
    this.#options.logger.error({ error }, 'the read scheduler met an unexpected error')
  }

  /** Starts to sweep; when it runs already it looks once more before it ends. */
  #run(): void {
    this.#isWoken = true
    if (this.#isRunning || this.#isClosed) return
    this.#isRunning = true
    this.#sweepWhileWoken()
      .catch(this.#onFault)
      .finally(() => {
        this.#isRunning = false
        // Blocks given back at the end free memory that someone may have waited for.
        if (this.#isWoken) this.#run()
      })
  }

  async #sweepWhileWoken(): Promise<void> {
    while (this.#isWoken && !this.#isClosed) {
      this.#isWoken = false
      await this.#sweep()
    }
    if (this.#pipeline.inFlight === 0) this.#pipeline.releaseBlocks()
  }

  async #sweep(): Promise<void> {
    let partition = this.#nextFile()
    if (partition === undefined) return
    const turn = this.#options.turns?.enter()
    try {
      if (turn !== undefined && !(await turn.acquire())) return
      this.#turnLeftBytes = turnBytes
      while (partition !== undefined && !this.#isClosed) {
        if (this.#mustYield()) {
          this.#isWoken = true
          return
        }
        await this.#visitNext(partition)
        partition = this.#nextFile()
      }
    } finally {
      turn?.leave()
    }
  }

  #mustYield(): boolean {
    const { turns } = this.#options
    return turns !== undefined && this.#turnLeftBytes <= 0 && turns.waitingRegions > 0
  }

  /** The next file at or behind the cursor that somebody can take something of; around once. */
  #nextFile(): MapPartition | undefined {
    let behind: MapPartition | undefined
    let first: MapPartition | undefined
    const nowMs = this.#options.clock.nowMs()
    for (const list of this.#lists) {
      if (!this.#canServe(list, nowMs)) continue
      behind = earlier(behind, list.nextFrom(this.#cursorOrder))
      if (behind === undefined) first = earlier(first, list.nextFrom(0))
    }
    return behind ?? first
  }

  #canServe(list: DiskList, nowMs: number): boolean {
    if (list.channel.roomBytes(list) <= 0) {
      list.stopWaiting()
      return false
    }
    list.startWaiting(nowMs)
    if (!list.channel.isStarved || this.#options.memory.hasFree) return true
    this.#isStarved = true
    return false
  }

  async #visitNext(partition: MapPartition): Promise<void> {
    const late = this.#sweptBytes >= detourEveryBytes ? this.#oldestLate() : undefined
    if (late !== undefined) {
      this.#sweptBytes = 0
      await this.#visit(late.partition, { from: 0, bytesMax: detourBytesMax, near: late.list })
      return
    }
    const order = partition.fileOrder
    const from = order === this.#cursorOrder ? this.#cursorRegion : 0
    this.#cursorOrder = order
    const isWanted = (this.#options.turns?.waitingRegions ?? 0) > 0
    const bytesMax = isWanted ? turnBytes : detourEveryBytes
    const nextRegion = await this.#visit(partition, { from, bytesMax })
    if (nextRegion === undefined) {
      this.#cursorOrder = orderBehind(order)
      this.#cursorRegion = 0
    } else {
      this.#cursorRegion = nextRegion
    }
  }

  /** Goes up through the file once; returns the region to go on with when `bytesMax` ended it. */
  async #visit(partition: MapPartition, bounds: VisitBounds): Promise<number | undefined> {
    const file = this.#files.of(partition)
    try {
      await this.#files.open(file)
    } catch (error) {
      this.#failFile(file, error)
      return undefined
    }
    this.#begin(file)
    this.#prepareNext(file)
    // Who is late is served from where it stands.
    const near = cursorOf(file, bounds.near)
    let bytesLeft = bounds.bytesMax
    let region = file.nextRegion(near?.plannedRegion ?? bounds.from) ?? file.nextRegion(0)
    while (region !== undefined && !this.#isClosed) {
      if (bytesLeft <= 0) return region
      await this.#enterRegion(file, region)
      bytesLeft -= await this.#readRegion(file, { region, near })
      region = file.nextRegion(region + 1)
    }
    return undefined
  }

  /** Makes the cursors of all channels that have it in their list and can take something now. */
  #begin(file: SweepFile): void {
    for (const list of this.#lists) {
      for (const cursor of list.begin(file.partition)) {
        file.wants.set(cursor, list)
        file.listedCount -= 1
      }
    }
    this.#files.dropIfUnwanted(file)
  }

  #failFile(file: SweepFile, error: unknown): void {
    for (const [cursor, list] of [...file.wants]) list.channel.fail(cursor, error)
    for (const list of [...this.#lists]) {
      for (;;) {
        const entry = list.listed.take(file.partition)
        if (entry === undefined) break
        this.unlisted(list, file.partition)
        list.channel.failEntry(entry, error)
      }
    }
    this.#files.dropIfUnwanted(file)
  }

  #listedCountOf(partition: MapPartition): number {
    let count = 0
    for (const list of this.#lists) count += list.listed.countOf(partition)
    return count
  }

  /** Opens the file that is likely next, and reads the index it begins with, while this one is read. */
  #prepareNext(present: SweepFile): void {
    let next: MapPartition | undefined
    for (const list of this.#lists) next = earlier(next, list.nextFrom(orderBehind(present.order)))
    const file = next === undefined ? undefined : this.#files.of(next)
    if (this.#prepared !== file) this.#prepared?.dropAhead()
    this.#prepared = file
    if (file !== undefined) {
      void this.#files.open(file)
      const region = file.firstWantedRegion()
      const isSmall =
        file.partition.subpartitionCount * indexBytesPerRun <= this.#options.indexAheadBytesMax
      if (region !== undefined && isSmall) file.readIndexAhead(region)
    }
    this.#files.trim()
  }

  /** Gives the region's index to every cursor that has arrived at it and can take something. */
  async #enterRegion(file: SweepFile, region: number): Promise<void> {
    const entering = [...file.wants].filter(
      ([cursor, list]) => cursor.wantedRegion === region && list.canTake(cursor),
    )
    if (entering.length === 0) return
    try {
      const index = await file.regionIndex(region)
      for (const [cursor, list] of entering) {
        try {
          if (!cursor.isOver && cursor.wantedRegion === region) cursor.enterRegion(index)
        } catch (error) {
          list.channel.fail(cursor, error)
        }
      }
      index.release()
    } catch (error) {
      for (const [cursor, list] of entering) list.channel.fail(cursor, error)
    }
    for (const [cursor, list] of entering) list.channel.settle(cursor)
  }

  /** Plans and issues the reads of one region; returns their bytes. */
  async #readRegion(
    file: SweepFile,
    where: { readonly region: number; readonly near: PartitionCursor | undefined },
  ): Promise<number> {
    const around = where.near?.plannedPosition
    const slices: CursorSlice[] = []
    const lists = new Map<CursorSlice, DiskList>()
    for (const [cursor, list] of file.wants) {
      const position = cursor.plannedPosition
      if (position === undefined || cursor.plannedRegion !== where.region) continue
      if (around !== undefined && Math.abs(position - around) > detourBytesMax / 2) continue
      const slice = list.plan(cursor)
      if (slice === undefined) continue
      slices.push(slice)
      lists.set(slice, list)
    }
    const reads = planReads(slices, {
      readBytesMax: this.#pipeline.readBytesMax,
      gapBytesMax: this.#options.gapBytesMax,
    })
    const listOf = (slice: CursorSlice): DiskList => {
      const list = lists.get(slice)
      if (list === undefined) throw new Error('a slice of another visit')
      return list
    }
    let bytes = 0
    if (reads.length === 0) return bytes
    const reader = await file.open()
    for (const plan of reads) {
      await this.#pipeline.read({ plan, reader, listOf })
      bytes += plan.end - plan.start
    }
    this.#sweptBytes += bytes
    this.#turnLeftBytes -= bytes
    return bytes
  }

  #oldestLate(): { readonly partition: MapPartition; readonly list: DiskList } | undefined {
    const nowMs = this.#options.clock.nowMs()
    let oldest: { readonly partition: MapPartition; readonly list: DiskList } | undefined
    let oldestMs = Infinity
    for (const list of this.#lists) {
      const since = list.waitingSinceMs
      if (since === undefined || since >= oldestMs) continue
      if (nowMs - since < (list.hasBeenServed ? lateNextMs : lateFirstMs)) continue
      if (!this.#canServe(list, nowMs)) continue
      const partition = list.nextFrom(this.#cursorOrder) ?? list.nextFrom(0)
      if (partition === undefined) continue
      oldest = { partition, list }
      oldestMs = since
    }
    return oldest
  }
}

interface VisitBounds {
  readonly from: number
  readonly bytesMax: number
  /** A detour for this list: only what lies near its place in the file. */
  readonly near?: DiskList
}

/** The first cursor of the list in the file that can go on. */
function cursorOf(file: SweepFile, list: DiskList | undefined): PartitionCursor | undefined {
  if (list === undefined) return undefined
  for (const [cursor, of] of file.wants) {
    if (of === list && list.canTake(cursor)) return cursor
  }
  return undefined
}

function earlier(
  a: MapPartition | undefined,
  b: MapPartition | undefined,
): MapPartition | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return b.fileOrder < a.fileOrder ? b : a
}
