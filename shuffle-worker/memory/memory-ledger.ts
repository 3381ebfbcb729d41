// The worker's one memory budget. Everything that grows with load is taken here first: buffers of
// the data path from a fixed pool, and bytes that are only counted (index rows, control state, held
// small partitions). Each purpose has a floor that no other can take; what belongs to no floor goes
// to whoever comes first. Waiters of a purpose are served strictly in arrival order.
//
//   total = floor(write) + floor(read) + floor(index) + floor(control) + shared
//   a purpose may use: its floor + what others leave of shared

import { assert } from '../../client/common/assert.ts'
import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { Clock, Timer } from '../../client/common/clock.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { JobId } from '../../client/common/ids.ts'
import { WaiterRegister, type Waiter } from '../../client/common/waiters.ts'
import {
  checkMemorySizes,
  defaultFloors,
  defaultMemoryBytes,
  memoryPurposes,
  sumOfFloors,
  type MemoryFloors,
  type MemoryPurpose,
} from './memory-floors.ts'
import { SlabPool, slabSizeBytes, type SlabPiece } from './slab-pool.ts'

/** Bounds the queue of each purpose; a worker has fewer open channels than that. */
const waitersMax = 65_536
/** A slab that was wholly free for so long goes back to the system. */
const quietMs = 60_000

export interface MemoryLedgerSettings {
  readonly clock: Clock
  /** Where waits are listed; a register of its own when not given. */
  readonly waiters?: WaiterRegister
  /** The whole budget; 64 MiB when not given. */
  readonly totalBytes?: number
  /** 32 KiB when not given; a power of two from 4 KiB to 1 MiB. */
  readonly bufferSizeBytes?: number
  /** By default 24 : 24 : 8 : 8 of the total. */
  readonly floors?: MemoryFloors
}

export interface AcquireRequest {
  readonly purpose: 'write' | 'read'
  readonly count: number
  readonly jobId?: JobId
}

export interface BlockRequest {
  readonly purpose: 'write' | 'read'
  readonly sizeBytesMin: number
  readonly sizeBytesMax: number
  readonly jobId?: JobId
}

export interface ReserveRequest {
  readonly purpose: MemoryPurpose
  readonly bytes: number
  readonly jobId?: JobId
}

export interface MemoryWait {
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

/** Bytes that are counted but are no buffers of the pool. */
export interface Reservation {
  readonly bytes: number
  /** Keeps only so much; for what needed more while it was made. */
  shrinkTo(bytes: number): void
  /** Exactly once. */
  release(): void
}

interface Part {
  readonly floorBytes: number
  usedBytes: number
  readonly queue: Waiting[]
  readonly freeListeners: Set<() => void>
}

interface Waiting {
  readonly bytes: number
  readonly isSettled: () => boolean
  readonly grant: () => void
}

export class MemoryLedger {
  readonly bufferSizeBytes: number
  readonly totalBytes: number
  readonly #clock: Clock
  readonly #waiters: WaiterRegister
  readonly #pool: SlabPool
  readonly #parts: Readonly<Record<MemoryPurpose, Part>>
  readonly #sharedBytes: number
  /** What purposes use beyond their floors. */
  #sharedUsedBytes = 0
  readonly #usedByJob = new Map<JobId | undefined, number>()
  #quietTimer: Timer | undefined
  #announcing = false
  #closed = false

