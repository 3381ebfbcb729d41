// One read channel: a consumer's view of this worker. It keeps the list of what is wanted, compact
// until an entry's turn comes, makes cursors for the schedulers of the disks when it has come, and says
// what became of each entry. Owned by the connection's handler; closed exactly once, on every path.

import { assert } from '../../client/common/assert.ts'
import type { Clock } from '../../client/common/clock.ts'
import type { JobId } from '../../client/common/ids.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import { TimeInState, type StateSums } from '../../client/common/time-in-state.ts'
import type { PartitionListEntry } from '../../client/protocol/partition-list.ts'
import type { LookupResult, MapPartition } from '../storage/storage-types.ts'
import { ChannelDisks, type DiskPart, type SweepScheduler } from './channel-disks.ts'
import { CreditSender, type SegmentPlace } from './credit-sender.ts'
import type { DiskList, SweepChannel } from './disk-list.ts'
import { CursorAllowance, type ListMemory } from './list-memory.ts'
import type { ListedEntry } from './listed-page.ts'
import { PartitionCursor } from './partition-cursor.ts'
import type { ReadMemory } from './read-memory.ts'
import { asReadError, refusalOf } from './read-refusals.ts'
import type { PartitionTotals, ReadingOutput } from './reading-output.ts'
import { bytesOfListed, bytesOfBegun } from './unread-bytes.ts'

/**
 * What a channel waits for. `disk-queue`: its turn in the sweep, nothing of it is under way; `disk`: a
 * read for it is.
 */
export const readStates = ['idle', 'disk-queue', 'disk', 'memory', 'credit', 'socket'] as const
export type ReadState = (typeof readStates)[number]

export interface ReadingViewOptions {
  readonly clock: Clock
  readonly memory: ReadMemory
  readonly listMemory: ListMemory
  readonly output: ReadingOutput
  readonly lookup: (key: PartitionListEntry['key']) => LookupResult
  readonly schedulerOf: (partition: MapPartition) => SweepScheduler
  readonly bufferSizeBytes: number
  readonly initialCredit: number
  readonly aheadBytesMax: number
  readonly flushAfterMs: number
  readonly flushLateAfterMs: number
  readonly entriesMax: number
  /** After ReadFinish has been sent: the channel is over. */
  readonly onFinished: () => void
  /** After it has given everything back, whatever ended it. */
  readonly onClosed: () => void
}

export class ReadingView implements SweepChannel {
  readonly #options: ReadingViewOptions
  readonly #sender: CreditSender
  readonly #disks: ChannelDisks
  readonly #allowance: CursorAllowance
  /** Entries that have been begun and are neither finished, failed nor dropped, by their index. */
  readonly #cursors = new Map<number, PartitionCursor>()
  readonly #states: TimeInState<ReadState>
  /** Of the first entry: a channel is one consumer's, and so one job's. */
  #jobId: JobId | undefined
  #entryCount = 0
  #pendingAnswers = 0
  #unreadEstimate = 0
  #hasEnded = false
  #isClosed = false

