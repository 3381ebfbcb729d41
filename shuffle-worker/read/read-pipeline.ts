// The reads of one disk that are under way, in the order they were issued, whatever the order in
// which the disk completes them. Each read lands in a block and is handed on from there; an entry
// that a block's end cuts is carried to the front of the next one:
//
//   block of read k      [ entry  |  entry  |  entry  | ent ]
//                                                       ╰──╮ carried, at most one buffer
//   block of read k + 1  [ headroom . . . . . . . . . . ent | ry | entry | … ]
//
// Owned by the disk's scheduler.

import { directBlockBytes } from '../../client/common/aligned-memory.ts'
import { assert } from '../../client/common/assert.ts'
import type { PooledBuffer } from '../../client/common/buffer.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { DiskRead, FileImage, PartitionReader } from '../storage/storage-types.ts'
import type { CursorSlice, FileWindow } from './partition-cursor.ts'
import type { ReadMemory } from './read-memory.ts'
import type { PlannedRead, Slice } from './read-plan.ts'

export interface PipelineRead {
  readonly plan: PlannedRead<CursorSlice>
  readonly reader: PartitionReader
}

/** Everything between two places of a file, whoever wants what of it. */
export interface WholeRead<R extends Slice> {
  readonly read: (target: Uint8Array, position: number) => DiskRead
  /** What to read, at most so much; undefined for nothing. */
  readonly choose: (bytesMax: number) => R | undefined
  /** The memory is given back when it has settled. */
  readonly use: (range: R, image: FileImage) => Promise<void>
}

export interface ReadPipelineOptions {
  readonly memory: ReadMemory
  readonly blockBytes: number
  readonly readsInFlightMax: number
  /** Called after each read has been handed on and its block is free, with its bytes. */
  readonly onCompleted: (bytes: number) => void
  readonly nowMs: () => number
  /** Calls back when the event loop has been round once. */
  readonly afterTurn: (callback: () => void) => void
  /** Whatever goes wrong beside the read itself. */
  readonly onFault: (error: unknown) => void
}

/**
 * After so many slices the event loop goes round before the next read is handed on: reads that end
 * together would hold it up together, and with them all that other channels want of it.
 */
const slicesPerTurn = 256

export class ReadPipeline {
  readonly #options: ReadPipelineOptions
  readonly #freeBlocks: PooledBuffer[] = []
  readonly #carry: Buffer
  #carryStart = 0
  #carryEnd = 0
  #carryOf: PartitionReader | undefined
  #blocks = 0
  #inFlight = 0
  #slicesInTurn = 0
  #tail: Promise<void> = Promise.resolve()
  #isClosed = false
  #taker: ((block: PooledBuffer | undefined) => void) | undefined

  constructor(options: ReadPipelineOptions) {
    this.#options = options
    this.#carry = Buffer.alloc(options.memory.bufferSizeBytes)
  }

  /** Reads issued and not yet handed on. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Resolves when all reads issued up to now have been handed on. */
  get settled(): Promise<void> {
    return this.#tail
  }

  /** Bytes that one read can take with the blocks there are, wherever it begins. */
  get readBytesMax(): number {
    const { blockBytes, memory } = this.#options
    return blockBytes - memory.bufferSizeBytes - 2 * directBlockBytes
  }

  /** What a read takes more than that if it does not go on where the one before was cut. */
  get carryBytesMax(): number {
    return this.#options.memory.bufferSizeBytes
  }

  /**
   * Issues one planned read, in pieces where a block is smaller. Resolves when all of it is under
   * way, not when it is done; one call at a time.
   */
  async read(read: PipelineRead): Promise<void> {
    let { start } = read.plan
    let { isContinuation } = read.plan
    while (start < read.plan.end) {
      const block = await this.#takeBlock()
      if (block === undefined) return
      const room = this.#roomOf(block, read.reader) - this.#headroomOf({ isContinuation })
      const end = Math.min(read.plan.end, start + room)
      const slices = read.plan.slices.filter((slice) => slice.start < end && slice.end > start)
      const piece = { ...read, plan: { start, end, slices, isContinuation } }
      // Nobody wants it any more, and the reader may be closed with the last who did.
      if (slices.every(({ cursor }) => cursor.isOver)) {
        retireSlices(piece)
        this.#returnBlock(block)
      } else this.#issue(piece, block)
      isContinuation = true
      start = end
    }
  }

