// One read channel: a consumer's view of this worker. It keeps the list of what is wanted (compact
// until its turn comes), hands its cursors to the schedulers of their disks, and says what became of
// each entry. Owned by the connection's handler; closed exactly once, on every path.

import { assert } from '../../client/common/assert.ts'
import type { Clock } from '../../client/common/clock.ts'
import type { JobId } from '../../client/common/ids.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import { TimeInState, type StateSums } from '../../client/common/time-in-state.ts'
import type { PartitionListEntry } from '../../client/protocol/partition-list.ts'
import type { LookupResult, MapPartition } from '../storage/storage-types.ts'
import { CreditSender, type ReadOutput } from './credit-sender.ts'
import { DiskList, type SweepChannel } from './disk-list.ts'
import { PartitionCursor } from './partition-cursor.ts'
import type { ReadMemory } from './read-memory.ts'
import { asReadError, refusalOf } from './read-refusals.ts'

/** Most unfinished runs of a channel: as many half records its consumer holds at most. */
export const unfinishedRunsMax = 16

export const readStates = ['idle', 'disk', 'memory', 'credit', 'socket'] as const
export type ReadState = (typeof readStates)[number]

/** What the view tells its consumer, beside data and backlog. */
export interface ReadingOutput extends ReadOutput {
  sendPartitionFinish(partition: number, totals: RangeTotals): void
  sendPartitionFailed(partition: number, error: ShuffleError): void
  sendReadFinish(totals: ChannelTotals): void
}

export interface RangeTotals {
  readonly entryCount: number
  readonly byteCount: number
}

export interface ChannelTotals extends RangeTotals {
  readonly partitionCount: number
  readonly frameCount: number
}

/** The scheduler of one disk, as a view needs it. */
export interface SweepScheduler {
  add(list: DiskList, cursor: PartitionCursor): void
  remove(list: DiskList, cursor: PartitionCursor): void
  /** The channel may be able to take something again. */
  wake(list: DiskList): void
}

export interface ReadingViewOptions {
  readonly clock: Clock
  readonly memory: ReadMemory
  readonly output: ReadingOutput
  readonly lookup: (key: PartitionListEntry['key']) => LookupResult
  readonly schedulerOf: (partition: MapPartition) => SweepScheduler
  readonly bufferSizeBytes: number
  readonly initialCredit: number
  readonly aheadBytesMax: number
  readonly flushAfterMs: number
  readonly entriesMax: number
  /** After ReadFinish has been sent: the channel is over. */
  readonly onFinished: () => void
  /** After it has given everything back, whatever ended it. */
  readonly onClosed: () => void
}

interface DiskPart {
  readonly list: DiskList
  readonly scheduler: SweepScheduler
}

export class ReadingView implements SweepChannel {
  readonly #options: ReadingViewOptions
  readonly #sender: CreditSender
  readonly #disks = new Map<SweepScheduler, DiskPart>()
  /** Entries that are neither finished, failed nor dropped, by their index. */
  readonly #cursors = new Map<number, PartitionCursor>()
  readonly #states: TimeInState<ReadState>
  /** Of the first entry: a channel is one consumer's, and so one job's. */
  #jobId: JobId | undefined
  #entryCount = 0
  #pendingAnswers = 0
  #unreadEstimate = 0
  #unfinishedRuns = 0
  #hasEnded = false
  #isClosed = false

