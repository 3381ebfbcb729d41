// Equal buffers cut from slabs of 1 MiB. The ledger owns it and has decided before every call that
// the request may be met; this file only knows where the memory is. Single buffers are taken from
// the low slabs and blocks from the high ones, so that long-lived singles leave whole slabs free
// for large reads. A slab is allocated (and its pages touched) when it is first needed.
//
//   slab 0  [bbbbbbbb]   singles fill upwards ->
//   slab 1  [bb..b...]
//   slab 2  (not allocated)
//   slab 3  [BBBBBB..]   <- blocks fill downwards

import { alignedMemory } from '../../client/common/aligned-memory.ts'
import { assert } from '../../client/common/assert.ts'

/** Also the largest block: a large read is at most one slab. */
export const slabSizeBytes = 1024 * 1024

/** A piece of one slab; freed exactly once, by whoever it was given to. */
export interface SlabPiece {
  /** A Buffer, so that who reads numbers from it needs no other view. */
  readonly bytes: Buffer
  readonly slab: Slab
  readonly first: number
  readonly count: number
}

interface Slab {
  readonly index: number
  readonly memory: Uint8Array
  readonly taken: Uint8Array
  /** Views of single buffers, made when they are first taken: making one costs as much as a short copy. */
  readonly singles: (SlabPiece | undefined)[]
  freeCount: number
  quietSinceMs: number
}

export class SlabPool {
  readonly #bufferSizeBytes: number
  readonly #buffersPerSlab: number
  readonly #slabs: (Slab | undefined)[]
  #allocated = 0
  /** All slabs below it are there and have nothing free. */
  #lowestFree = 0

  constructor(options: { readonly bufferSizeBytes: number; readonly capacityBytes: number }) {
    this.#bufferSizeBytes = options.bufferSizeBytes
    this.#buffersPerSlab = slabSizeBytes / options.bufferSizeBytes
    const slabCount = Math.ceil(options.capacityBytes / slabSizeBytes)
    this.#slabs = Array.from({ length: slabCount }, () => undefined)
  }

  get allocatedBytes(): number {
    return this.#allocated * slabSizeBytes
  }

  /** `count` single buffers; the ledger has made sure that so many are free. */
  takeSingles(count: number): SlabPiece[] {
    const pieces: SlabPiece[] = []
    for (let index = this.#lowestFree; pieces.length < count; index += 1) {
      assert(index < this.#slabs.length, 'the ledger never promises a buffer that no slab has')
      const slab = this.#slabs[index] ?? this.#allocate(index)
      let at = -1
      while (slab.freeCount > 0 && pieces.length < count) {
        at = slab.taken.indexOf(0, at + 1)
        pieces.push(this.#takeSingle(slab, at))
      }
      if (slab.freeCount > 0) break
      this.#lowestFree = index + 1
    }
    return pieces
  }

  /** The longest run of free buffers from `countMin` to `countMax` in one slab, if there is any. */
  takeBlock(countMin: number, countMax: number): SlabPiece | undefined {
    let best: { slab: Slab; first: number; count: number } | undefined
    for (let index = this.#slabs.length - 1; index >= 0; index -= 1) {
      const slab = this.#slabs[index]
      const bestCount = best?.count ?? 0
      if (slab === undefined || slab.freeCount <= bestCount) continue
      const run = longestFreeRun(slab.taken, countMax)
      if (run.count === countMax) return this.#take(slab, run.first, countMax)
      if (run.count > bestCount) best = { slab, ...run }
    }
    const fresh = this.#slabs.lastIndexOf(undefined)
    if (fresh >= 0) return this.#take(this.#allocate(fresh), 0, countMax)
    if (best === undefined || best.count < countMin) return undefined
    return this.#take(best.slab, best.first, best.count)
  }

  give(piece: SlabPiece, nowMs: number): void {
    piece.slab.taken.fill(0, piece.first, piece.first + piece.count)
    piece.slab.freeCount += piece.count
    if (piece.slab.index < this.#lowestFree) this.#lowestFree = piece.slab.index
    if (piece.slab.freeCount === this.#buffersPerSlab) piece.slab.quietSinceMs = nowMs
  }

  /** Drops the slabs that have been wholly free since `beforeMs`; says whether free ones remain. */
  giveBackQuiet(beforeMs: number): boolean {
    let freeRemain = false
    for (const [index, slab] of this.#slabs.entries()) {
      if (slab?.freeCount !== this.#buffersPerSlab) continue
      if (slab.quietSinceMs > beforeMs) {
        freeRemain = true
        continue
      }
      this.#slabs[index] = undefined
      this.#allocated -= 1
    }
    return freeRemain
  }

  #allocate(index: number): Slab {
    const slab: Slab = {
      index,
      memory: alignedMemory(slabSizeBytes),
      taken: new Uint8Array(this.#buffersPerSlab),
      singles: [],
      freeCount: this.#buffersPerSlab,
      quietSinceMs: 0,
    }
    this.#slabs[index] = slab
    this.#allocated += 1
    return slab
  }

  #takeSingle(slab: Slab, at: number): SlabPiece {
    slab.taken[at] = 1
    slab.freeCount -= 1
    return (slab.singles[at] ??= this.#pieceOf(slab, at, 1))
  }

  #take(slab: Slab, first: number, count: number): SlabPiece {
    slab.taken.fill(1, first, first + count)
    slab.freeCount -= count
    return this.#pieceOf(slab, first, count)
  }

  #pieceOf(slab: Slab, first: number, count: number): SlabPiece {
    const { buffer, byteOffset } = slab.memory
    const begin = byteOffset + first * this.#bufferSizeBytes
    const bytes = Buffer.from(buffer, begin, count * this.#bufferSizeBytes)
    return { bytes, slab, first, count }
  }
}

function longestFreeRun(taken: Uint8Array, countMax: number): { first: number; count: number } {
  let best = { first: 0, count: 0 }
  let count = 0
  for (let at = 0; at < taken.length && best.count < countMax; at += 1) {
    count = taken[at] === 0 ? count + 1 : 0
    if (count > best.count) best = { first: at - count + 1, count }
  }
  return best
}