  /**
   * One read of neighbours, chosen to fit the block there is, when all reads before it have been
   * handed on; resolves when `use` is done with what was read, and rejects when it couldn't be.
   */
  readWhole<R extends Slice>(read: WholeRead<R>): Promise<void> {
    const done = this.#tail.then(() => this.#readWhole(read))
    // The caller is told of a failure.
    this.#tail = done.catch(() => undefined)
    return done
  }

  /** A read is due, and there is no memory to read into. */
  get isShortOfMemory(): boolean {
    return this.#taker !== undefined && this.#blocks === 0
  }

  /** Memory may be there now. */
  retry(): void {
    const taker = this.#taker
    if (taker === undefined) return
    const block = this.#tryTakeBlock()
    if (block === undefined) return
    this.#taker = undefined
    taker(block)
  }

  /** The disk has nothing to read: blocks go back. */
  releaseBlocks(): void {
    for (const block of this.#freeBlocks.splice(0)) this.#giveBack(block)
  }

  /** No block is kept from now on. Idempotent. */
  close(): void {
    this.#isClosed = true
    this.releaseBlocks()
    this.#taker?.(undefined)
    this.#taker = undefined
  }

  /** A block as soon as there is one; undefined when the pipeline was closed. */
  #takeBlock(): Promise<PooledBuffer | undefined> {
    assert(this.#taker === undefined, 'one sweep takes blocks')
    const block = this.#tryTakeBlock()
    if (block !== undefined || this.#isClosed) return Promise.resolve(block)
    return new Promise((resolve) => {
      this.#taker = resolve
    })
  }

  #returnBlock(block: PooledBuffer): void {
    if (this.#isClosed) this.#giveBack(block)
    else this.#freeBlocks.push(block)
    this.retry()
  }

  /** Starts one read into `block`. */
  #issue(read: PipelineRead, block: PooledBuffer): void {
    const headroom = this.#headroomOf(read.plan)
    const { lead, length } = this.#spanOf(read)
    assert(headroom + length <= block.bytes.length, 'a read fits its block')
    const target = block.bytes.subarray(headroom, headroom + length)
    const { start, end } = read.plan
    const diskRead = read.reader.read(target, start - lead, lead + end - start)
    this.#inFlight += 1
    const handedOn = this.#tail
      .then(() => this.#turnFor(read.plan.slices.length))
      .then(() => this.#handOn(read, block, diskRead))
      .catch(this.#options.onFault)
    this.#tail = handedOn
    // The memory is the disk's until it has ended, also when the read has failed for us.
    Promise.all([handedOn, diskRead.ended])
      .then(() => {
        this.#endRead(block, length)
      })
      .catch(this.#options.onFault)
  }

  /** The turn in which so many slices are delivered: this one, or the next. */
  #turnFor(sliceCount: number): Promise<void> | undefined {
    const isFull = this.#slicesInTurn > 0 && this.#slicesInTurn + sliceCount > slicesPerTurn
    this.#slicesInTurn += sliceCount
    if (!isFull) return undefined
    return new Promise((resolve) => {
      this.#options.afterTurn(() => {
        this.#slicesInTurn = sliceCount
        resolve()
      })
    })
  }

  async #readWhole<R extends Slice>(read: WholeRead<R>): Promise<void> {
    const block = await this.#takeBlock()
    if (block === undefined) return
    const range = read.choose(block.bytes.length)
    if (range === undefined) {
      this.#returnBlock(block)
      return
    }
    const bytes = block.bytes.subarray(0, range.end - range.start)
    const diskRead = read.read(bytes, range.start)
    this.#inFlight += 1
    try {
      await diskRead.result
      await read.use(range, { bytes, start: range.start })
    } finally {
      diskRead.ended
        .then(() => {
          this.#endRead(block, bytes.length)
        })
        .catch(this.#options.onFault)
    }
  }

  #endRead(block: PooledBuffer, bytes: number): void {
    this.#inFlight -= 1
    this.#returnBlock(block)
    this.#options.onCompleted(bytes)
  }

  #tryTakeBlock(): PooledBuffer | undefined {
    if (this.#isClosed || this.#inFlight >= this.#options.readsInFlightMax) return undefined
    const free = this.#freeBlocks.pop()
    if (free !== undefined) return free
    if (this.#blocks >= this.#options.readsInFlightMax) return undefined
    const block = this.#options.memory.tryAcquireBlock(this.#options.blockBytes)
    if (block !== undefined) this.#blocks += 1
    return block
  }

  #giveBack(block: PooledBuffer): void {
    this.#blocks -= 1
    block.recycle()
  }

  async #handOn(read: PipelineRead, block: PooledBuffer, diskRead: DiskRead): Promise<void> {
    const wanted = this.#spanOf(read).lead + read.plan.end - read.plan.start
    try {
      const bytesRead = await diskRead.result
      if (bytesRead < wanted) throw shortRead(read, bytesRead)
      this.#deliver(read, block)
    } catch (error) {
      for (const { cursor } of read.plan.slices) cursor.list.channel.fail(cursor, error)
    } finally {
      retireSlices(read)
    }
  }

