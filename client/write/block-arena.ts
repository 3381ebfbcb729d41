// The memory of a sort buffer: pooled buffers cut into small blocks that are linked into chains. The
// links stand beside the blocks, four bytes each. Owned by one sort buffer.

import { assert } from '../common/assert.ts'
import type { PooledBuffer } from '../common/buffer.ts'

/** Smaller blocks would lose more to their links and to the walk than they save. */
const blockBytesMin = 64
/** Larger ones copy no faster. */
const blockBytesMax = 8192

/** Pooled buffers cut into blocks. A buffer is acquired when the blocks so far are all in use. */
export class BlockArena {
  readonly blockBytes: number
  readonly blockCountMax: number
  readonly #perSegment: number
  readonly #acquire: () => PooledBuffer
  readonly #buffers: PooledBuffer[] = []
  readonly #segments: Uint8Array[] = []
  readonly #next: Int32Array
  #freeHead = -1
  #made = 0
  #taken = 0

  constructor(options: {
    readonly segmentBytes: number
    readonly segmentCountMax: number
    readonly subpartitionCount: number
    readonly acquire: () => PooledBuffer
  }) {
    const { segmentBytes, segmentCountMax, subpartitionCount } = options
    // A quarter of the memory at most is lost in blocks that are not full.
    const wanted = (segmentBytes * segmentCountMax) / (4 * subpartitionCount)
    let blockBytes = blockBytesMin
    while (blockBytes * 2 <= Math.min(wanted, segmentBytes, blockBytesMax)) blockBytes *= 2
    this.blockBytes = Math.min(blockBytes, segmentBytes)
    this.#perSegment = Math.floor(segmentBytes / this.blockBytes)
    this.blockCountMax = this.#perSegment * segmentCountMax
    this.#next = new Int32Array(this.blockCountMax)
    this.#acquire = options.acquire
  }

  get segmentCount(): number {
    return this.#buffers.length
  }

  get freeCount(): number {
    return this.blockCountMax - this.#taken
  }

  segmentOf(block: number): Uint8Array {
    const segment = this.#segments[(block / this.#perSegment) | 0]
    assert(segment !== undefined, 'a block lies in a segment')
    return segment
  }

  positionOf(block: number): number {
    return (block % this.#perSegment) * this.blockBytes
  }

  nextOf(block: number): number {
    return this.#next[block] ?? -1
  }

  link(block: number, next: number): void {
    this.#next[block] = next
  }

  /** A free block, linked to nothing. The caller has looked at `freeCount`. */
  take(): number {
    this.#taken += 1
    let block = this.#freeHead
    if (block >= 0) {
      this.#freeHead = this.nextOf(block)
    } else {
      block = this.#made
      if (block === this.#segments.length * this.#perSegment) {
        const buffer = this.#acquire()
        this.#buffers.push(buffer)
        this.#segments.push(buffer.bytes)
      }
      this.#made += 1
    }
    this.#next[block] = -1
    return block
  }

  give(block: number): void {
    assert(this.#taken > 0, 'no more blocks come back than were taken')
    this.#next[block] = this.#freeHead
    this.#freeHead = block
    this.#taken -= 1
  }

  release(): void {
    for (const buffer of this.#buffers.splice(0)) buffer.recycle()
    this.#segments.length = 0
    this.#freeHead = -1
    this.#made = 0
    this.#taken = 0
  }
}
