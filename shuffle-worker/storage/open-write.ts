// One open write, from the first region to its commit or its end. It ties together what each step
// needs: the builder checks and indexes, the target stores, space and memory are reserved before and
// given back after, on every path. It ends exactly once: committed, or failed and deleted.
//
//   open --finish--> finishing --> committed
//     '-- wrong entry, no space, disk, abort, release --> failed --> deleted

import type { Clock } from '../../client/common/clock.ts'
import { assert } from '../../client/common/assert.ts'
import { isShuffleError, ShuffleError } from '../../client/common/errors.ts'
import type { AllocationId, PartitionKey } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { entryHeaderLength } from '../../client/protocol/entry.ts'
import type { MemoryLedger, Reservation } from '../memory/memory-ledger.ts'
import { isDiskFull } from './disk-operation.ts'
import type { HeldPartitions } from './held-partitions.ts'
import type { PartitionPlace } from './journal-records.ts'
import type { KeptIndex, KeptIndexes } from './kept-indexes.ts'
import { logRecordHeaderLength } from './log-record.ts'
import { PartitionBuilder } from './partition-builder.ts'
import {
  decodeIndexRow,
  indexRowLengthMax,
  regionLineLengthMax,
  tableLengthMax,
} from './partition-format.ts'
import type { PartitionFacts } from './partition-format.ts'
import { SpaceReservation } from './space-account.ts'
import type { StorageDirectory } from './storage-directory.ts'
import type {
  CommittedTotals,
  Durability,
  FilledBuffer,
  OpenWriteRequest,
  PartitionWriter,
  RegionStart,
  RegionTotals,
  WriteTotals,
} from './storage-types.ts'
import { RunTable } from './stored-region-index.ts'
import { WriteTarget } from './write-target.ts'

export interface OpenWriteSettings {
  readonly request: OpenWriteRequest
  readonly directory: StorageDirectory
  readonly ledger: MemoryLedger
  readonly held: HeldPartitions
  /** Where its index goes on to live in memory; nowhere when not given. */
  readonly keptIndexes?: KeptIndexes | undefined
  readonly clock: Clock
  readonly logger: Logger
  readonly durability: Durability
  readonly smallPartitionBytesMax: number
  /** Longest wait of `abort` for a disk that hangs; the deletion goes on behind it. */
  readonly abortTimeoutMs: number
  /** The journal has it: makes it readable and gives its totals. */
  readonly onCommitted: (committed: CommittedWrite) => CommittedTotals
  /** Failed or aborted, and deleted as far as the disk let it. */
  readonly onEnded: (failure: Error) => void
}

export interface CommittedWrite {
  readonly place: PartitionPlace
  readonly facts: PartitionFacts
  /** The receiver drops it when the partition is released. */
  readonly kept: KeptIndex | undefined
}

/** Others give index memory back when their regions finish. */
const indexMemoryTimeoutMs = 30_000

export class OpenWrite implements PartitionWriter {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  readonly directory: StorageDirectory
  readonly #settings: OpenWriteSettings
  readonly #builder: PartitionBuilder
  readonly #space: SpaceReservation
  readonly #target: WriteTarget
  #region: { readonly reservedBytes: number; readonly position: number } | undefined
  #rowMemory: Reservation | undefined
  readonly #kept: KeptIndex | undefined
  #failure: Error | undefined
  #isCommitted = false
  #isFinishing = false
  #deletion: Promise<void> | undefined