  constructor(options: ReadingViewOptions) {
    this.#options = options
    this.#states = new TimeInState(options.clock, readStates)
    this.#sender = new CreditSender({
      clock: options.clock,
      memory: options.memory,
      output: options.output,
      bufferSizeBytes: options.bufferSizeBytes,
      initialCredit: options.initialCredit,
      aheadBytesMax: options.aheadBytesMax,
      flushAfterMs: options.flushAfterMs,
      jobId: () => this.#jobId,
      unreadBytes: () => this.#unreadBytes(),
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isStarved(): boolean {
    return this.#sender.isStarved
  }

  get credit(): number {
    return this.#isClosed ? 0 : this.#sender.credit
  }

  get heldBuffers(): number {
    return this.#sender.held
  }

  get openEntries(): number {
    return this.#cursors.size
  }

  get jobId(): JobId | undefined {
    return this.#jobId
  }

  stateSums(): StateSums<ReadState> {
    return this.#states.sums()
  }

  /** One AddPartitions frame. LIMIT_EXCEEDED and PROTOCOL end the channel. */
  addPartitions(entries: readonly PartitionListEntry[]): void {
    if (this.#isClosed) return
    if (this.#hasEnded) throw new ShuffleError('PROTOCOL', 'AddPartitions after ReadEnd')
    if (this.#entryCount + entries.length > this.#options.entriesMax) {
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        `a read channel lists at most ${String(this.#options.entriesMax)} partitions (entries-per-channel-max); open another channel for the rest`,
        { fields: { entriesMax: this.#options.entriesMax } },
      )
    }
    const added = new Set<DiskPart>()
    for (const entry of entries) {
      if (entry.index !== this.#entryCount) {
        throw new ShuffleError('PROTOCOL', 'the entries of a list are numbered from 0 on', {
          fields: { index: entry.index, expected: this.#entryCount },
        })
      }
      this.#entryCount += 1
      this.#jobId ??= entry.key.jobId
      const part = this.#addEntry(entry)
      if (part !== undefined) added.add(part)
    }
    this.#sender.setDrained(this.#cursors.size === 0)
    this.#sender.announceBacklog()
    for (const part of added) part.scheduler.wake(part.list)
    this.#noteState()
  }

  end(partitionCount: number): void {
    if (this.#isClosed) return
    if (this.#hasEnded || partitionCount !== this.#entryCount) {
      throw new ShuffleError('PROTOCOL', 'ReadEnd does not fit the list of the channel', {
        fields: { partitionCount, expected: this.#entryCount },
      })
    }
    this.#hasEnded = true
    this.#finishWhenDone()
  }

  /** Forgets one entry; what is in bodies already is sent, and skipped by the client. */
  drop(index: number): void {
    if (this.#isClosed) return
    if (index >= this.#entryCount) {
      throw new ShuffleError('PROTOCOL', 'DropPartition of an entry that is not in the list', {
        fields: { index },
      })
    }
    const cursor = this.#cursors.get(index)
    if (cursor === undefined) return
    this.#forget(cursor)
    this.#afterEntry()
  }

  addCredit(count: number): void {
    if (this.#isClosed) return
    if (!this.#sender.addCredit(count)) {
      throw new ShuffleError('PROTOCOL', 'more credit than any consumer can mean', {
        fields: { credit: this.#sender.credit, added: count },
      })
    }
    this.#wakeDisks()
  }

  /** The connection takes data again. */
  onWritable(): void {
    if (this.#isClosed) return
    this.#sender.pump()
    this.#wakeDisks()
  }

  /** Gives everything back. Idempotent. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const cursor of [...this.#cursors.values()]) this.#forget(cursor)
    this.#sender.close()
    this.#states.enter('idle')
    this.#options.onClosed()
  }

  // --- as the schedulers see it ---

  roomBytes(list: DiskList): number {
    if (this.#isClosed) return 0
    const room = this.#sender.roomBytes
    let planned = 0
    for (const part of this.#disks.values()) planned += part.list.plannedBytes
    const left = room - planned
    if (this.#disks.size < 2) return left
    // No disk holds more than half, so that one that hangs can't keep the others from serving.
    const half = Math.max(this.#options.bufferSizeBytes, Math.floor(room / 2))
    return Math.min(left, half - list.plannedBytes)
  }

  canBeginRun(list: DiskList): boolean {
    if (this.#unfinishedRuns >= unfinishedRunsMax) return false
    return this.#disks.size < 2 || list.runs < unfinishedRunsMax / 2
  }

  beginRun(cursor: PartitionCursor): boolean {
    const { list } = this.#partOf(cursor)
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
    this.#partOf(cursor).list.changeRuns(-1)
  }

  append(
    cursor: PartitionCursor,
    place: { readonly regionIndex: number; readonly subpartition: number },
    bytes: Uint8Array,
  ): boolean {
    return this.#sender.append({ partition: cursor.index, ...place }, bytes)
  }

  settle(cursor: PartitionCursor): void {
    if (this.#isClosed || cursor.isOver) return
    this.#refreshEstimate(cursor)
    if (!cursor.isComplete) return
    const totals = { entryCount: cursor.entryTotal, byteCount: cursor.byteTotal }
    this.#forget(cursor)
    this.#pendingAnswers += 1
    this.#sender.afterSent(() => {
      this.#options.output.sendPartitionFinish(cursor.index, totals)
      this.#pendingAnswers -= 1
      this.#finishWhenDone()
    })
  }

  fail(cursor: PartitionCursor, error: unknown): void {
    if (this.#isClosed || cursor.isOver) return
    this.#forget(cursor)
    this.#options.output.sendPartitionFailed(cursor.index, asReadError(error, cursor.partition.key))
    this.#afterEntry()
  }

  afterDelivery(): void {
    if (this.#isClosed) return
    this.#afterEntry()
  }

  // --- within ---

  #addEntry(entry: PartitionListEntry): DiskPart | undefined {
    const found = this.#options.lookup(entry.key)
    const refusal = refusalOf(entry, found, this.#options.bufferSizeBytes)
    if (found.state !== 'committed' || refusal !== undefined) {
      assert(refusal !== undefined, 'only a committed partition is read')
      this.#options.output.sendPartitionFailed(entry.index, refusal)
      return undefined
    }
    const cursor = new PartitionCursor({
      index: entry.index,
      partition: found.partition,
      firstSubpartition: entry.firstSubpartition,
      lastSubpartition: entry.lastSubpartition,
      start: entry.start,
    })
    this.#cursors.set(cursor.index, cursor)
    this.#refreshEstimate(cursor)
    const part = this.#partOf(cursor)
    part.list.add(cursor)
    part.scheduler.add(part.list, cursor)
    // A partition without regions has nothing to wait for.
    this.settle(cursor)
    return part
  }

  #partOf(cursor: PartitionCursor): DiskPart {
    const scheduler = this.#options.schedulerOf(cursor.partition)
    let part = this.#disks.get(scheduler)
    if (part === undefined) {
      part = { scheduler, list: new DiskList(this) }
      this.#disks.set(scheduler, part)
    }
    return part
  }

  /** Takes the cursor out of everything; what of it is under way is void. */
  #forget(cursor: PartitionCursor): void {
    assert(!cursor.isOver, 'an entry is over once')
    this.endRun(cursor)
    cursor.isOver = true
    this.#cursors.delete(cursor.index)
    this.#unreadEstimate -= cursor.estimatedBytes
    const part = this.#partOf(cursor)
    part.list.remove(cursor)
    part.scheduler.remove(part.list, cursor)
  }

  /** Entries or bodies have changed: flushes what need not wait, sends, asks for more. */
  #afterEntry(): void {
    this.#sender.setDrained(this.#cursors.size === 0)
    this.#sender.pump()
    this.#finishWhenDone()
    if (!this.#isClosed) this.#wakeDisks()
  }

  #wakeDisks(): void {
    this.#noteState()
    for (const part of this.#disks.values()) part.scheduler.wake(part.list)
  }

  #finishWhenDone(): void {
    if (this.#isClosed || !this.#hasEnded || this.#pendingAnswers > 0) return
    if (this.#cursors.size > 0 || !this.#sender.isEmpty) return
    const { frameCount, entryCount, byteCount } = this.#sender
    this.#options.output.sendReadFinish({
      partitionCount: this.#entryCount,
      frameCount,
      entryCount,
      byteCount,
    })
    this.close()
    this.#options.onFinished()
  }

  #unreadBytes(): number {
    if (this.#cursors.size === 0) return 0
    return Math.max(1, this.#unreadEstimate)
  }

  /** Exact for regions whose index was looked at, by the share of the range for the others. */
  #refreshEstimate(cursor: PartitionCursor): void {
    const { totals, subpartitionCount } = cursor.partition
    const regionsLeft = Math.max(0, totals.regionCount - cursor.countedRegions)
    const share = cursor.subpartitionCount / subpartitionCount
    const unknown =
      totals.regionCount === 0 ? 0 : (totals.byteCount * share * regionsLeft) / totals.regionCount
    // Whole, so that the sum over all entries comes back to zero.
    const estimate = cursor.knownLeftBytes + Math.ceil(unknown)
    this.#unreadEstimate += estimate - cursor.estimatedBytes
    cursor.estimatedBytes = estimate
  }

  #noteState(): void {
    this.#states.enter(this.#presentState())
  }

  #presentState(): ReadState {
    if (this.#cursors.size === 0 && this.#sender.isEmpty) return 'idle'
    if (!this.#options.output.isWritable) return 'socket'
    if (this.#sender.credit === 0) return 'credit'
    return this.#sender.isStarved ? 'memory' : 'disk'
  }
}
