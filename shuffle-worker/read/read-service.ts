// Takes reads: opens their views, and runs the carousel of each disk. One per worker.

import type { Clock } from '../../client/common/clock.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { JobId } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { addStateSums } from '../../client/common/time-in-state.ts'
import type { MessageFields } from '../../client/protocol/messages.ts'
import type { MemoryLedger } from '../memory/memory-ledger.ts'
import type { DataStore } from '../storage/data-store.ts'
import type { StorageDirectoryView } from '../storage/storage-types.ts'
import { creditMax } from './credit-sender.ts'
import { IoScheduler, type SweepTurns } from './io-scheduler.ts'
import { ListMemory } from './list-memory.ts'
import { ReadMemory } from './read-memory.ts'
import type { ReadingOutput } from './reading-output.ts'
import { ReadingView, readStates } from './reading-view.ts'

export interface ReadServiceOptions {
  readonly entriesPerChannelMax: number
  readonly readAheadBytes: number
  readonly openFilesMax: number
}

export interface ReadServiceSettings {
  readonly clock: Clock
  readonly logger: Logger
  readonly store: Pick<DataStore, 'lookup'> & {
    readonly directories: readonly StorageDirectoryView[]
  }
  readonly ledger: Pick<
    MemoryLedger,
    | 'tryAcquire'
    | 'tryAcquireBlock'
    | 'tryReserve'
    | 'partBytes'
    | 'freeCount'
    | 'onFree'
    | 'bufferSizeBytes'
  >
  readonly options: ReadServiceOptions
  /** Where reads take turns with writes: disks with heads. */
  readonly turnsOf: (directory: StorageDirectoryView) => SweepTurns | undefined
  readonly onDiskRead: (bytes: number) => void
  /** A read has ended: how long it was in each state. */
  readonly onTimes: (jobId: JobId, sums: Readonly<Record<string, number>>) => void
}

const kibibyte = 1024
/** SSD: many reads in flight, and only gaps that cost less than another read. */
const ssd = { readsInFlightMax: 8, gapBytesMax: 32 * kibibyte }
/** HDD: a gap of a seek's worth is read through; the second read keeps the disk busy. */
const hdd = { readsInFlightMax: 2, gapBytesMax: 1024 * kibibyte }
/** How old an unfilled body gets: where memory is short, and where there is plenty. */
const flushAfterMs = 20
const flushLateAfterMs = 100

export class ReadService {
  readonly #settings: ReadServiceSettings
  readonly #memory: ReadMemory
  readonly #listMemory: ListMemory
  readonly #schedulers = new Map<StorageDirectoryView, IoScheduler>()
  readonly #views = new Set<ReadingView>()
  readonly #closedSums = zeroSums()
  readonly #onIdle: (() => void)[] = []
  readonly #stopListening: () => void