  /** INVALID_ARGUMENT when the sizes don't fit together. */
  constructor(settings: MemoryLedgerSettings) {
    this.#clock = settings.clock
    this.#waiters = settings.waiters ?? new WaiterRegister({ clock: settings.clock })
    this.totalBytes = settings.totalBytes ?? defaultMemoryBytes
    this.bufferSizeBytes = settings.bufferSizeBytes ?? 32 * 1024
    const floors = settings.floors ?? defaultFloors(this.totalBytes)
    checkMemorySizes({ totalBytes: this.totalBytes, bufferSizeBytes: this.bufferSizeBytes, floors })
    this.#parts = {
      write: newPart(floors.write),
      read: newPart(floors.read),
      index: newPart(floors.index),
      control: newPart(floors.control),
    }
    this.#sharedBytes = this.totalBytes - sumOfFloors(floors)
    this.#pool = new SlabPool({
      bufferSizeBytes: this.bufferSizeBytes,
      capacityBytes: floors.write + floors.read + this.#sharedBytes,
    })
  }

  /** All `count` at once, in arrival order. BUSY at the deadline, CANCELLED when aborted. */
  acquire(request: AcquireRequest & MemoryWait): Promise<PooledBuffer[]> {
    const bytes = request.count * this.bufferSizeBytes
    return this.#wait(request, bytes, () => this.#takeSingles(request))
  }

  /** Undefined when they are not free now, or others wait. */
  tryAcquire(request: AcquireRequest): PooledBuffer[] | undefined {
    const bytes = request.count * this.bufferSizeBytes
    return this.#mayTake(request.purpose, bytes) ? this.#takeSingles(request) : undefined
  }

  /**
   * One contiguous block, a multiple of the buffer size, at most 1 MiB: as large as is free now
   * between the two bounds. Undefined when there is none, or others wait.
   */
  tryAcquireBlock(request: BlockRequest): PooledBuffer | undefined {
    const countMin = Math.max(1, Math.ceil(request.sizeBytesMin / this.bufferSizeBytes))
    const wanted = Math.min(request.sizeBytesMax, slabSizeBytes)
    const countMax = Math.min(
      Math.max(1, Math.floor(wanted / this.bufferSizeBytes)),
      this.freeCount(request.purpose),
    )
    if (countMax < countMin || this.waiterCount(request.purpose) > 0) return undefined
    const piece = this.#pool.takeBlock(countMin, countMax)
    return piece && this.#own(request, piece)
  }

  tryReserve(request: ReserveRequest): Reservation | undefined {
    return this.#mayTake(request.purpose, request.bytes) ? this.#count(request) : undefined
  }

  /** Waits as {@link acquire} does. LIMIT_EXCEEDED when the part could never hold it. */
  reserve(request: ReserveRequest & MemoryWait): Promise<Reservation> {
    return this.#wait(request, request.bytes, () => this.#count(request))
  }

  /** What the purpose may use in all: its floor and whatever belongs to none. */
  partBytes(purpose: MemoryPurpose): number {
    return this.#parts[purpose].floorBytes + this.#sharedBytes
  }

  usedBytes(purpose: MemoryPurpose): number {
    return this.#parts[purpose].usedBytes
  }

  /** Buffers that the purpose could get at this moment if nobody waited. */
  freeCount(purpose: 'write' | 'read'): number {
    return Math.floor(this.#freeBytes(purpose) / this.bufferSizeBytes)
  }

  /** Memory really allocated for buffers. */
  get slabBytes(): number {
    return this.#pool.allocatedBytes
  }

  usedBytesByJob(): ReadonlyMap<JobId, number> {
    const entries = [...this.#usedByJob].filter(([jobId]) => jobId !== undefined)
    return new Map(entries as [JobId, number][])
  }

  waiterCount(purpose: MemoryPurpose): number {
    dropSettled(this.#parts[purpose].queue)
    return this.#parts[purpose].queue.length
  }

  /**
   * Calls back, soon after, when something of the purpose was given back and no waiter is left.
   * Returns what ends it.
   */
  onFree(purpose: MemoryPurpose, callback: () => void): () => void {
    const listeners = this.#parts[purpose].freeListeners
    listeners.add(callback)
    return () => listeners.delete(callback)
  }

  /** The invariant: what the purposes use is exactly what the owners hold. */
  assertBalanced(): void {
    const byPurpose = memoryPurposes.reduce((sum, each) => sum + this.#parts[each].usedBytes, 0)
    const byOwner = [...this.#usedByJob.values()].reduce((sum, bytes) => sum + bytes, 0)
    assert(byPurpose === byOwner, `memory by purpose ${String(byPurpose)} is not by owner`)
    assert(byPurpose <= this.totalBytes, 'used memory is within the budget')
    const shared = memoryPurposes.reduce((sum, each) => sum + beyondFloor(this.#parts[each]), 0)
    assert(shared === this.#sharedUsedBytes, 'what is beyond the floors is counted')
  }

  /** Refuses all waiters. What is out may still be given back. */
  close(): void {
    this.#closed = true
    this.#quietTimer?.cancel()
    for (const purpose of memoryPurposes) {
      for (const waiting of this.#parts[purpose].queue.splice(0)) waiting.grant()
    }
  }

  #freeBytes(purpose: MemoryPurpose): number {
    const part = this.#parts[purpose]
    const sharedOfOthers = this.#sharedUsedBytes - beyondFloor(part)
    return part.floorBytes + this.#sharedBytes - sharedOfOthers - part.usedBytes
  }

  #mayTake(purpose: MemoryPurpose, bytes: number): boolean {
    return !this.#closed && this.waiterCount(purpose) === 0 && bytes <= this.#freeBytes(purpose)
  }

  async #wait<T>(
    request: MemoryWait & { readonly purpose: MemoryPurpose },
    bytes: number,
    take: () => T,
  ): Promise<T> {
    const { purpose } = request
    const { queue } = this.#parts[purpose]
    if (this.#mayTake(purpose, bytes)) return take()
    this.#checkWait(purpose, bytes)
    const waiter = this.#waiters.wait<T>({
      name: `memory for ${purpose}`,
      timeoutMs: request.timeoutMs,
      signal: request.signal,
      fields: { purpose, bytes },
    })
    queue.push({
      bytes,
      isSettled: () => waiter.isSettled,
      grant: () => {
        this.#settle(waiter, take)
      },
    })
    try {
      return await waiter.promise
    } catch (error) {
      // One that gave up may have stood before smaller ones.
      this.#serve(purpose)
      throw error
    }
  }

  #checkWait(purpose: MemoryPurpose, bytes: number): void {
    const fields = { purpose, bytes, partBytes: this.partBytes(purpose) }
    if (this.#closed) throw closedError()
    if (bytes > this.partBytes(purpose)) {
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        `a request for ${String(bytes)} bytes of ${purpose} memory is more than that part has; raise the pool`,
        { fields },
      )
    }
    if (this.waiterCount(purpose) >= waitersMax) {
      throw new ShuffleError('BUSY', `too many requests wait for ${purpose} memory`, { fields })
    }
  }

  #settle<T>(waiter: Waiter<T>, take: () => T): void {
    if (this.#closed) waiter.reject(closedError())
    else waiter.resolve(take())
  }

  #takeSingles(request: AcquireRequest): PooledBuffer[] {
    return this.#pool.takeSingles(request.count).map((piece) => this.#own(request, piece))
  }

  #own(owner: { purpose: 'write' | 'read'; jobId?: JobId }, piece: SlabPiece): PooledBuffer {
    const { purpose, jobId } = owner
    this.#charge(purpose, jobId, piece.bytes.byteLength)
    return new SlabBuffer(piece, () => {
      this.#pool.give(piece, this.#clock.nowMs())
      this.#armQuiet()
      this.#charge(purpose, jobId, -piece.bytes.byteLength)
      this.#given()
    })
  }

  #count(request: ReserveRequest): Reservation {
    const { purpose, bytes, jobId } = request
    assert(bytes >= 0, 'a reservation is not negative')
    this.#charge(purpose, jobId, bytes)
    return new CountedBytes(bytes, (given) => {
      this.#charge(purpose, jobId, -given)
      this.#given()
    })
  }

  #charge(purpose: MemoryPurpose, jobId: JobId | undefined, bytes: number): void {
    const part = this.#parts[purpose]
    const before = beyondFloor(part)
    part.usedBytes += bytes
    this.#sharedUsedBytes += beyondFloor(part) - before
    assert(part.usedBytes >= 0, 'no purpose gives back more than it took')
    const ofJob = (this.#usedByJob.get(jobId) ?? 0) + bytes
    assert(ofJob >= 0, 'no job gives back more than it took')
    if (ofJob === 0) this.#usedByJob.delete(jobId)
    else this.#usedByJob.set(jobId, ofJob)
  }

  /** Anything given back may serve any purpose: it may have been of the shared part. */
  #given(): void {
    for (const purpose of memoryPurposes) this.#serve(purpose)
    this.#announce()
  }

  #serve(purpose: MemoryPurpose): void {
    const { queue } = this.#parts[purpose]
    while (queue.length > 0) {
      dropSettled(queue)
      const first = queue[0]
      if (first === undefined || first.bytes > this.#freeBytes(purpose)) return
      queue.shift()
      first.grant()
    }
  }

  #announce(): void {
    if (this.#announcing || this.#closed) return
    this.#announcing = true
    queueMicrotask(() => {
      this.#announcing = false
      for (const purpose of memoryPurposes) {
        if (this.waiterCount(purpose) > 0) continue
        for (const listener of [...this.#parts[purpose].freeListeners]) listener()
      }
    })
  }

  #armQuiet(): void {
    if (this.#quietTimer !== undefined || this.#closed) return
    this.#quietTimer = this.#clock.setTimer(quietMs, () => {
      this.#quietTimer = undefined
      if (this.#pool.giveBackQuiet(this.#clock.nowMs() - quietMs)) this.#armQuiet()
    })
  }
}