  constructor(settings: OpenWriteSettings) {
    const { request, directory, durability } = settings
    this.#settings = settings
    this.key = request.key
    this.allocation = request.allocation
    this.directory = directory
    const { key, allocation, subpartitionCount, bufferSizeBytes, codec } = request
    this.#kept = settings.keptIndexes?.of(key.jobId)
    this.#builder = new PartitionBuilder({
      key,
      allocation,
      subpartitionCount,
      bufferSizeBytes,
      codec,
    })
    this.#space = new SpaceReservation(directory.space)
    this.#target = new WriteTarget({
      directory,
      ledger: settings.ledger,
      held: settings.held,
      space: this.#space,
      jobId: request.key.jobId,
      smallBytesMax: settings.smallPartitionBytesMax,
      isLarge: (request.expectedBytes ?? 0) > settings.smallPartitionBytesMax,
      sync: durability === 'sync',
      onFailure: (error) => {
        this.#fail(error)
      },
    })
  }

  get failure(): Error | undefined {
    return this.#failure
  }

  /** The space of what every partition has at its end: NO_SPACE when not even that is there. */
  reserveEnd(): void {
    this.#reserve(tableLengthMax(this.#settings.request.subpartitionCount) + logRecordHeaderLength)
  }

  async startRegion(start: RegionStart): Promise<void> {
    await this.#step(async () => {
      this.#builder.startRegion(start)
      const { subpartitionCount } = this.#settings.request
      const entriesMax = Math.ceil(start.boundBytes / entryHeaderLength)
      const rowLengthMax = indexRowLengthMax(Math.min(subpartitionCount, entriesMax))
      const reservedBytes = start.boundBytes + rowLengthMax + regionLineLengthMax
      this.#reserve(reservedBytes)
      this.#region = { reservedBytes, position: this.#builder.length }
      await this.#reserveRow(rowLengthMax)
    })
  }

  async append(buffers: readonly FilledBuffer[]): Promise<void> {
    const recycle = () => {
      for (const { buffer } of buffers) buffer.recycle()
    }
    if (this.#failure !== undefined || this.#isFinishing) {
      recycle()
      throw this.#failure ?? endedError()
    }
    const parts: Uint8Array[] = []
    try {
      for (const { buffer, length } of buffers) {
        this.#builder.add(buffer.bytes, length)
        parts.push(buffer.bytes.subarray(0, length))
      }
    } catch (error) {
      recycle()
      throw this.#fail(error as Error)
    }
    await this.#step(() => this.#target.append(parts, recycle))
  }

  async finishRegion(totals: RegionTotals): Promise<void> {
    await this.#step(async () => {
      const region = this.#region
      const row = this.#builder.finishRegion(totals)
      assert(region !== undefined, 'a region that the builder knows is reserved')
      const unused =
        region.reservedBytes - (this.#builder.length - region.position) - regionLineLengthMax
      this.#space.giveBack(unused)
      this.#region = undefined
      const memory = this.#rowMemory
      this.#rowMemory = undefined
      await this.#target.append([row], () => memory?.release())
      this.#keepRow(row)
    })
  }

  async finish(totals: WriteTotals): Promise<CommittedTotals> {
    const { durability, onCommitted } = this.#settings
    return this.#step(async () => {
      const tail = this.#builder.finish(totals, durability)
      this.#isFinishing = true
      const place = await this.#target.finish(tail)
      const { journal } = this.directory
      if (this.#failure !== undefined && place.kind === 'segment') {
        // The record stays in its segment, where the next start would find it and take it for whole.
        await journal.release(place, this.key).catch(() => undefined)
      }
      this.#checkAlive()
      const facts = this.#factsOf(totals)
      await journal.append({ type: 'committed', place, facts }, { sync: durability === 'sync' })
      if (this.#failure !== undefined) {
        // Told to release while the journal was written: it must not come back after a restart.
        await journal.release(place, this.key).catch(() => undefined)
        await this.#deletion
        if (place.kind === 'file') journal.state.forgetFile(place.ordinal)
      }
      this.#checkAlive()
      this.#isCommitted = true
      this.#space.settle()
      if (place.kind === 'file') this.#kept?.keepRegions(this.#builder.regions)
      return onCommitted({ place, facts, kept: this.#kept })
    })
  }

  async abort(): Promise<void> {
    if (this.#isCommitted) return
    this.#fail(new ShuffleError('CANCELLED', 'the write was aborted', { fields: { ...this.key } }))
    await this.#deletionWithin(this.#settings.abortTimeoutMs)
  }

  /** Ends it from within: its key was released, its disk failed, the worker stops. */
  end(error: Error): void {
    if (!this.#isCommitted) this.#fail(error)
  }

  /** Runs one step of the write; whatever goes wrong in it ends the write. */
  async #step<T>(step: () => Promise<T>): Promise<T> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#isCommitted || this.#isFinishing) throw endedError()
    try {
      const result = await step()
      this.#checkAlive()
      return result
    } catch (error) {
      throw this.#fail(error as Error)
    }
  }

  #checkAlive(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  #factsOf(totals: WriteTotals): PartitionFacts {
    const { key, allocation, subpartitionCount, bufferSizeBytes, codec } = this.#settings.request
    return {
      key,
      allocation,
      subpartitionCount,
      bufferSizeBytes,
      codec,
      durability: this.#settings.durability,
      regionCount: this.#builder.regionCount,
      entryCount: this.#builder.entryCount,
      byteCount: this.#builder.byteCount,
      recordCount: totals.recordCount,
    }
  }

  #reserve(bytes: number): void {
    if (this.#space.tryReserve(bytes)) return
    const { directory } = this
    const availableBytes = directory.space.availableBytes
    throw new ShuffleError(
      'NO_SPACE',
      `${directory.path} has ${String(availableBytes)} bytes left and ${String(bytes)} are needed; free space or add a data directory`,
      { fields: { ...this.key, directory: directory.path, availableBytes, neededBytes: bytes } },
    )
  }

  /** Of what is small, the index is read with the data. */
  #keepRow(row: Uint8Array): void {
    const { key, subpartitionCount } = this.#settings.request
    const regionIndex = this.#builder.regionCount - 1
    const region = this.#builder.regions[regionIndex]
    if (this.#kept === undefined || region === undefined || !this.#target.hasFile) return
    const decoded = decodeIndexRow(row, { key, regionIndex, region, subpartitionCount })
    this.#kept.keepRow(new RunTable(regionIndex, decoded, region, 0))
  }

  async #reserveRow(bytes: number): Promise<void> {
    const memory = await this.#settings.ledger.reserve({
      purpose: 'index',
      bytes,
      jobId: this.key.jobId,
      timeoutMs: indexMemoryTimeoutMs,
    })
    if (this.#failure === undefined) this.#rowMemory = memory
    else memory.release()
  }

  #fail(error: Error): Error {
    if (this.#failure !== undefined) return this.#failure
    assert(!this.#isCommitted, 'a committed write does not fail')
    this.#failure = error
    if (isDiskFull(error)) this.directory.space.refused(this.#region?.reservedBytes ?? 1)
    if (isShuffleError(error, 'NO_SPACE')) this.directory.noteSpace()
    this.#rowMemory?.release()
    this.#rowMemory = undefined
    this.#kept?.drop()
    this.#target.fail(error)
    this.#deletion = this.#delete(error)
    return error
  }

  async #delete(failure: Error): Promise<void> {
    const { logger, onEnded } = this.#settings
    try {
      this.directory.space.freed(await this.#target.discard())
    } catch (error) {
      // The next start deletes it; until then its bytes count as used.
      logger.warn({ ...this.key, error }, 'the bytes of a failed write could not be deleted')
    }
    this.#space.settle()
    this.directory.noteSpace()
    onEnded(failure)
  }

  #deletionWithin(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#settings.clock.setTimer(timeoutMs, resolve)
      void this.#deletion?.then(() => {
        timer.cancel()
        resolve()
      })
    })
  }
}

function endedError(): ShuffleError {
  return new ShuffleError('PROTOCOL', 'the write has finished, nothing more may come')
}
