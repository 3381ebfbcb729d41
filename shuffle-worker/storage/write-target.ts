// Where the bytes of one open write go: held in memory while the partition is small and there is
// room for it, else to a file of its own. The order of the bytes is that of the calls; the caller
// sees no difference. Owned by one open write.
//
//   hold: chunk, chunk, …  --finish--> one record in the shared log
//        '--too large, or the oldest when memory is short--> file --finish--> rename

import { assert } from '../../client/common/assert.ts'
import type { JobId } from '../../client/common/ids.ts'
import type { MemoryLedger, Reservation } from '../memory/memory-ledger.ts'
import type { HeldPartition, HeldPartitions } from './held-partitions.ts'
import type { PartitionPlace } from './journal-records.ts'
import { logRecordHeaderLength } from './log-record.ts'
import { PartitionFileWriter } from './partition-file-writer.ts'
import type { SpaceReservation } from './space-account.ts'
import type { StorageDirectory } from './storage-directory.ts'

export interface WriteTargetSettings {
  readonly directory: StorageDirectory
  readonly ledger: MemoryLedger
  readonly held: HeldPartitions
  readonly space: SpaceReservation
  readonly jobId: JobId
  readonly smallBytesMax: number
  /** Known to be too large to be held. */
  readonly isLarge: boolean
  readonly sync: boolean
  /** A write that nobody awaits (a spill) failed. */
  readonly onFailure: (error: Error) => void
}

interface Chunk {
  readonly bytes: Uint8Array
  readonly reservation: Reservation
}

export class WriteTarget implements HeldPartition {
  readonly #settings: WriteTargetSettings
  #chunks: Chunk[] = []
  #heldBytes = 0
  #file: PartitionFileWriter | undefined
  #record: { readonly ordinal: number } | undefined
  #finishing: Promise<PartitionPlace> | undefined
  #failure: Error | undefined

  constructor(settings: WriteTargetSettings) {
    this.#settings = settings
  }

  /** The parts stay untouched until `release`, which is called exactly once. */
  append(parts: readonly Uint8Array[], release: () => void): Promise<void> {
    if (this.#failure === undefined && this.#file === undefined) {
      if (this.#hold(parts)) {
        release()
        return Promise.resolve()
      }
      this.spill()
    }
    if (this.#file === undefined) {
      release()
      return Promise.reject(this.#failure ?? new Error('the write has ended'))
    }
    return this.#file.append(parts, release)
  }

  /** Whether it has left memory for a file of its own. */
  get hasFile(): boolean {
    return this.#file !== undefined
  }

  /** Moves what is held to a file, where all that follows goes too. */
  spill(): void {
    const { directory, space, sync, onFailure } = this.#settings
    if (this.#file !== undefined || this.#failure !== undefined) return
    this.#file = new PartitionFileWriter({
      disk: directory.disk,
      layout: directory.layout,
      ordinal: directory.nextOrdinal(),
      space,
      sync,
      directMemory: directory.directMemory,
    })
    const chunks = this.#takeChunks()
    if (chunks.length === 0) return
    const parts = chunks.map((chunk) => chunk.bytes)
    this.#file
      .append(parts, () => {
        releaseAll(chunks)
      })
      .catch(onFailure)
  }

  /** Writes the end and makes it whole: the place is committed but for the journal. */
  finish(tail: Uint8Array): Promise<PartitionPlace> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const isHeld = this.#file === undefined && !this.#settings.isLarge
    this.#finishing = isHeld ? this.#finishRecord(tail) : this.#finishFile(tail)
    return this.#finishing
  }

  /** Refuses what is not at the disk yet and lets go of what is held. */
  fail(error: Error): void {
    this.#failure ??= error
    releaseAll(this.#takeChunks())
    this.#file?.fail(error)
  }

  /** Deletes what was written; after {@link fail}. Resolves to the bytes that are free again. */
  async discard(): Promise<number> {
    assert(this.#failure !== undefined, 'only a failed write is deleted')
    // Not beside it: a rename under way would win.
    await this.#finishing?.catch(() => undefined)
    if (this.#record !== undefined) {
      // Its bytes go with their segment.
      await this.#settings.directory.log.released(this.#record.ordinal)
      return 0
    }
    await this.#file?.discard()
    return this.#settings.space.writtenBytes
  }

  #hold(parts: readonly Uint8Array[]): boolean {
    const { ledger, held, jobId, smallBytesMax, isLarge } = this.#settings
    const bytes = sumOfLengths(parts)
    if (isLarge || this.#heldBytes + bytes > smallBytesMax) return false
    const reservation = ledger.tryReserve({ purpose: 'write', bytes, jobId })
    if (reservation === undefined) return false
    if (!held.hold(this, bytes)) {
      reservation.release()
      return false
    }
    // Copied, so that a hundred bytes don't hold a whole buffer.
    this.#chunks.push({ bytes: Buffer.concat(parts), reservation })
    this.#heldBytes += bytes
    return true
  }

  async #finishRecord(tail: Uint8Array): Promise<PartitionPlace> {
    const { directory, space } = this.#settings
    const chunks = this.#takeChunks()
    const parts = [...chunks.map((chunk) => chunk.bytes), tail]
    const byteLength = sumOfLengths(parts)
    const place = await directory.log.append(parts, () => {
      releaseAll(chunks)
    })
    this.#record = place
    space.written(byteLength + logRecordHeaderLength)
    return { kind: 'segment', ...place, byteLength }
  }

  async #finishFile(tail: Uint8Array): Promise<PartitionPlace> {
    this.spill()
    const file = this.#file
    assert(file !== undefined, 'a spilled write has a file')
    await file.append([tail], () => undefined)
    await file.commit()
    const byteLength = this.#settings.space.writtenBytes
    return { kind: 'file', ordinal: file.ordinal, offset: 0, byteLength }
  }

  #takeChunks(): Chunk[] {
    this.#settings.held.leave(this)
    const chunks = this.#chunks
    this.#chunks = []
    return chunks
  }
}

function releaseAll(chunks: readonly Chunk[]): void {
  for (const chunk of chunks) chunk.reservation.release()
}

function sumOfLengths(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0)
}
