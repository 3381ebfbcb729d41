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
import { isShuffleError } from '../../client/common/errors.ts'
import type { Logger } from '../../client/common/log.ts'
import type { MapPartition } from '../storage/storage-types.ts'
import type { SweepScheduler } from './channel-disks.ts'
import { type DiskList, orderBehind } from './disk-list.ts'
import { FileVisitor } from './file-visitor.ts'
import type { PartitionCursor } from './partition-cursor.ts'
import type { ReadMemory } from './read-memory.ts'
import { ReadPipeline } from './read-pipeline.ts'
import { SegmentVisitor } from './segment-visitor.ts'
import { earlier, SweepFiles } from './sweep-files.ts'

/** The sweep's place among those that use a disk with heads; see write/region-turns.ts. */
export interface SweepTurns {
  readonly waitingRegions: number
  /** What went to the disk between the sweeps, since the start. */
  readonly writtenBytes: number
  enterSweep(): { acquire(): Promise<boolean>; leave(): void }
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
/** How much later than it came to wait a channel may be seen to. */
const askAllAfterMs = 20
/** At most one detour in so many bytes swept or written. */
const detourEveryBytes = 48 * 1024 * 1024
/** What one detour reads at most, half of it on either side of the late channel's place. */
const detourBytesMax = 8 * 1024 * 1024
/** After so many bytes a sweep lets waiting writes go first. */
const turnBytes = 16 * 1024 * 1024

export class IoScheduler implements SweepScheduler {
  readonly #options: IoSchedulerOptions
  readonly #pipeline: ReadPipeline
  readonly #files: SweepFiles
  readonly #visitor: FileVisitor
  readonly #segments: SegmentVisitor
  #cursorOrder = 0
  #cursorRegion = 0
  /** When all channels were last asked what they can take. */
  #allAskedMs = -Infinity
  /** Since the last detour, and what was written by then. */
  #sweptBytes = 0
  #writtenAtDetour = 0
  #turnLeftBytes = turnBytes
  #isRunning = false
  #isWoken = false
  #isStarved = false
  #isClosed = false

