// How much of a disk new regions may still reserve. Counted in this process at every reservation,
// write and deletion, and corrected by the file system's word at each sample: what was counted since
// the sample began is kept, so that a write under way is never forgotten.
//
//   available = free at the last sample - floor for others - written since - reserved and unwritten

import { assert } from '../../client/common/assert.ts'
import type { SpaceStatus } from '../../client/common/disk.ts'

/**
 * A region for which even twice this would not do says nothing about the disk: it is refused, and the
 * disk stays open to others. The size of a region is what a client says.
 */
const refusedBytesMax = 512 * 1024 * 1024

export class SpaceAccount {
  readonly #minReservedBytes: number
  #totalBytes = 0
  #sampledFreeBytes = 0
  /** Written less deleted since the last sample. */
  #consumedBytes = 0
  #reservedBytes = 0
  #driftBytes = 0
  #fileSystem: string | undefined
  /** What was refused last; closed until there is twice as much, so that it doesn't flutter. */
  #refusedBytes = 0

  constructor(options: { readonly minReservedBytes: number }) {
    this.#minReservedBytes = options.minReservedBytes
  }

  get totalBytes(): number {
    return this.#totalBytes
  }

  /** Name of the file system, where it can be known. */
  get fileSystem(): string | undefined {
    return this.#fileSystem
  }

  get availableBytes(): number {
    return Math.max(0, this.#availableBytes())
  }

  get reservedBytes(): number {
    return this.#reservedBytes
  }

  /** How far the last sample was from what had been counted; other users of the disk show here. */
  get driftBytes(): number {
    return this.#driftBytes
  }

  get isFull(): boolean {
    return this.#refusedBytes > 0
  }

  /** Call before asking the file system; give the answer to what it returns. */
  beginSample(): (space: SpaceStatus) => void {
    const countedBefore = this.#consumedBytes
    return (space) => {
      const expected = this.#sampledFreeBytes - countedBefore
      this.#driftBytes = this.#totalBytes === 0 ? 0 : space.freeBytes - expected
      this.#sampledFreeBytes = space.freeBytes
      this.#totalBytes = space.totalBytes
      this.#fileSystem = space.fileSystem
      this.#consumedBytes -= countedBefore
      this.#reopen()
    }
  }

  /** False when the space isn't there; the disk counts as full then, unless much is left. */
  tryReserve(bytes: number): boolean {
    const availableBytes = this.#availableBytes()
    if (bytes > availableBytes) {
      const refusedBytes = Math.min(bytes, this.#refusedBytesMax())
      if (availableBytes < 2 * refusedBytes) this.#refuse(refusedBytes)
      return false
    }
    this.#reservedBytes += bytes
    return true
  }

  /**
   * The file system said that it has no room: believe it, whatever was counted, until it says otherwise
   * at a sample or twice as much was freed.
   */
  refused(bytes: number): void {
    this.#sampledFreeBytes = Math.min(this.#sampledFreeBytes, this.#consumedBytes)
    this.#refuse(bytes)
  }

  /** Closed until there is twice as much. */
  #refuse(bytes: number): void {
    this.#refusedBytes = Math.max(this.#refusedBytes, Math.min(bytes, this.#refusedBytesMax()), 1)
  }

  giveBack(bytes: number): void {
    this.#reservedBytes -= bytes
    assert(this.#reservedBytes >= 0, 'no more space is given back than was reserved')
    this.#reopen()
  }

  /** Reserved bytes became a file's. */
  written(bytes: number): void {
    this.#reservedBytes -= bytes
    assert(this.#reservedBytes >= 0, 'no more space is written than was reserved')
    this.#consumedBytes += bytes
  }

  freed(bytes: number): void {
    this.#consumedBytes -= bytes
    this.#reopen()
  }

  /** Twice this is never more than half of the disk: else one that is empty again would stay closed. */
  #refusedBytesMax(): number {
    const ofDisk = Math.max(1, Math.floor((this.#totalBytes - this.#minReservedBytes) / 4))
    return this.#totalBytes === 0 ? refusedBytesMax : Math.min(refusedBytesMax, ofDisk)
  }

  #availableBytes(): number {
    return (
      this.#sampledFreeBytes - this.#minReservedBytes - this.#consumedBytes - this.#reservedBytes
    )
  }

  #reopen(): void {
    if (this.#availableBytes() >= 2 * this.#refusedBytes) this.#refusedBytes = 0
  }
}

/** The space of one open write: reserved piece by piece, settled as a whole. */
export class SpaceReservation {
  readonly #account: SpaceAccount
  #reservedBytes = 0
  #writtenBytes = 0

  constructor(account: SpaceAccount) {
    this.#account = account
  }

  get reservedBytes(): number {
    return this.#reservedBytes
  }

  get writtenBytes(): number {
    return this.#writtenBytes
  }

  tryReserve(bytes: number): boolean {
    if (!this.#account.tryReserve(bytes)) return false
    this.#reservedBytes += bytes
    return true
  }

  written(bytes: number): void {
    this.#account.written(bytes)
    this.#reservedBytes -= bytes
    this.#writtenBytes += bytes
  }

  giveBack(bytes: number): void {
    this.#account.giveBack(bytes)
    this.#reservedBytes -= bytes
  }

  /** Gives back what was not written; the bytes written stay on the disk. Idempotent. */
  settle(): void {
    this.giveBack(this.#reservedBytes)
  }
}
