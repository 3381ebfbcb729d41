// Who of a gate's channels may have how much of its memory. Two buffers belong to each open channel;
// what the pool has beyond that is divided evenly among the channels that have backlog. Whoever is
// granted credit has the buffers in hand, so that granted minus consumed always equals the buffers
// reserved. Owned by the gate.
//
//   pool ── 2 ──> channel waiting to be opened, in order
//        ── up to min(share, backlog) - outstanding ──> open channels, round robin

import type { BufferPool } from '../common/buffer-pool.ts'
import type { PooledBuffer } from '../common/buffer.ts'
import type { Clock, Timer } from '../common/clock.ts'
import type { ErrorFields } from '../common/errors.ts'
import type { Waiter, WaiterRegister } from '../common/waiters.ts'

/** An open channel, as far as its credit goes. */
export interface CreditTaker {
  /** Granted and not consumed: buffers reserved. */
  readonly outstanding: number
  /** Frames that are still to come, as the worker last told. */
  readonly backlogLeft: number
  /** The buffers are the channel's; it grants one credit for each. */
  grant(buffers: readonly PooledBuffer[]): void
}

/** What a channel begins with, and keeps. */
export const initialCredit = 2

export class CreditShares {
  readonly #pool: BufferPool
  readonly #clock: Clock
  readonly #waiters: WaiterRegister
  readonly #takers: CreditTaker[] = []
  readonly #opening: Waiter<readonly PooledBuffer[]>[] = []
  #nextTaker = 0
  #reservedForOpening = 0
  #turn: Timer | undefined
  #closed = false

  constructor(options: {
    readonly pool: BufferPool
    readonly clock: Clock
    readonly waiters: WaiterRegister
  }) {
    this.#pool = options.pool
    this.#clock = options.clock
    this.#waiters = options.waiters
    this.#pool.onRecycle = () => {
      this.schedule()
    }
  }

  /** The two buffers of a channel to be opened, as soon as it is its turn. */
  async acquireInitial(options: {
    readonly signal: AbortSignal
    readonly fields: ErrorFields
  }): Promise<readonly PooledBuffer[]> {
    const waiter = this.#waiters.wait<readonly PooledBuffer[]>({
      name: 'memory for a read channel',
      // Others finish or their deadlines pass; until then there is no memory to read with.
      timeoutMs: Infinity,
      signal: options.signal,
      fields: options.fields,
    })
    this.#opening.push(waiter)
    this.#open()
    try {
      return await waiter.promise
    } catch (error) {
      const index = this.#opening.indexOf(waiter)
      if (index >= 0) this.#opening.splice(index, 1)
      throw error
    }
  }

  /** The channel that was opened with `acquireInitial`. */
  register(taker: CreditTaker): void {
    this.#reservedForOpening -= 1
    this.#takers.push(taker)
  }

  unregister(taker: CreditTaker): void {
    const index = this.#takers.indexOf(taker)
    if (index >= 0) this.#takers.splice(index, 1)
    this.schedule()
  }

  /** The buffers of `acquireInitial` went back unused: no channel was opened with them. */
  abandonOpening(): void {
    this.#reservedForOpening -= 1
    this.schedule()
  }

  /** Divides what is free once the present turn is over, so that credit goes out in batches. */
  schedule(): void {
    if (this.#closed) return
    this.#turn ??= this.#clock.setImmediate(() => {
      this.#turn = undefined
      this.#open()
      this.#divide()
    })
  }

  close(): void {
    this.#closed = true
    this.#turn?.cancel()
    this.#pool.onRecycle = undefined
  }

  /** What a channel with backlog may have outstanding at most. */
  get share(): number {
    const openCount = this.#takers.length + this.#reservedForOpening
    const withBacklog = this.#takers.filter((taker) => taker.backlogLeft > 0).length
    // While channels wait to be opened that will have room, nobody takes more than its own two.
    const floating = this.#pool.bufferCount - initialCredit * openCount
    if (this.#opening.length > 0 && floating >= initialCredit) return initialCredit
    return initialCredit + Math.max(0, Math.floor(floating / Math.max(1, withBacklog)))
  }

  #open(): void {
    while (this.#opening.length > 0 && this.#pool.freeCount >= initialCredit) {
      const waiter = this.#opening.shift()
      if (waiter === undefined || waiter.isSettled) continue
      const buffers: PooledBuffer[] = []
      for (let count = 0; count < initialCredit; count += 1) {
        const buffer = this.#pool.acquire()
        if (buffer !== undefined) buffers.push(buffer)
      }
      this.#reservedForOpening += 1
      waiter.resolve(buffers)
    }
  }

  #divide(): void {
    const { share } = this
    const count = this.#takers.length
    for (let step = 0; step < count && this.#pool.freeCount > 0; step += 1) {
      const taker = this.#takers[(this.#nextTaker + step) % count]
      if (taker !== undefined) this.#grant(taker, share)
    }
    this.#nextTaker = count === 0 ? 0 : (this.#nextTaker + 1) % count
  }

  #grant(taker: CreditTaker, share: number): void {
    const wanted = Math.min(share, taker.backlogLeft) - taker.outstanding
    const buffers: PooledBuffer[] = []
    while (buffers.length < wanted) {
      const buffer = this.#pool.acquire()
      if (buffer === undefined) break
      buffers.push(buffer)
    }
    if (buffers.length > 0) taker.grant(buffers)
  }
}
