// How the read part of the ledger is divided: half for the blocks that disks read into, a quarter
// for data ahead of its consumer's credit, and so a quarter at least that credit in hand can always
// get. One per worker. A block is given back when its disk has nothing to read.

import { directBlockBytes } from '../../client/common/aligned-memory.ts'
import { assert } from '../../client/common/assert.ts'
import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { JobId } from '../../client/common/ids.ts'

/** What of the memory ledger is needed here. */
export interface ReadMemorySource {
  readonly bufferSizeBytes: number
  partBytes(purpose: 'read'): number
  freeCount(purpose: 'read'): number
  tryAcquire(request: {
    readonly purpose: 'read'
    readonly count: number
    readonly jobId?: JobId
  }): PooledBuffer[] | undefined
  tryAcquireBlock(request: {
    readonly purpose: 'read'
    readonly sizeBytesMin: number
    readonly sizeBytesMax: number
  }): PooledBuffer | undefined
}

const blockBytesMax = 1024 * 1024

export class ReadMemory {
  readonly bufferSizeBytes: number
  readonly aheadBuffersMax: number
  /**
   * Of any block: a carried entry, the blocks of the disk that a read's ends cut, and something to read.
   */
  readonly blockBytesMin: number
  readonly #source: ReadMemorySource
  readonly #blockBytesMax: number
  #blockBytes = 0
  #aheadBuffers = 0

  constructor(source: ReadMemorySource) {
    this.#source = source
    this.bufferSizeBytes = source.bufferSizeBytes
    this.blockBytesMin =
      source.bufferSizeBytes + Math.max(source.bufferSizeBytes, 4 * directBlockBytes)
    const part = source.partBytes('read')
    this.#blockBytesMax = Math.floor(part / 2)
    this.aheadBuffersMax = Math.floor(part / 4 / source.bufferSizeBytes)
    assert(this.#blockBytesMax >= this.blockBytesMin, 'the read part holds a block')
  }

  get aheadBuffers(): number {
    return this.#aheadBuffers
  }

  get blockBytes(): number {
    return this.#blockBytes
  }

  /** Buffers held beyond credit, over all channels, changed by `delta`. */
  changeAhead(delta: number): void {
    this.#aheadBuffers += delta
    assert(this.#aheadBuffers >= 0, 'no fewer than zero buffers are ahead of credit')
  }

  get canReadAhead(): boolean {
    return this.#aheadBuffers < this.aheadBuffersMax
  }

  /** Whether there is so much that a buffer may be held until it is full. */
  get isPlentiful(): boolean {
    const freeBytes = this.#source.freeCount('read') * this.bufferSizeBytes
    return freeBytes >= this.#source.partBytes('read') / 4
  }

  /** Whether a buffer could be had now. */
  get hasFree(): boolean {
    return this.#source.freeCount('read') > 0
  }

  /** Counted as memory of the job, where it is known. */
  tryAcquireBuffer(jobId: JobId | undefined): PooledBuffer | undefined {
    const ofJob = jobId === undefined ? {} : { jobId }
    return this.#source.tryAcquire({ purpose: 'read', count: 1, ...ofJob })?.[0]
  }

  /** Largest block for one of `diskCount` disks with so many reads in flight. */
  blockBytesFor(disk: { readonly diskCount: number; readonly readsInFlight: number }): number {
    const share = this.#blockBytesMax / disk.diskCount / disk.readsInFlight
    const bytes = Math.floor(share / this.bufferSizeBytes) * this.bufferSizeBytes
    return Math.min(blockBytesMax, Math.max(this.blockBytesMin, bytes))
  }

  /**
   * Undefined when there is none now. One buffer is left to send from: what is read and finds none is
   * read again, without end.
   */
  tryAcquireBlock(sizeBytesMax: number): PooledBuffer | undefined {
    const freeBytes = (this.#source.freeCount('read') - 1) * this.bufferSizeBytes
    const left = Math.min(this.#blockBytesMax - this.#blockBytes, freeBytes)
    const sizeBytesMin = this.blockBytesMin
    if (left < sizeBytesMin) return undefined
    const block = this.#source.tryAcquireBlock({
      purpose: 'read',
      sizeBytesMin,
      sizeBytesMax: Math.min(sizeBytesMax, left),
    })
    if (block === undefined) return undefined
    const size = block.bytes.length
    this.#blockBytes += size
    return {
      bytes: block.bytes,
      recycle: () => {
        this.#blockBytes -= size
        block.recycle()
      },
    }
  }
}
