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
import type { MapPartition, PartitionReader } from '../storage/storage-types.ts'
import type { DiskList } from './disk-list.ts'
import type { CursorSlice, PartitionCursor } from './partition-cursor.ts'
import type { ReadMemory } from './read-memory.ts'
import { ReadPipeline } from './read-pipeline.ts'
import { planReads } from './read-plan.ts'
import type { SweepScheduler } from './reading-view.ts'
import { SweepFile } from './sweep-file.ts'

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
/** After so many bytes a sweep lets waiting writes go first. */
const turnBytes = 16 * 1024 * 1024

export class IoScheduler implements SweepScheduler {
  readonly #options: IoSchedulerOptions
  readonly #pipeline: ReadPipeline
  readonly #files = new Map<MapPartition, SweepFile>()
  readonly #lists = new Set<DiskList>()
  /** Those that are pinned and open, the one visited longest ago first. */
  readonly #opened = new Set<SweepFile>()
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

  get fileCount(): number {
    return this.#files.size
  }

  get openFileCount(): number {
    return this.#opened.size
  }

  get channelCount(): number {
    return this.#lists.size
  }

  get readsInFlight(): number {
    return this.#pipeline.inFlight
  }

  add(list: DiskList, cursor: PartitionCursor): void {
    this.#lists.add(list)
    let file = this.#files.get(cursor.partition)
    if (file === undefined) {
      file = new SweepFile(cursor.partition)
      this.#files.set(cursor.partition, file)
    }
    file.wants.set(cursor, list)
  }

  remove(list: DiskList, cursor: PartitionCursor): void {
    const file = this.#files.get(cursor.partition)
    file?.wants.delete(cursor)
    if (file?.wants.size === 0) {
      this.#files.delete(cursor.partition)
      this.#close(file)
    }
    if (list.cursorCount === 0) this.#lists.delete(list)
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
    for (const file of [...this.#opened]) this.#close(file)
    this.#files.clear()
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
    let file = this.#nextFile()
    if (file === undefined) return
    const turn = this.#options.turns?.enter()
    try {
      if (turn !== undefined && !(await turn.acquire())) return
      this.#turnLeftBytes = turnBytes
      while (file !== undefined && !this.#isClosed) {
        if (this.#mustYield()) {
          this.#isWoken = true
          return
        }
        await this.#visitNext(file)
        file = this.#nextFile()
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
  #nextFile(): SweepFile | undefined {
    let behind: PartitionCursor | undefined
    let first: PartitionCursor | undefined
    const nowMs = this.#options.clock.nowMs()
    for (const list of this.#lists) {
      if (!this.#canServe(list, nowMs)) continue
      behind = earlier(behind, list.nextFrom(this.#cursorOrder))
      if (behind === undefined) first = earlier(first, list.nextFrom(0))
    }
    const next = behind ?? first
    return next === undefined ? undefined : this.#files.get(next.partition)
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

  async #visitNext(file: SweepFile): Promise<void> {
    const late = this.#sweptBytes >= detourEveryBytes ? this.#oldestLate() : undefined
    if (late !== undefined) {
      this.#sweptBytes = 0
      const { cursor, file: lateFile } = late
      const from = cursor.plannedRegion
      await this.#visit(lateFile, { from, bytesMax: detourBytesMax, near: cursor })
      return
    }
    const from = file.order === this.#cursorOrder ? this.#cursorRegion : 0
    this.#cursorOrder = file.order
    const isWanted = (this.#options.turns?.waitingRegions ?? 0) > 0
    const bytesMax = isWanted ? turnBytes : detourEveryBytes
    const nextRegion = await this.#visit(file, { from, bytesMax })
    if (nextRegion === undefined) {
      this.#cursorOrder = file.order + 1
      this.#cursorRegion = 0
    } else {
      this.#cursorRegion = nextRegion
    }
  }

  /** Goes up through the file once; returns the region to go on with when `bytesMax` ended it. */
  async #visit(file: SweepFile, bounds: VisitBounds): Promise<number | undefined> {
    let reader: PartitionReader
    try {
      reader = await this.#open(file)
    } catch (error) {
      for (const [cursor, list] of [...file.wants]) list.channel.fail(cursor, error)
      return undefined
    }
    this.#prepareNext(file)
    let bytesLeft = bounds.bytesMax
    let region = file.nextRegion(bounds.from) ?? file.nextRegion(0)
    while (region !== undefined && !this.#isClosed) {
      if (bytesLeft <= 0) return region
      await this.#enterRegion(file, reader, region)
      bytesLeft -= await this.#readRegion(file, reader, { region, near: bounds.near })
      region = file.nextRegion(region + 1)
    }
    return undefined
  }

  /** Opens the file that is likely next while this one is read. */
  #prepareNext(present: SweepFile): void {
    let behind: PartitionCursor | undefined
    for (const list of this.#lists) behind = earlier(behind, list.nextFrom(present.order + 1))
    const next = behind === undefined ? undefined : this.#files.get(behind.partition)
    if (next !== undefined) void this.#open(next)
    // Two are always wanted: the present one and the next.
    for (const oldest of this.#opened) {
      if (this.#opened.size <= Math.max(2, this.#options.openFilesMax)) return
      this.#close(oldest)
    }
  }

  #open(file: SweepFile): Promise<PartitionReader> {
    this.#opened.delete(file)
    this.#opened.add(file)
    return file.open()
  }

  #close(file: SweepFile): void {
    this.#opened.delete(file)
    file.close(this.#onFault)
  }

  /** Gives the region's index to every cursor that has arrived at it and can take something. */
  async #enterRegion(file: SweepFile, reader: PartitionReader, region: number): Promise<void> {
    const entering = [...file.wants].filter(
      ([cursor, list]) => cursor.wantedRegion === region && list.canTake(cursor),
    )
    if (entering.length === 0) return
    try {
      const index = await reader.regionIndex(region)
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
    reader: PartitionReader,
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
    for (const plan of reads) {
      await this.#pipeline.read({ plan, reader, listOf })
      bytes += plan.end - plan.start
    }
    this.#sweptBytes += bytes
    this.#turnLeftBytes -= bytes
    return bytes
  }

  #oldestLate(): { file: SweepFile; cursor: PartitionCursor } | undefined {
    const nowMs = this.#options.clock.nowMs()
    let oldest: { file: SweepFile; cursor: PartitionCursor } | undefined
    let oldestMs = Infinity
    for (const list of this.#lists) {
      const since = list.waitingSinceMs
      if (since === undefined || since >= oldestMs) continue
      if (nowMs - since < (list.hasBeenServed ? lateNextMs : lateFirstMs)) continue
      if (!this.#canServe(list, nowMs)) continue
      const cursor = list.nextFrom(this.#cursorOrder) ?? list.nextFrom(0)
      const file = cursor === undefined ? undefined : this.#files.get(cursor.partition)
      if (cursor === undefined || file === undefined) continue
      oldest = { file, cursor }
      oldestMs = since
    }
    return oldest
  }
}

interface VisitBounds {
  readonly from: number
  readonly bytesMax: number
  /** A detour: only what lies near this cursor. */
  readonly near?: PartitionCursor
}

function earlier(
  a: PartitionCursor | undefined,
  b: PartitionCursor | undefined,
): PartitionCursor | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return b.partition.fileOrder < a.partition.fileOrder ? b : a
}
