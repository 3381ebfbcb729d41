// The open region of one write: its credit, what has arrived and waits for the disk, and its place
// among the regions of the disk. Owned by the writing view. After `close` nothing is held but what
// the disk is writing at that moment, which goes back when it is done.

import { assert } from '../../client/common/assert.ts'
import type { PooledBuffer } from '../../client/common/buffer.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { Waiter, WaiterRegister } from '../../client/common/waiters.ts'
import type { FilledBuffer, PartitionWriter } from '../storage/storage-types.ts'
import type { RegionCredit } from './credit-granter.ts'
import type { RegionTurn } from './region-turns.ts'
import type { DiskWrites } from './writing-view.ts'

export interface WritingRegionOptions {
  readonly waiters: WaiterRegister
  readonly writes: DiskWrites
  readonly writer: PartitionWriter
  readonly regionIndex: number
  readonly boundBytes: number
  readonly bufferSizeBytes: number
  /** Longest time without progress. */
  readonly timeoutMs: number
  readonly onGrant: (count: number) => void
  /** A batch goes to the disk. */
  readonly onWriting: () => void
  readonly onFailed: (error: unknown) => void
}

/** Bodies are mostly well filled: buffers that a region takes over those that its bytes would fill. */
const likelyFill = 1.25

export class WritingRegion {
  readonly #options: WritingRegionOptions
  readonly #turn: RegionTurn | undefined
  #credit: RegionCredit | undefined
  #pending: FilledBuffer[] = []
  #pendingBytes = 0
  #leftBytes: number
  #isWriting = false
  #isClosed = false
  #isCreditClosed = false
  #flushed: (() => void) | undefined
  #progress: Waiter<undefined> | undefined
  #writtenCountSeen = 0

  constructor(options: WritingRegionOptions) {
    this.#options = options
    this.#leftBytes = options.boundBytes
    this.#turn = options.writes.turns?.enter()
  }

  get regionIndex(): number {
    return this.#options.regionIndex
  }

  /** Takes its place in the order of arrival; grants may come at once. */
  enter(): void {
    this.#watch()
    const { writes, writer, onGrant } = this.#options
    this.#credit = writes.granter.enter({
      jobId: writer.key.jobId,
      neededBuffers: this.#neededBuffers(),
      likelyBuffers: Math.ceil((likelyFill * this.#leftBytes) / this.#options.bufferSizeBytes) + 1,
      onGrant: (count) => {
        this.#progress?.progress()
        onGrant(count)
      },
    })
  }

  takeBuffer(): PooledBuffer | undefined {
    return this.#isClosed || this.#flushed !== undefined ? undefined : this.#credit?.take()
  }

  /** Takes the buffer. */
  add(filled: FilledBuffer): void {
    assert(!this.#isClosed, 'a closed region takes no data')
    this.#pending.push(filled)
    this.#pendingBytes += filled.length
    this.#leftBytes -= filled.length
    this.#progress?.progress()
    if (this.#leftBytes < 0) {
      this.#options.onFailed(
        new ShuffleError('PROTOCOL', 'a region is larger than its start said', {
          fields: { ...this.#options.writer.key, boundBytes: this.#options.boundBytes },
        }),
      )
      return
    }
    this.#credit?.setNeeded(this.#neededBuffers())
    this.#flushIfDue()
  }

  /** The client has sent everything: unused credit goes back; resolves when all is written. */
  finish(): Promise<void> {
    this.#closeCredit()
    return new Promise((resolve) => {
      this.#flushed = resolve
      this.#flushIfDue()
    })
  }

  /** Gives everything back; also of a region that is complete. Idempotent. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#progress?.resolve(undefined)
    this.#closeCredit()
    for (const { buffer } of this.#pending.splice(0)) buffer.recycle()
    this.#turn?.leave()
    this.#flushed?.()
  }

  #closeCredit(): void {
    if (this.#isCreditClosed) return
    this.#isCreditClosed = true
    this.#credit?.close()
  }

  /** Bodies are packed, so two that follow each other hold more than one buffer. */
  #neededBuffers(): number {
    return Math.ceil((2 * this.#leftBytes) / this.#options.bufferSizeBytes)
  }

  #flushIfDue(): void {
    if (this.#isWriting || this.#isClosed) return
    if (this.#pending.length === 0) {
      this.#flushed?.()
      return
    }
    const isFull = this.#pendingBytes >= this.#options.writes.batchBytes
    const isAtEnd = this.#flushed !== undefined || this.#leftBytes === 0
    if (isFull || isAtEnd || this.#credit?.unspent === 0) {
      this.#write().catch(this.#options.onFailed)
    }
  }

  async #write(): Promise<void> {
    const batch = this.#pending
    const batchBytes = this.#pendingBytes
    this.#pending = []
    this.#pendingBytes = 0
    this.#isWriting = true
    this.#options.onWriting()
    try {
      await this.#append(batch)
    } finally {
      this.#isWriting = false
      this.#turn?.wrote(batchBytes)
    }
    this.#progress?.progress()
    this.#flushIfDue()
  }

  async #append(batch: FilledBuffer[]): Promise<void> {
    if (this.#turn !== undefined && !(await this.#turn.acquire())) {
      for (const { buffer } of batch) buffer.recycle()
      return
    }
    await this.#options.writer.append(batch)
  }

  /** Fails the write when nothing moves; waiting for memory counts others' progress as its own. */
  #watch(): void {
    const { waiters, writer, timeoutMs, regionIndex, writes } = this.#options
    this.#writtenCountSeen = writes.granter.writtenCount
    this.#progress = waiters.wait<undefined>({
      name: 'progress of an open region',
      timeoutMs,
      timeoutCode: 'WRITE_INTERRUPTED',
      fields: { ...writer.key, regionIndex },
    })
    this.#progress.promise.catch((error: unknown) => {
      if (this.#isClosed) return
      const isQueued = this.#credit?.isOpen === false
      if (isQueued && writes.granter.writtenCount !== this.#writtenCountSeen) this.#watch()
      else this.#options.onFailed(error)
    })
  }
}
