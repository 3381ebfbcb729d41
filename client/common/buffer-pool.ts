// A bounded pool of equal buffers: the memory of one ResultPartition or one InputGate. Memory is
// had when a buffer is first taken and kept for the next taker; `close` gives it back. Buffers that are
// out at that moment follow as they are recycled.

import { assert } from './assert.ts'
import type { PooledBuffer } from './buffer.ts'
import { ShuffleError } from './errors.ts'
import type { SpareBuffers } from './spare-buffers.ts'
import type { Waiter, WaiterRegister, WaitOptions } from './waiters.ts'

/** Counts what is out of several pools; one per process, for its statistics. */
export interface BufferUsage {
  buffersInUse: number
}

export interface BufferPoolOptions {
  readonly bufferSizeBytes: number
  /** The bound: at most this many buffers are out at a time. */
  readonly bufferCount: number
  readonly waiters: WaiterRegister
  readonly usage?: BufferUsage
  /** Where memory comes from before it is allocated, and goes in the end. */
  readonly spare?: SpareBuffers | undefined
}

export class BufferPool {
  readonly bufferSizeBytes: number
  readonly bufferCount: number
  readonly #waiters: WaiterRegister
  readonly #usage: BufferUsage
  readonly #spare: SpareBuffers | undefined
  readonly #free: Uint8Array[] = []
  readonly #queue: Waiter<PooledBuffer>[] = []
  #used = 0
  #closed = false
  #onRecycle: (() => void) | undefined

  constructor(options: BufferPoolOptions) {
    assert(options.bufferCount >= 1, 'a buffer pool has at least one buffer')
    this.bufferSizeBytes = options.bufferSizeBytes
    this.bufferCount = options.bufferCount
    this.#waiters = options.waiters
    this.#usage = options.usage ?? { buffersInUse: 0 }
    this.#spare = options.spare
  }

  /** Buffers that are out. */
  get usedCount(): number {
    return this.#used
  }

  /** Buffers that `acquire` would give at once. */
  get freeCount(): number {
    return this.#closed ? 0 : this.bufferCount - this.#used
  }

  /** Called after each recycle that no waiter took; set by the pool's one owner. */
  set onRecycle(callback: (() => void) | undefined) {
    this.#onRecycle = callback
  }

  /** A buffer, or undefined when all are out or the pool is closed. */
  acquire(): PooledBuffer | undefined {
    if (this.freeCount === 0) return undefined
    this.#used += 1
    this.#usage.buffersInUse += 1
    return new Lease(this.#free.pop() ?? this.#newMemory(), this.#takeBack)
  }

  /** A buffer as soon as there is one; waiters are served in order. */
  async acquireWhenFree(options: WaitOptions): Promise<PooledBuffer> {
    if (this.#closed) throw closedError()
    const buffer = this.acquire()
    if (buffer !== undefined) return buffer
    const waiter = this.#waiters.wait<PooledBuffer>(options)
    this.#queue.push(waiter)
    try {
      return await waiter.promise
    } catch (error) {
      const index = this.#queue.indexOf(waiter)
      if (index >= 0) this.#queue.splice(index, 1)
      throw error
    }
  }

  /** Ends all waits with CANCELLED and lets the memory go. Idempotent. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const memory of this.#free.splice(0)) this.#spare?.give(memory)
    for (const waiter of this.#queue.splice(0)) waiter.reject(closedError())
  }

  /** A Buffer, so that who writes numbers into it needs no other view; what it holds is undefined. */
  #newMemory(): Uint8Array {
    return this.#spare?.take(this.bufferSizeBytes) ?? Buffer.allocUnsafeSlow(this.bufferSizeBytes)
  }

  readonly #takeBack = (bytes: Uint8Array): void => {
    this.#used -= 1
    this.#usage.buffersInUse -= 1
    assert(this.#used >= 0, 'a pool takes back no more buffers than it gave')
    if (this.#closed) {
      this.#spare?.give(bytes)
      return
    }
    this.#free.push(bytes)
    for (let waiter = this.#queue.shift(); waiter !== undefined; waiter = this.#queue.shift()) {
      if (waiter.isSettled) continue
      const buffer = this.acquire()
      assert(buffer !== undefined, 'a buffer was just taken back')
      waiter.resolve(buffer)
      return
    }
    this.#onRecycle?.()
  }
}

class Lease implements PooledBuffer {
  readonly bytes: Uint8Array
  #takeBack: ((bytes: Uint8Array) => void) | undefined

  constructor(bytes: Uint8Array, takeBack: (bytes: Uint8Array) => void) {
    this.bytes = bytes
    this.#takeBack = takeBack
  }

  recycle(): void {
    const takeBack = this.#takeBack
    assert(takeBack !== undefined, 'a buffer is recycled exactly once')
    this.#takeBack = undefined
    takeBack(this.bytes)
  }
}

function closedError(): ShuffleError {
  return new ShuffleError('CANCELLED', 'the buffer pool was closed')
}