  constructor(options: ReadingViewOptions) {
    this.#options = options
    const { listMemory, schedulerOf } = options
    this.#allowance = new CursorAllowance(listMemory, () => this.#jobId)
    this.#disks = new ChannelDisks(this, { memory: listMemory, schedulerOf })
    this.#states = new TimeInState(options.clock, readStates)
    this.#sender = new CreditSender({
      clock: options.clock,
      memory: options.memory,
      output: options.output,
      bufferSizeBytes: options.bufferSizeBytes,
      initialCredit: options.initialCredit,
      aheadBytesMax: options.aheadBytesMax,
      flushAfterMs: options.flushAfterMs,
      flushLateAfterMs: options.flushLateAfterMs,
      jobId: () => this.#jobId,
      unreadBytes: () => this.#unreadBytes(),
      onFinish: (totals) => {
        this.#sendFinish(totals)
      },
      onFlushed: () => {
        this.#afterSending()
      },
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isStarved(): boolean {
    return this.#sender.isStarved
  }

  get isIdle(): boolean {
    return this.#sender.isEmpty && this.#sender.credit > 0
  }

  /** Has credit and something to send, and no memory to put it in. */
  get isShortOfMemory(): boolean {
    return !this.#isClosed && this.#presentState() === 'memory'
  }

  get credit(): number {
    return this.#isClosed ? 0 : this.#sender.credit
  }

  get heldBuffers(): number {
    return this.#sender.held
  }

  get openEntries(): number {
    return this.#cursors.size + this.#disks.listedCount
  }

  get jobId(): JobId | undefined {
    return this.#jobId
  }

  stateSums(): StateSums<ReadState> {
    return this.#states.sums()
  }

  /** One AddPartitions frame. BUSY, LIMIT_EXCEEDED and PROTOCOL end the channel. */
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
    const added = new Map<DiskPart, ListedEntry[]>()
    for (const entry of entries) {
      if (entry.index !== this.#entryCount) {
        throw new ShuffleError('PROTOCOL', 'the entries of a list are numbered from 0 on', {
          fields: { index: entry.index, expected: this.#entryCount },
        })
      }
      this.#entryCount += 1
      this.#jobId ??= entry.key.jobId
      const partition = this.#findPartition(entry)
      if (partition === undefined) continue
      const part = this.#disks.of(partition)
      const ofDisk = added.get(part) ?? []
      added.set(part, ofDisk)
      const { index, firstSubpartition, lastSubpartition, start } = entry
      ofDisk.push({ index, partition, firstSubpartition, lastSubpartition, start })
    }
    for (const [part, ofDisk] of added) this.#list(part, ofDisk)
    this.#sender.setDrained(this.openEntries === 0)
    this.#sender.announceBacklog()
    for (const { scheduler, list } of added.keys()) scheduler.wake(list)
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
    if (cursor !== undefined) this.#forget(cursor)
    else if (!this.#unlist(index)) return
    this.#afterEntry()
  }

  addCredit(count: number): void {
    if (this.#isClosed) return
    if (!this.#sender.addCredit(count)) {
      throw new ShuffleError('PROTOCOL', 'more credit than any consumer can mean', {
        fields: { credit: this.#sender.credit, added: count },
      })
    }
    this.#afterSending()
  }

  /** The connection takes data again. */
  onWritable(): void {
    if (this.#isClosed) return
    this.#sender.pump()
    this.#afterSending()
  }

  /** Gives everything back. Idempotent. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const cursor of [...this.#cursors.values()]) this.#forget(cursor)
    for (const { scheduler, list } of this.#disks.parts) {
      list.listed.clear((partition) => {
        scheduler.unlisted(list, partition)
      })
    }
    this.#sender.close()
    this.#states.enter('idle')
    this.#options.onClosed()
  }

  // --- as the schedulers see it ---

  roomBytes(list: DiskList): number {
    if (this.#isClosed) return 0
    return this.#disks.roomBytes(list, this.#sender.roomBytes, this.#options.bufferSizeBytes)
  }

  canBeginRun(list: DiskList): boolean {
    return this.#disks.canBeginRun(list)
  }

  beginRun(cursor: PartitionCursor): boolean {
    return this.#disks.beginRun(cursor)
  }

  endRun(cursor: PartitionCursor): void {
    this.#disks.endRun(cursor)
  }

  hasCursorRoom(): boolean {
    return this.#allowance.hasRoom()
  }

  beginEntry(list: DiskList, entry: ListedEntry): PartitionCursor {
    this.#allowance.take()
    const cursor = new PartitionCursor(entry)
    cursor.estimatedBytes = bytesOfListed(entry)
    this.#cursors.set(cursor.index, cursor)
    list.add(cursor)
    return cursor
  }

  afterPlan(): void {
    this.#noteState()
  }

  append(_cursor: PartitionCursor, place: SegmentPlace, bytes: Uint8Array): boolean {
    return this.#sender.append(place, bytes)
  }

  settle(cursor: PartitionCursor): void {
    if (this.#isClosed || cursor.isOver) return
    this.#refreshEstimate(cursor)
    if (!cursor.isComplete) return
    this.#forget(cursor)
    this.#answerFinish(cursor.index, cursor.entryTotal, cursor.byteTotal)
  }

  fail(cursor: PartitionCursor, error: unknown): void {
    if (this.#isClosed || cursor.isOver) return
    this.#forget(cursor)
    this.#options.output.sendPartitionFailed(cursor.index, asReadError(error, cursor.partition.key))
    this.#afterEntry()
  }

  failEntry(entry: ListedEntry, error: unknown): void {
    if (this.#isClosed) return
    this.#unreadEstimate -= bytesOfListed(entry)
    const { output } = this.#options
    output.sendPartitionFailed(entry.index, asReadError(error, entry.partition.key))
    this.#afterEntry()
  }

  afterDelivery(): void {
    if (this.#isClosed) return
    this.#afterEntry()
  }

  // --- within ---

  /** The partition to be read; undefined when the entry was answered at once. */
  #findPartition(entry: PartitionListEntry): MapPartition | undefined {
    const found = this.#options.lookup(entry.key)
    const refusal = refusalOf(entry, found, this.#options.bufferSizeBytes)
    if (found.state !== 'committed' || refusal !== undefined) {
      assert(refusal !== undefined, 'only a committed partition is read')
      this.#options.output.sendPartitionFailed(entry.index, refusal)
      return undefined
    }
    if (found.partition.totals.regionCount > 0) return found.partition
    // It has nothing to wait for.
    this.#answerFinish(entry.index, 0, 0)
    return undefined
  }

  #list({ list, scheduler }: DiskPart, entries: readonly ListedEntry[]): void {
    list.listed.add(entries, (entry) => {
      this.#unreadEstimate += bytesOfListed(entry)
      scheduler.listed(list, entry.partition)
    })
  }

  /** Whether the entry was listed and had not been begun. */
  #unlist(index: number): boolean {
    for (const { scheduler, list } of this.#disks.parts) {
      const entry = list.listed.takeIndex(index)
      if (entry === undefined) continue
      this.#unreadEstimate -= bytesOfListed(entry)
      scheduler.unlisted(list, entry.partition)
      return true
    }
    return false
  }

  #answerFinish(partition: number, entryCount: number, byteCount: number): void {
    this.#pendingAnswers += 1
    this.#sender.finishAfterSent({ partition, entryCount, byteCount })
  }

  #sendFinish(totals: PartitionTotals): void {
    this.#options.output.sendPartitionFinish(totals)
    this.#pendingAnswers -= 1
    this.#finishWhenDone()
  }

  /** Takes the cursor out of everything; what of it is under way is void. */
  #forget(cursor: PartitionCursor): void {
    assert(!cursor.isOver, 'an entry is over once')
    this.endRun(cursor)
    cursor.isOver = true
    this.#cursors.delete(cursor.index)
    this.#allowance.give()
    this.#unreadEstimate -= cursor.estimatedBytes
    const part = this.#disks.of(cursor.partition)
    part.list.remove(cursor)
    part.scheduler.remove(part.list, cursor)
  }

