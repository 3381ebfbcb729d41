// Takes writes: opens their views and divides the write memory among the disks. One per worker.

import type { Clock, Timer } from '../../client/common/clock.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { JobId } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { addStateSums } from '../../client/common/time-in-state.ts'
import type { WaiterRegister } from '../../client/common/waiters.ts'
import type { MessageFields } from '../../client/protocol/messages.ts'
import type { MemoryLedger } from '../memory/memory-ledger.ts'
import type { DataStore } from '../storage/data-store.ts'
import type { StorageDirectoryView } from '../storage/storage-types.ts'
import { CreditGranter } from './credit-granter.ts'
import { RegionTurns } from './region-turns.ts'
import { type DiskWrites, writeStates, type WritingOutput, WritingView } from './writing-view.ts'

export interface WriteServiceOptions {
  readonly bufferSizeBytes: number
  readonly openWritesMax: number
  readonly openTimeoutMs: number
  readonly regionTimeoutMs: number
  readonly commitTimeoutMs: number
}

export interface WriteServiceSettings {
  readonly clock: Clock
  readonly waiters: WaiterRegister
  readonly logger: Logger
  readonly store: Pick<DataStore, 'openWrite'> & {
    readonly directories: readonly StorageDirectoryView[]
  }
  readonly ledger: Pick<
    MemoryLedger,
    'tryAcquire' | 'tryReserve' | 'partBytes' | 'onFree' | 'bufferSizeBytes'
  >
  readonly options: WriteServiceOptions
  /** A write has ended: how long it was in each state. */
  readonly onTimes: (jobId: JobId, sums: Readonly<Record<string, number>>) => void
}

/** 4 bytes each in an index row, 8 in the totals: a megabyte of totals while a write commits. */
export const subpartitionCountMax = 131_072

const mebibyte = 1024 * 1024
/** SSD: a region opens with 8 buffers, grows to 2 MiB, and is written by the mebibyte. */
const ssd = { minimumBuffers: 8, targetBytes: 2 * mebibyte, batchBytes: mebibyte }
/** HDD: pieces of 4 MiB, one region at a time; up to four fill meanwhile. */
const hdd = { minimumBytes: 4 * mebibyte, targetBytes: 8 * mebibyte, batchBytes: 4 * mebibyte }
const hddOpenRegionsMax = 4
/** What the first grants leave room for: so many clients that are slow to use theirs stop nobody. */
const regionsAtOnceMin = 64
const turnIdleMs = 1000
/** A suspect disk is looked at again so often. */
const suspendedRetryMs = 1000

export class WriteService {
  readonly #settings: WriteServiceSettings
  readonly #disks = new Map<StorageDirectoryView, DiskWrites>()
  readonly #views = new Set<WritingView>()
  readonly #closedSums = zeroSums()
  /** Why no write is opened. */
  #refusal: string | undefined
  readonly #onIdle: (() => void)[] = []
  readonly #stopListening: () => void
  #suspendedTimer: Timer | undefined

