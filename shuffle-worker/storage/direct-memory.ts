// Aligned memory of one data directory with direct IO, beside the pool: what writes are gathered in,
// and what small reads pass through. A piece is taken by a call that holds a slot of the disk's queue
// and given back when that call has really ended, so there are never more pieces than slots, and who
// needs one never waits. Allocated when first needed, kept; owned by the storage directory.

import { alignedMemory, alignUp } from '../../client/common/aligned-memory.ts'
import { assert } from '../../client/common/assert.ts'

export interface DirectMemoryOptions {
  /** Of one gathered write. */
  readonly writeBytes: number
  /** Slots of the lanes. */
  readonly writesMax: number
  readonly readsMax: number
}

/** An index row of a thousand runs; larger ones pass in pieces. */
const readBytes = 64 * 1024

export class DirectMemory {
  readonly writeBytes: number
  readonly #writes: Pieces
  readonly #reads: Pieces

  constructor(options: DirectMemoryOptions) {
    this.writeBytes = alignUp(options.writeBytes)
    this.#writes = new Pieces(this.writeBytes, options.writesMax)
    this.#reads = new Pieces(readBytes, options.readsMax)
  }

  takeForWrite(): Uint8Array {
    return this.#writes.take()
  }

  giveFromWrite(piece: Uint8Array): void {
    this.#writes.give(piece)
  }

  takeForRead(): Uint8Array {
    return this.#reads.take()
  }

  giveFromRead(piece: Uint8Array): void {
    this.#reads.give(piece)
  }

  /** Bytes allocated. */
  get bytes(): number {
    return this.#writes.bytes + this.#reads.bytes
  }
}

class Pieces {
  readonly #pieceBytes: number
  readonly #countMax: number
  readonly #free: Uint8Array[] = []
  #count = 0

  constructor(pieceBytes: number, countMax: number) {
    this.#pieceBytes = pieceBytes
    this.#countMax = countMax
  }

  get bytes(): number {
    return this.#count * this.#pieceBytes
  }

  take(): Uint8Array {
    const free = this.#free.pop()
    if (free !== undefined) return free
    assert(this.#count < this.#countMax, 'no more pieces are out than the disk has slots')
    this.#count += 1
    return alignedMemory(this.#pieceBytes)
  }

  give(piece: Uint8Array): void {
    this.#free.push(piece)
    assert(this.#free.length <= this.#count, 'a piece is given back once')
  }
}