  #deliver(read: PipelineRead, block: PooledBuffer): void {
    const window = this.#windowOf(read, block)
    const nowMs = this.#options.nowMs()
    let carryFrom = window.end
    for (const slice of read.plan.slices) {
      const { list } = slice.cursor
      try {
        const outcome = slice.cursor.deliver(slice, window, list.channel)
        if (outcome === 'more' && slice.end > window.end) {
          carryFrom = Math.min(carryFrom, slice.cursor.undeliveredFrom(slice))
        }
        list.served(nowMs)
      } catch (error) {
        list.channel.fail(slice.cursor, error)
      }
    }
    this.#keepCarry(window, carryFrom)
    this.#carryOf = read.reader
  }

  /** What of a block one read can ask for, if it begins and ends within a block of the disk. */
  #roomOf(block: PooledBuffer, reader: PartitionReader): number {
    const unaligned = reader.blockBytes === 1 ? 0 : 2 * reader.blockBytes
    return block.bytes.length - unaligned
  }

  /** For what may be carried from the read before. */
  #headroomOf({ isContinuation }: { readonly isContinuation: boolean }): number {
    return isContinuation ? this.#options.memory.bufferSizeBytes : 0
  }

  /** Whole blocks of the disk around the read: bytes before its start, and all of them. */
  #spanOf({ plan, reader }: PipelineRead): { readonly lead: number; readonly length: number } {
    const { blockBytes } = reader
    const lead = plan.start % blockBytes
    const length = Math.ceil((lead + plan.end - plan.start) / blockBytes) * blockBytes
    return { lead, length }
  }

  #windowOf(read: PipelineRead, block: PooledBuffer): FileWindow {
    const headroom = this.#headroomOf(read.plan)
    const { start, end, isContinuation } = read.plan
    const isCarried = isContinuation && this.#carryOf === read.reader && this.#carryEnd === start
    const carried = isCarried ? start - this.#carryStart : 0
    const first = headroom + this.#spanOf(read).lead - carried
    const length = carried + end - start
    block.bytes.set(this.#carry.subarray(0, carried), first)
    return {
      bytes: Buffer.from(block.bytes.buffer, block.bytes.byteOffset + first, length),
      start: start - carried,
      end,
    }
  }

  #keepCarry(window: FileWindow, from: number): void {
    const length = window.end - from
    this.#carryStart = from
    this.#carryEnd = window.end
    if (length <= 0) return
    assert(length <= this.#carry.length, 'less than one entry is carried to the next block')
    window.bytes.copy(this.#carry, 0, from - window.start, window.bytes.length)
  }
}

/** Of the slices that end here; then their channels may send, or have something read again. */
function retireSlices(read: PipelineRead): void {
  for (const slice of read.plan.slices) {
    const { list } = slice.cursor
    if (slice.end <= read.plan.end) list.retire(slice)
    list.channel.settle(slice.cursor)
  }
  // When all are settled: a channel may have several, and is told of each; mostly it has one.
  for (const { cursor } of read.plan.slices) cursor.list.channel.afterDelivery()
}

function shortRead(read: PipelineRead, bytesRead: number): ShuffleError {
  return new ShuffleError('DATA_CORRUPT', 'the file ends before its index says it does', {
    fields: { position: read.plan.start, bytesRead, ...read.reader.partition.key },
  })
}