  constructor(options: IoSchedulerOptions) {
    this.#options = options
    this.#files = new SweepFiles({
      openFilesMax: options.openFilesMax,
      onNotClosed: this.#onNotClosed,
    })
    this.#pipeline = new ReadPipeline({
      memory: options.memory,
      blockBytes: options.blockBytes,
      readsInFlightMax: options.readsInFlightMax,
      nowMs: () => options.clock.nowMs(),
      afterTurn: (callback) => options.clock.setImmediate(callback),
      onCompleted: (bytes) => {
        options.onRead(bytes)
        this.#run()
      },
      onFault: this.#onFault,
    })
    const visits = {
      files: this.#files,
      pipeline: this.#pipeline,
      gapBytesMax: options.gapBytesMax,
      onSwept: (bytes: number) => {
        this.#sweptBytes += bytes
        this.#turnLeftBytes -= bytes
      },
    }
    const { indexAheadBytesMax, clock } = options
    this.#visitor = new FileVisitor({ ...visits, indexAheadBytesMax })
    const nowMs = () => clock.nowMs()
    this.#segments = new SegmentVisitor({ ...visits, nowMs, onNotClosed: this.#onNotClosed })
  }

  get openFileCount(): number {
    return this.#files.openCount
  }

  get isShortOfMemory(): boolean {
    return this.#pipeline.isShortOfMemory
  }

  listed(list: DiskList, partition: MapPartition): void {
    this.#files.listed(list, partition)
  }

  unlisted(list: DiskList, partition: MapPartition): void {
    this.#files.unlisted(list, partition)
  }

  remove(list: DiskList, cursor: PartitionCursor): void {
    this.#files.remove(list, cursor)
  }

  wake(list: DiskList): void {
    if (this.#isClosed || !this.#files.lists.has(list)) return
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
    this.#visitor.close()
    this.#files.close()
    await this.#pipeline.settled
  }

  readonly #onFault = (error: unknown): void => {
    this.#options.logger.error({ error }, 'the read scheduler met an unexpected error')
  }

  /** What was read was read. That the disk fails is its health's to tell. */
  readonly #onNotClosed = (error: unknown): void => {
    if (!isShuffleError(error, 'DISK_FAILED', 'NO_SPACE')) this.#onFault(error)
    else this.#options.logger.debug({ error }, 'a file that was read did not close well')
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
    const turn = this.#options.turns?.enterSweep()
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
    if (nowMs - this.#allAskedMs >= askAllAfterMs) this.#askAll(nowMs)
    const nearest = this.#files.firstWantedFrom(this.#cursorOrder)
    if (nearest !== undefined && this.#isForOne(nearest, nowMs)) return nearest
    for (const list of this.#files.lists) {
      const roomBytes = list.channel.roomBytes(list)
      if (!this.#canServe(list, roomBytes, nowMs)) continue
      behind = earlier(behind, list.nextFrom(this.#cursorOrder, roomBytes))
      if (behind === undefined) first = earlier(first, list.nextFrom(0, roomBytes))
      else if (behind === nearest) return behind
    }
    return behind ?? first
  }

  /** So that it is known how long each has waited; not for what, which costs most of asking. */
  #askAll(nowMs: number): void {
    this.#allAskedMs = nowMs
    for (const list of this.#files.lists) this.#canServe(list, list.channel.roomBytes(list), nowMs)
  }

  /** Whether one channel alone wants the nearest file, and can take something of it now. */
  #isForOne(nearest: MapPartition, nowMs: number): boolean {
    const only = this.#files.onlyListOf(nearest)
    if (only === undefined) return false
    const roomBytes = only.channel.roomBytes(only)
    if (!this.#canServe(only, roomBytes, nowMs)) return false
    return only.nextFrom(this.#cursorOrder, roomBytes) === nearest
  }

  #canServe(list: DiskList, roomBytes: number, nowMs: number): boolean {
    if (roomBytes <= 0) {
      list.stopWaiting()
      return false
    }
    list.startWaiting(nowMs)
    if (!list.channel.isStarved || this.#options.memory.hasFree) return true
    this.#isStarved = true
    return false
  }

  async #visitNext(partition: MapPartition): Promise<void> {
    const late = this.#mayDetour() ? this.#oldestLate() : undefined
    if (late !== undefined) {
      this.#sweptBytes = 0
      this.#writtenAtDetour = this.#options.turns?.writtenBytes ?? 0
      if ((await this.#segments.visit(late.partition)) !== undefined) return
      const bounds = { from: 0, bytesMax: detourBytesMax, near: late.list }
      await this.#visitor.visit(late.partition, bounds)
      return
    }
    const last = await this.#segments.visit(partition)
    if (last !== undefined) {
      this.#cursorOrder = orderBehind(last.fileOrder)
      this.#cursorRegion = 0
      return
    }
    const order = partition.fileOrder
    const from = order === this.#cursorOrder ? this.#cursorRegion : 0
    this.#cursorOrder = order
    const isWanted = (this.#options.turns?.waitingRegions ?? 0) > 0
    const bytesMax = isWanted ? turnBytes : detourEveryBytes
    const nextRegion = await this.#visitor.visit(partition, { from, bytesMax })
    if (nextRegion === undefined) {
      this.#cursorOrder = orderBehind(order)
      this.#cursorRegion = 0
    } else {
      this.#cursorRegion = nextRegion
    }
  }

  /** However often late channels come, what a detour costs stays small beside what it interrupts. */
  #mayDetour(): boolean {
    const written = (this.#options.turns?.writtenBytes ?? 0) - this.#writtenAtDetour
    return this.#sweptBytes + written >= detourEveryBytes
  }

  #oldestLate(): { readonly partition: MapPartition; readonly list: DiskList } | undefined {
    const nowMs = this.#options.clock.nowMs()
    let oldest: { readonly partition: MapPartition; readonly list: DiskList } | undefined
    let oldestMs = Infinity
    for (const list of this.#files.lists) {
      const since = list.waitingSinceMs
      if (since === undefined || since >= oldestMs) continue
      if (nowMs - since < (list.hasBeenServed ? lateNextMs : lateFirstMs)) continue
      if (!this.#canServe(list, list.channel.roomBytes(list), nowMs)) continue
      const partition = list.nextFrom(this.#cursorOrder) ?? list.nextFrom(0)
      if (partition === undefined) continue
      oldest = { partition, list }
      oldestMs = since
    }
    return oldest
  }
}