  /** Entries or bodies have changed: flushes what need not wait, sends, asks for more. */
  #afterEntry(): void {
    this.#sender.setDrained(this.openEntries === 0)
    this.#sender.pump()
    this.#afterSending()
  }

  /** The last body may have gone, which need not be that of a finished entry; and there may be room. */
  #afterSending(): void {
    this.#finishWhenDone()
    if (this.#isClosed) return
    this.#noteState()
    this.#disks.wake()
  }

  #finishWhenDone(): void {
    if (this.#isClosed || !this.#hasEnded || this.#pendingAnswers > 0) return
    if (this.openEntries > 0 || !this.#sender.isEmpty) return
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
    return this.openEntries === 0 ? 0 : Math.max(1, this.#unreadEstimate)
  }

  #refreshEstimate(cursor: PartitionCursor): void {
    const estimate = bytesOfBegun(cursor)
    this.#unreadEstimate += estimate - cursor.estimatedBytes
    cursor.estimatedBytes = estimate
  }

  #noteState(): void {
    this.#states.enter(this.#presentState())
  }

  #presentState(): ReadState {
    if (this.openEntries === 0 && this.#sender.isEmpty) return 'idle'
    if (!this.#options.output.isWritable) return 'socket'
    if (this.#sender.credit === 0) return 'credit'
    if (this.#sender.isStarved) return 'memory'
    return this.#disks.plannedBytes > 0 ? 'disk' : 'disk-queue'
  }
}