  constructor(settings: ReadServiceSettings) {
    this.#settings = settings
    this.#memory = new ReadMemory(settings.ledger)
    this.#listMemory = new ListMemory(settings.ledger)
    for (const directory of settings.store.directories) {
      this.#schedulers.set(directory, this.#newScheduler(directory))
    }
    this.#stopListening = settings.ledger.onFree('read', () => {
      for (const scheduler of this.#schedulers.values()) scheduler.retry()
    })
  }

  get openReads(): number {
    return this.#views.size
  }

  get creditOutstanding(): number {
    let sum = 0
    for (const view of this.#views) sum += view.credit
    return sum
  }

  /** Channels, and disks that have something to read, that lack memory for it. */
  get shortOfMemory(): number {
    let sum = 0
    for (const view of this.#views) if (view.isShortOfMemory) sum += 1
    for (const scheduler of this.#schedulers.values()) if (scheduler.isShortOfMemory) sum += 1
    return sum
  }

  get heldBuffers(): number {
    let sum = 0
    for (const view of this.#views) sum += view.heldBuffers
    return sum
  }

  get aheadBuffers(): number {
    return this.#memory.aheadBuffers
  }

  /** Listed partitions that are neither finished nor failed. */
  get openEntries(): number {
    let sum = 0
    for (const view of this.#views) sum += view.openEntries
    return sum
  }

  get openFiles(): number {
    let sum = 0
    for (const scheduler of this.#schedulers.values()) sum += scheduler.openFileCount
    return sum
  }

  /** Milliseconds of all reads, ended and open, by state. */
  stateSums(): Readonly<Record<(typeof readStates)[number], number>> {
    const sums = { ...this.#closedSums }
    for (const view of this.#views) addStateSums(sums, view.stateSums())
    return sums
  }

  /** A new view; throws what the client has to be told instead. */
  open(
    fields: MessageFields<'OpenRead'>,
    output: ReadingOutput,
    onFinished: () => void,
  ): ReadingView {
    const { ledger, clock, store, options } = this.#settings
    const { bufferSizeBytes, initialCredit } = fields
    if (bufferSizeBytes > ledger.bufferSizeBytes || bufferSizeBytes < kibibyte) {
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        `the buffer size must be from 1024 bytes to the worker's ${String(ledger.bufferSizeBytes)} (buffer-size)`,
        { fields: { bufferSizeBytes } },
      )
    }
    if (initialCredit > creditMax) {
      throw new ShuffleError('PROTOCOL', 'more credit than any consumer can mean', {
        fields: { initialCredit },
      })
    }
    const view: ReadingView = new ReadingView({
      clock,
      memory: this.#memory,
      listMemory: this.#listMemory,
      output,
      lookup: (key) => store.lookup(key),
      schedulerOf: (partition) => this.#schedulerOf(partition.directory),
      bufferSizeBytes,
      initialCredit,
      aheadBytesMax: options.readAheadBytes,
      flushAfterMs,
      flushLateAfterMs,
      entriesMax: options.entriesPerChannelMax,
      onFinished,
      onClosed: () => {
        this.#forget(view)
      },
    })
    this.#views.add(view)
    return view
  }

  /** Resolves when no read is open. */
  idle(): Promise<void> {
    if (this.#views.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  /** Ends every read that is open, and the sweeps. */
  async close(): Promise<void> {
    this.#stopListening()
    for (const view of [...this.#views]) view.close()
    await Promise.all([...this.#schedulers.values()].map((scheduler) => scheduler.close()))
  }

  #forget(view: ReadingView): void {
    if (!this.#views.delete(view)) return
    const sums = view.stateSums()
    addStateSums(this.#closedSums, sums)
    if (view.jobId !== undefined) this.#settings.onTimes(view.jobId, sums)
    if (this.#views.size > 0) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #schedulerOf(directory: StorageDirectoryView): IoScheduler {
    let scheduler = this.#schedulers.get(directory)
    if (scheduler === undefined) {
      scheduler = this.#newScheduler(directory)
      this.#schedulers.set(directory, scheduler)
    }
    return scheduler
  }

  #newScheduler(directory: StorageDirectoryView): IoScheduler {
    const { clock, logger, store, ledger, options, turnsOf, onDiskRead } = this.#settings
    const diskCount = Math.max(1, store.directories.length)
    const kind = directory.kind === 'hdd' ? hdd : ssd
    const readsInFlightMax = Math.max(1, Math.min(kind.readsInFlightMax, directory.limits.reads))
    return new IoScheduler({
      clock,
      logger: logger.child({ directory: directory.path }),
      memory: this.#memory,
      blockBytes: this.#memory.blockBytesFor({
        diskCount,
        readsInFlight: readsInFlightMax,
      }),
      readsInFlightMax,
      gapBytesMax: kind.gapBytesMax,
      openFilesMax: Math.max(2, Math.floor(options.openFilesMax / diskCount)),
      // One a disk, in a small part of the index memory: the present one must never wait for it.
      indexAheadBytesMax: ledger.partBytes('index') / 16 / diskCount,
      turns: turnsOf(directory),
      onRead: onDiskRead,
    })
  }
}

function zeroSums(): Record<(typeof readStates)[number], number> {
  return Object.fromEntries(readStates.map((state) => [state, 0])) as Record<
    (typeof readStates)[number],
    number
  >
}
