// The sort buffer of a ResultPartition: bounded memory in which records are kept by subpartition
// until they leave as one data region. It sorts while it fills: memory is cut into small blocks, and
// each subpartition appends to a chain of blocks of its own, so that leaving in subpartition order
// is a walk along the chains, in pieces large enough to copy fast.
//
//   pooled buffers   | block | block | block | block | …
//   subpartition 0   head ──> block ──> block (tail, used so far)
//   subpartition 1   head ──> block
//
// Records stand in a chain as they will stand in the entries: length u32 BE, bytes. Blocks that a
// leaving region has given out are free at once for the region that is being filled, so two regions
// share the memory without being given halves of it. Owned by one ResultPartition.

import { assert } from '../common/assert.ts'
import type { BufferPool } from '../common/buffer-pool.ts'
import type { PooledBuffer } from '../common/buffer.ts'
import { BlockArena } from './block-arena.ts'

/** An event and its place: after so many bytes of its subpartition's chain. */
export interface SortedEvent {
  readonly afterBytes: number
  readonly code: number
  readonly bytes: Uint8Array
}

/** All that one subpartition has in a region. */
export interface SortedRun {
  readonly subpartition: number
  readonly byteCount: number
  readonly events: readonly SortedEvent[]
}

/** A full region on its way out. Runs and bytes are taken once, in order. */
export interface SortedRegion {
  readonly isBroadcast: boolean
  readonly recordCount: number
  /** The runs that are not empty, by subpartition; a broadcast region has one, of subpartition 0. */
  runs(): Iterable<SortedRun>
  /** Copies the next `length` bytes of the run's chain and frees blocks that it has read to the end. */
  copy(run: SortedRun, target: Uint8Array, length: number): void
  /** Frees what was not copied. Idempotent; the end of every region. */
  release(): void
}

export interface SortBufferOptions {
  readonly pool: BufferPool
  /** At most so many of the pool's buffers. */
  readonly bufferCountMax: number
  readonly subpartitionCount: number
}

/** What an event is counted with beside its bytes: it lies on the heap, not in the blocks. */
const eventOverheadBytes = 128
const framingBytes = 4
/** Below it a loop copies faster than the call of `set`. */
const shortCopyBytes = 24

export class SortBuffer {
  readonly #pool: BufferPool
  readonly #bufferCountMax: number
  readonly #subpartitionCount: number
  readonly #blocks: BlockArena
  readonly #eventBytesMax: number
  #filling: Chains
  #spare: Chains | undefined
  #leaving: LeavingRegion | undefined
  #eventBytes = 0
  #isBroadcast = false
  #closed = false

