// Turns the pieces of a region into entries and packs them into bodies of the data set's buffer
// size: pieces are compressed ahead by other threads, a few at a time, and packed in their order.
//
//   piece ─> scratch buffer ─> compute.compress ┐ at most `parallelism` in work, taken in order
//   piece ─> scratch buffer ─> compute.compress ┴─> entry ─> body buffer ─> write channel (credit)
//   piece too small to compress, nothing in work ──> entry ─> body buffer
//
// Every buffer goes back on every path; a scratch buffer only when its compression has ended, since
// another thread reads it until then. Owned by one ResultPartition, one region at a time.

import { assert } from '../common/assert.ts'
import type { BufferPool } from '../common/buffer-pool.ts'
import type { PooledBuffer } from '../common/buffer.ts'
import type { Compute } from '../common/compute.ts'
import type { ErrorFields } from '../common/errors.ts'
import type { TimeInState } from '../common/time-in-state.ts'
import {
  broadcastSubpartition,
  compressedPrefixLength,
  entryFlags,
  entryHeaderLength,
  entryTypes,
  writeEntryHeader,
  type EntryChecksum,
} from '../protocol/entry.ts'
import type { Piece, PieceSource } from './region-pieces.ts'
import type { WriteChannel, WriteState } from './write-channel.ts'

/** Below it LZ4 wins too little for what a hand-over to another thread costs. */
export const compressedBytesMin = 1024

export interface BufferPackerOptions {
  /** Buffers to send with; a wait for one ends when the socket has taken another. */
  readonly pool: BufferPool
  /** One buffer for each piece in work: its own, so that nothing that is under way can take it. */
  readonly scratchPool: BufferPool
  readonly channel: WriteChannel
  readonly compute: Compute
  readonly checksum: EntryChecksum
  readonly isCompressed: boolean
  /** Pieces in work at a time. */
  readonly parallelism: number
  readonly subpartitionCount: number
  readonly timeInState: TimeInState<WriteState>
  readonly signal: AbortSignal
  readonly bufferTimeoutMs: number
  readonly fields: ErrorFields
}

interface Work {
  readonly piece: Piece
  readonly scratch: PooledBuffer
  /** The LZ4 block; undefined: the piece is sent as it is. */
  readonly block: Promise<Uint8Array> | undefined
}

export class BufferPacker {
  readonly #options: BufferPackerOptions
  readonly #work: Work[] = []
  readonly #bytesBySubpartition: Float64Array
  #broadcastBytes = 0
  #uncompressedBytes = 0
  #isBroadcast = false
  #regionIndex = -1
  #body: PooledBuffer | undefined
  #bodyLength = 0
  #bodyEntries = 0
  #run = -1
  #position = 0

  constructor(options: BufferPackerOptions) {
    this.#options = options
    this.#bytesBySubpartition = new Float64Array(options.subpartitionCount)
  }

  /** Payload bytes of all pieces so far. */
  get uncompressedBytes(): number {
    return this.#uncompressedBytes
  }

  get regionCount(): number {
    return this.#regionIndex + 1
  }

  /** Payload bytes that each subpartition will be served; broadcast data counts for each. */
  bytesBySubpartition(): Float64Array {
    return this.#bytesBySubpartition.map((bytes) => bytes + this.#broadcastBytes)
  }