  constructor(settings: WriteServiceSettings) {
    this.#settings = settings
    for (const directory of settings.store.directories) {
      this.#disks.set(directory, this.#writesOf(directory))
    }
    this.#stopListening = settings.ledger.onFree('write', () => {
      for (const { granter } of this.#disks.values()) if (granter.isStarved) granter.distribute()
    })
    this.#watchSuspended()
  }

  get openWrites(): number {
    return this.#views.size
  }

  /** Credits granted and not yet spent. */
  get creditOutstanding(): number {
    return this.#sum((disk) => disk.granter.unspentBuffers)
  }

  get heldBuffers(): number {
    return this.#sum((disk) => disk.granter.heldBuffers)
  }

  get waitingRegions(): number {
    return this.#sum((disk) => disk.granter.waitingRegions)
  }

  /** Of them, those that wait for memory. */
  get regionsShortOfMemory(): number {
    return this.#sum((disk) => disk.granter.regionsShortOfMemory)
  }

  /** Milliseconds of all writes, ended and open, by state. */
  stateSums(): Readonly<Record<(typeof writeStates)[number], number>> {
    const sums = { ...this.#closedSums }
    for (const view of this.#views) addStateSums(sums, view.stateSums())
    return sums
  }

  /** The turns of a disk with heads; the sweep of its reads takes part in them. */
  turnsOf(directory: StorageDirectoryView): RegionTurns | undefined {
    return this.#disks.get(directory)?.turns
  }

  /** A new view; throws what the client has to be told instead. */
  open(
    fields: MessageFields<'OpenWrite'>,
    output: WritingOutput,
    onEnded: (error: ShuffleError | undefined) => void,
  ): WritingView {
    this.#admit(fields)
    const { clock, waiters, logger, store, options, ledger } = this.#settings
    const view = new WritingView({
      clock,
      waiters,
      logger,
      output,
      key: fields.key,
      bufferSizeBytes: fields.bufferSizeBytes,
      subpartitionCount: fields.subpartitionCount,
      openWriter: () =>
        store.openWrite({
          key: fields.key,
          allocation: fields.allocation,
          subpartitionCount: fields.subpartitionCount,
          bufferSizeBytes: fields.bufferSizeBytes,
          codec: fields.codec,
          ...(fields.expectedBytes === undefined ? {} : { expectedBytes: fields.expectedBytes }),
        }),
      writesOf: (directory) => this.#disks.get(directory) ?? this.#addDisk(directory),
      openTimeoutMs: options.openTimeoutMs,
      regionTimeoutMs: options.regionTimeoutMs,
      commitTimeoutMs: options.commitTimeoutMs,
      reservePages: (bytes) =>
        ledger.tryReserve({ purpose: 'control', bytes, jobId: fields.key.jobId }),
      onEnded: (ended, error) => {
        this.#forget(ended)
        onEnded(error)
      },
    })
    this.#views.add(view)
    return view
  }

  /** From now on no write is opened; those that are open go on. */
  startDraining(reason: string): void {
    this.#refusal ??= reason
  }

  /** Writes are opened again. */
  endDraining(): void {
    this.#refusal = undefined
  }

  /** Ends every write that is open with WORKER_DRAINING: its time is over. */
  interrupt(): void {
    const error = new ShuffleError(
      'WORKER_DRAINING',
      'the worker drains, and the write was not finished within its time (drain-timeout)',
    )
    for (const view of [...this.#views]) view.fail(error)
  }

  /** Resolves when no write is open. */
  idle(): Promise<void> {
    if (this.#views.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  #admit(fields: MessageFields<'OpenWrite'>): void {
    const { options } = this.#settings
    const { key } = fields
    if (this.#refusal !== undefined) {
      throw new ShuffleError(
        'WORKER_DRAINING',
        `the worker takes no new writes: ${this.#refusal}; another attempt is placed elsewhere`,
        { fields: { ...key } },
      )
    }
    if (this.#views.size >= options.openWritesMax) {
      throw new ShuffleError(
        'BUSY',
        `${String(options.openWritesMax)} writes are open, as many as open-writes-max allows`,
        { fields: { ...key, openWritesMax: options.openWritesMax } },
      )
    }
    if (fields.bufferSizeBytes > options.bufferSizeBytes || fields.bufferSizeBytes < 1024) {
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        `the buffer size must be from 1024 bytes to the worker's ${String(options.bufferSizeBytes)} (buffer-size)`,
        { fields: { ...key, bufferSizeBytes: fields.bufferSizeBytes } },
      )
    }
    const { subpartitionCount } = fields
    if (subpartitionCount < 1 || subpartitionCount > subpartitionCountMax) {
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        `a partition has 1 to ${String(subpartitionCountMax)} subpartitions`,
        { fields: { ...key, subpartitionCount } },
      )
    }
    if (fields.firstSubpartition !== 0 || fields.lastSubpartition !== subpartitionCount - 1) {
      throw new ShuffleError('PROTOCOL', 'a map partition holds all subpartitions', {
        fields: { ...key },
      })
    }
  }

  #forget(view: WritingView): void {
    if (!this.#views.delete(view)) return
    const sums = view.stateSums()
    addStateSums(this.#closedSums, sums)
    this.#settings.onTimes(view.key.jobId, sums)
    if (this.#views.size > 0) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #addDisk(directory: StorageDirectoryView): DiskWrites {
    const writes = this.#writesOf(directory)
    this.#disks.set(directory, writes)
    return writes
  }

  #writesOf(directory: StorageDirectoryView): DiskWrites {
    const { ledger, store, clock } = this.#settings
    // An eighth of the part is for small partitions that wait for their commit.
    const part = Math.floor((ledger.partBytes('write') * 7) / 8 / ledger.bufferSizeBytes)
    const shareBuffers = Math.max(1, Math.floor(part / Math.max(1, store.directories.length)))
    const isHdd = directory.kind === 'hdd'
    const wanted = isHdd ? Math.ceil(hdd.minimumBytes / ledger.bufferSizeBytes) : ssd.minimumBuffers
    const minimumBuffers = Math.max(1, Math.min(wanted, Math.floor(shareBuffers / 2)))
    const kind = isHdd ? hdd : ssd
    const targetBuffers = Math.max(
      minimumBuffers,
      Math.ceil(kind.targetBytes / ledger.bufferSizeBytes),
    )
    return {
      granter: new CreditGranter({
        source: {
          tryAcquire: (request) => ledger.tryAcquire({ purpose: 'write', ...request }),
        },
        shareBuffers,
        minimumBuffers,
        firstGrantBuffers: Math.max(
          minimumBuffers,
          Math.min(
            Math.ceil(kind.batchBytes / ledger.bufferSizeBytes),
            Math.floor(shareBuffers / regionsAtOnceMin),
          ),
        ),
        targetBuffers,
        openRegionsMax: isHdd ? hddOpenRegionsMax : shareBuffers,
        isSuspended: () => directory.health !== 'healthy',
      }),
      turns: isHdd ? new RegionTurns({ clock, idleMs: turnIdleMs }) : undefined,
      batchBytes: kind.batchBytes,
    }
  }

  /** A disk that was suspect may be well again: its waiting regions get their grants. */
  #watchSuspended(): void {
    this.#suspendedTimer = this.#settings.clock.setTimer(suspendedRetryMs, () => {
      for (const { granter } of this.#disks.values()) granter.distribute()
      this.#watchSuspended()
    })
  }

  /** Ends every write that is open. */
  close(): void {
    this.#refusal ??= 'it stops'
    this.#suspendedTimer?.cancel()
    this.#stopListening()
    const error = new ShuffleError('WRITE_INTERRUPTED', 'the worker stops')
    for (const view of [...this.#views]) view.fail(error)
  }

  #sum(of: (disk: DiskWrites) => number): number {
    let sum = 0
    for (const disk of this.#disks.values()) sum += of(disk)
    return sum
  }
}

function zeroSums(): Record<(typeof writeStates)[number], number> {
  return Object.fromEntries(writeStates.map((state) => [state, 0])) as Record<
    (typeof writeStates)[number],
    number
  >
}