  constructor(options: SortBufferOptions) {
    this.#pool = options.pool
    this.#bufferCountMax = options.bufferCountMax
    this.#subpartitionCount = options.subpartitionCount
    this.#blocks = new BlockArena({
      segmentBytes: options.pool.bufferSizeBytes,
      segmentCountMax: options.bufferCountMax,
      subpartitionCount: options.subpartitionCount,
      acquire: () => this.#acquire(),
    })
    this.#eventBytesMax = (this.capacityBytes / 8) | 0
    this.#filling = new Chains(options.subpartitionCount)
  }

  /** What an empty sort buffer takes of one subpartition. */
  get capacityBytes(): number {
    return this.#blocks.blockCountMax * this.#blocks.blockBytes
  }

  get freeBytes(): number {
    return this.#blocks.freeCount * this.#blocks.blockBytes
  }

  /** Whether the region being filled has nothing in it. */
  get isEmpty(): boolean {
    return this.#filling.isEmpty
  }

  /** Of the region being filled; may be changed while it is empty. */
  get isBroadcast(): boolean {
    return this.#isBroadcast
  }

  set isBroadcast(value: boolean) {
    assert(this.isEmpty || value === this.#isBroadcast, 'a region is broadcast or not, as a whole')
    this.#isBroadcast = value
  }

  /** Adds a record; false, and nothing done, when it does not fit now. */
  append(subpartition: number, record: Uint8Array): boolean {
    const chains = this.#filling
    const length = record.length
    const tail = chains.tails[subpartition] ?? -1
    const used = chains.used[subpartition] ?? 0
    const blocks = this.#blocks
    if (tail >= 0 && used + framingBytes + length <= blocks.blockBytes) {
      const segment = blocks.segmentOf(tail)
      const position = blocks.positionOf(tail) + used
      writeLength(segment, position, length)
      copyShort(record, segment, position + framingBytes)
      chains.used[subpartition] = used + framingBytes + length
    } else if (!this.#appendAcrossBlocks(subpartition, record)) {
      return false
    }
    chains.byteCounts[subpartition] = (chains.byteCounts[subpartition] ?? 0) + framingBytes + length
    chains.recordCount += 1
    return true
  }

  /** Adds an event after what its subpartition has so far; false when it does not fit now. */
  appendEvent(subpartition: number, code: number, bytes: Uint8Array): boolean {
    const counted = bytes.length + eventOverheadBytes
    if (this.#eventBytes > 0 && this.#eventBytes + counted > this.#eventBytesMax) return false
    this.#eventBytes += counted
    const events = this.#filling.events.get(subpartition) ?? []
    events.push({
      afterBytes: this.#filling.byteCounts[subpartition] ?? 0,
      code,
      bytes: new Uint8Array(bytes),
    })
    this.#filling.events.set(subpartition, events)
    return true
  }

  /** All that was added, as a region; the next one starts empty. One region leaves at a time. */
  takeRegion(): SortedRegion {
    assert(this.#leaving === undefined, 'one region leaves at a time')
    assert(!this.isEmpty, 'an empty region is never sent')
    const region = new LeavingRegion(this.#filling, this.#blocks, this.#isBroadcast, (chains) => {
      chains.clear()
      this.#spare = chains
      this.#leaving = undefined
      if (this.#closed) this.#blocks.release()
    })
    this.#leaving = region
    this.#filling = this.#spare ?? new Chains(this.#subpartitionCount)
    this.#spare = undefined
    this.#eventBytes = 0
    this.#isBroadcast = false
    return region
  }

  /** Gives the memory back, at once or when the leaving region has been released. Idempotent. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#leaving === undefined) this.#blocks.release()
  }

  #appendAcrossBlocks(subpartition: number, record: Uint8Array): boolean {
    const chains = this.#filling
    const blocks = this.#blocks
    const need = framingBytes + record.length
    const hasTail = (chains.tails[subpartition] ?? -1) >= 0
    const room = hasTail ? blocks.blockBytes - (chains.used[subpartition] ?? 0) : 0
    if (need > room + this.freeBytes) return false
    const framing = new Uint8Array(framingBytes)
    writeLength(framing, 0, record.length)
    this.#write(subpartition, framing)
    this.#write(subpartition, record)
    return true
  }

  #write(subpartition: number, source: Uint8Array): void {
    const chains = this.#filling
    const blocks = this.#blocks
    for (let done = 0; done < source.length;) {
      let tail = chains.tails[subpartition] ?? -1
      let used = chains.used[subpartition] ?? 0
      if (tail < 0 || used === blocks.blockBytes) {
        const next = blocks.take()
        if (tail < 0) chains.heads[subpartition] = next
        else blocks.link(tail, next)
        chains.tails[subpartition] = next
        tail = next
        used = 0
      }
      const length = Math.min(source.length - done, blocks.blockBytes - used)
      const part = length === source.length ? source : source.subarray(done, done + length)
      blocks.segmentOf(tail).set(part, blocks.positionOf(tail) + used)
      chains.used[subpartition] = used + length
      done += length
    }
  }

  #acquire(): PooledBuffer {
    assert(this.#blocks.segmentCount < this.#bufferCountMax, 'the sort buffer keeps to its share')
    const buffer = this.#pool.acquire()
    assert(buffer !== undefined, 'the share of the sort buffer is its own')
    return buffer
  }
}

/** The chains of one region; made twice in the life of a sort buffer and used in turn. */
class Chains {
  readonly heads: Int32Array
  readonly tails: Int32Array
  /** Bytes used of the tail block. */
  readonly used: Int32Array
  readonly byteCounts: Float64Array
  readonly events = new Map<number, SortedEvent[]>()
  recordCount = 0

  constructor(subpartitionCount: number) {
    this.heads = new Int32Array(subpartitionCount).fill(-1)
    this.tails = new Int32Array(subpartitionCount).fill(-1)
    this.used = new Int32Array(subpartitionCount)
    this.byteCounts = new Float64Array(subpartitionCount)
  }

  get isEmpty(): boolean {
    return this.recordCount === 0 && this.events.size === 0
  }

  clear(): void {
    this.heads.fill(-1)
    this.tails.fill(-1)
    this.used.fill(0)
    this.byteCounts.fill(0)
    this.events.clear()
    this.recordCount = 0
  }
}

class LeavingRegion implements SortedRegion {
  readonly isBroadcast: boolean
  readonly recordCount: number
  readonly #chains: Chains
  readonly #blocks: BlockArena
  readonly #onReleased: (chains: Chains) => void
  #subpartition = -1
  #block = -1
  #position = 0
  #released = false

  constructor(
    chains: Chains,
    blocks: BlockArena,
    isBroadcast: boolean,
    onReleased: (chains: Chains) => void,
  ) {
    this.#chains = chains
    this.#blocks = blocks
    this.isBroadcast = isBroadcast
    this.recordCount = chains.recordCount
    this.#onReleased = onReleased
  }

  *runs(): Generator<SortedRun, void, undefined> {
    const { byteCounts, events } = this.#chains
    for (let subpartition = 0; subpartition < byteCounts.length; subpartition += 1) {
      const byteCount = byteCounts[subpartition] ?? 0
      const ofRun = events.get(subpartition)
      if (byteCount > 0 || ofRun !== undefined) {
        yield { subpartition, byteCount, events: ofRun ?? [] }
      }
    }
  }

  copy(run: SortedRun, target: Uint8Array, length: number): void {
    this.#enter(run.subpartition)
    const { blockBytes } = this.#blocks
    for (let done = 0; done < length;) {
      if (this.#position === blockBytes) this.#nextBlock()
      const block = this.#block
      assert(block >= 0, 'no more is copied than the chain holds')
      const part = Math.min(length - done, blockBytes - this.#position)
      const start = this.#blocks.positionOf(block) + this.#position
      target.set(this.#blocks.segmentOf(block).subarray(start, start + part), done)
      this.#position += part
      done += part
    }
    if (this.#position === blockBytes) this.#nextBlock()
  }

  release(): void {
    if (this.#released) return
    this.#released = true
    if (this.#subpartition >= 0) this.#freeFrom(this.#block)
    const { heads } = this.#chains
    for (let next = this.#subpartition + 1; next < heads.length; next += 1) {
      this.#freeFrom(heads[next] ?? -1)
    }
    this.#onReleased(this.#chains)
  }

  #enter(subpartition: number): void {
    if (subpartition === this.#subpartition) return
    assert(!this.#released, 'a released region is not read')
    assert(subpartition > this.#subpartition, 'runs are copied in order')
    const { heads } = this.#chains
    if (this.#subpartition >= 0) this.#freeFrom(this.#block)
    for (let skipped = this.#subpartition + 1; skipped < subpartition; skipped += 1) {
      this.#freeFrom(heads[skipped] ?? -1)
    }
    this.#subpartition = subpartition
    this.#block = heads[subpartition] ?? -1
    this.#position = 0
  }

  #nextBlock(): void {
    const next = this.#blocks.nextOf(this.#block)
    this.#blocks.give(this.#block)
    this.#block = next
    this.#position = 0
  }

  #freeFrom(first: number): void {
    for (let block = first; block >= 0;) {
      const next = this.#blocks.nextOf(block)
      this.#blocks.give(block)
      block = next
    }
  }
}

function writeLength(target: Uint8Array, position: number, length: number): void {
  target[position] = length >>> 24
  target[position + 1] = length >>> 16
  target[position + 2] = length >>> 8
  target[position + 3] = length
}

function copyShort(source: Uint8Array, target: Uint8Array, position: number): void {
  const length = source.length
  if (length > shortCopyBytes) {
    target.set(source, position)
    return
  }
  for (let index = 0; index < length; index += 1) target[position + index] = source[index] ?? 0
}