class SlabBuffer implements PooledBuffer {
  readonly bytes: Uint8Array
  #giveBack: (() => void) | undefined

  constructor(piece: SlabPiece, giveBack: () => void) {
    this.bytes = piece.bytes
    this.#giveBack = giveBack
  }

  recycle(): void {
    const giveBack = this.#giveBack
    assert(giveBack !== undefined, 'a buffer is recycled once')
    this.#giveBack = undefined
    giveBack()
  }
}

class CountedBytes implements Reservation {
  readonly #giveBack: (bytes: number) => void
  #bytes: number
  #isReleased = false

  constructor(bytes: number, giveBack: (bytes: number) => void) {
    this.#bytes = bytes
    this.#giveBack = giveBack
  }

  get bytes(): number {
    return this.#bytes
  }

  shrinkTo(bytes: number): void {
    assert(!this.#isReleased && bytes <= this.#bytes, 'a reservation only shrinks')
    const given = this.#bytes - bytes
    this.#bytes = bytes
    if (given > 0) this.#giveBack(given)
  }

  release(): void {
    assert(!this.#isReleased, 'a reservation is released once')
    this.#isReleased = true
    this.#giveBack(this.#bytes)
  }
}

function beyondFloor(part: Part): number {
  return Math.max(0, part.usedBytes - part.floorBytes)
}

function newPart(floorBytes: number): Part {
  return { floorBytes, usedBytes: 0, queue: [], freeListeners: new Set() }
}

/** Only at the head: those behind cost nothing until it is their turn. */
function dropSettled(queue: Waiting[]): void {
  while (queue[0]?.isSettled() === true) queue.shift()
}

function closedError(): ShuffleError {
  return new ShuffleError('CANCELLED', 'the worker is stopping, its memory is given out no more')
}