  /** Sends one whole region. After a rejection the write has failed and nothing is held. */
  async sendRegion(source: PieceSource): Promise<void> {
    const { channel } = this.#options
    this.#isBroadcast = source.isBroadcast
    this.#run = -1
    await channel.startRegion(source)
    this.#regionIndex += 1
    try {
      for (const piece of source.pieces()) {
        const wait = this.#take(piece)
        if (wait !== undefined) await wait
      }
      while (this.#work.length > 0) await this.#finishFirst()
      await this.#sendBody()
    } catch (error) {
      this.#giveUp()
      throw error
    }
    channel.finishRegion()
  }

  #take(piece: Piece): Promise<void> | undefined {
    this.#count(piece)
    const compressed =
      this.#options.isCompressed &&
      piece.type === entryTypes.data &&
      piece.length >= compressedBytesMin
    if (!compressed && this.#work.length === 0) return this.#appendRaw(piece)
    if (this.#work.length < this.#options.parallelism) {
      this.#start(piece, compressed)
      return undefined
    }
    return this.#finishFirst().then(() => {
      this.#start(piece, compressed)
    })
  }

  #count(piece: Piece): void {
    this.#uncompressedBytes += piece.length
    if (this.#isBroadcast) {
      this.#broadcastBytes += piece.length
      return
    }
    const before = this.#bytesBySubpartition[piece.subpartition] ?? 0
    this.#bytesBySubpartition[piece.subpartition] = before + piece.length
  }

  #start(piece: Piece, compressed: boolean): void {
    const scratch = this.#options.scratchPool.acquire()
    assert(scratch !== undefined, 'the packer has its share of the pool')
    piece.fill(scratch.bytes)
    const block = compressed
      ? this.#options.compute.compress(scratch.bytes.subarray(0, piece.length))
      : undefined
    // Awaited later, in order; until then a failure is nobody's fault.
    block?.catch(() => undefined)
    this.#work.push({ piece, scratch, block })
  }

  async #finishFirst(): Promise<void> {
    const { timeInState } = this.#options
    const work = this.#work.shift()
    assert(work !== undefined, 'there is work to finish')
    try {
      timeInState.enter('compression')
      const block = await work.block
      timeInState.enter('idle')
      const raw = work.scratch.bytes.subarray(0, work.piece.length)
      if (block !== undefined && compressedPrefixLength + block.length < raw.length) {
        await this.#appendBlock(work.piece, block)
      } else {
        await this.#appendRaw({
          ...work.piece,
          fill: (target) => {
            target.set(raw)
          },
        })
      }
    } finally {
      work.scratch.recycle()
    }
  }

  async #appendBlock(piece: Piece, block: Uint8Array): Promise<void> {
    const length = compressedPrefixLength + block.length
    const wait = this.#makeRoom(entryHeaderLength + length)
    if (wait !== undefined) await wait
    this.#append(piece, length, entryFlags.compressed, (target) => {
      new DataView(target.buffer, target.byteOffset).setUint32(0, piece.length)
      target.set(block, compressedPrefixLength)
    })
  }

  #appendRaw(piece: Piece): Promise<void> | undefined {
    const wait = this.#makeRoom(entryHeaderLength + piece.length)
    if (wait === undefined) {
      this.#append(piece, piece.length, 0, piece.fill)
      return undefined
    }
    return wait.then(() => {
      this.#append(piece, piece.length, 0, piece.fill)
    })
  }

  /** Room for an entry of `length` bytes in the present body, or the next. */
  #makeRoom(length: number): Promise<void> | undefined {
    if (this.#body !== undefined) {
      if (this.#bodyLength + length <= this.#options.pool.bufferSizeBytes) return undefined
    } else {
      this.#body = this.#options.pool.acquire()
      if (this.#body !== undefined) return undefined
    }
    return this.#nextBody()
  }

  async #nextBody(): Promise<void> {
    const { pool, signal, bufferTimeoutMs, fields, timeInState } = this.#options
    await this.#sendBody()
    timeInState.enter('socket')
    this.#body = await pool.acquireWhenFree({
      name: 'a buffer to send with',
      timeoutMs: bufferTimeoutMs,
      timeoutCode: 'WRITE_INTERRUPTED',
      signal,
      fields,
    })
    timeInState.enter('idle')
  }

  #append(
    piece: Piece,
    length: number,
    codecFlags: number,
    fill: (target: Uint8Array) => void,
  ): void {
    const body = this.#body
    assert(body !== undefined, 'room was made')
    const headerAt = this.#bodyLength
    const payloadAt = headerAt + entryHeaderLength
    assert(payloadAt + length <= body.bytes.length, 'an entry fits its body')
    const payload = body.bytes.subarray(payloadAt, payloadAt + length)
    fill(payload)
    const subpartition = this.#isBroadcast ? broadcastSubpartition : piece.subpartition
    this.#position = piece.subpartition === this.#run ? this.#position + 1 : 0
    this.#run = piece.subpartition
    const { type } = piece
    const flags = codecFlags | (piece.isLastOfRun ? entryFlags.lastOfRun : 0)
    const checksum = this.#options.checksum.of(
      { regionIndex: this.#regionIndex, subpartition, position: this.#position, flags, type },
      payload,
    )
    writeEntryHeader(body.bytes, headerAt, { length, subpartition, flags, type, checksum })
    this.#bodyLength = payloadAt + length
    this.#bodyEntries += 1
  }

  async #sendBody(): Promise<void> {
    const body = this.#body
    if (body === undefined) return
    const length = this.#bodyLength
    const entryCount = this.#bodyEntries
    this.#body = undefined
    this.#bodyLength = 0
    this.#bodyEntries = 0
    if (length === 0) body.recycle()
    else await this.#options.channel.send(body, length, entryCount)
  }

  #giveUp(): void {
    this.#body?.recycle()
    this.#body = undefined
    this.#bodyLength = 0
    this.#bodyEntries = 0
    for (const work of this.#work.splice(0)) {
      const recycle = () => {
        work.scratch.recycle()
      }
      if (work.block === undefined) recycle()
      else work.block.then(recycle, recycle)
    }
  }
}
