// What the lists of read channels may take, counted in the ledger's control part: listed entries, and
// the cursors of those that have been begun. One per worker. Channels of one stage list the same
// partitions, so what is the same in their lists is kept, and counted, once. What a channel takes
// whatever it lists, a few KiB, is bounded by the limits of connections and channels instead.

import { assert } from '../../client/common/assert.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { JobId } from '../../client/common/ids.ts'
import type { MemoryLedger, Reservation } from '../memory/memory-ledger.ts'
import type { MapPartition } from '../storage/storage-types.ts'

export type ControlLedger = Pick<MemoryLedger, 'tryReserve' | 'partBytes'>

/** Which partitions a page lists, in the order of the sweep. Immutable, shared by channels. */
export interface SharedOrder {
  readonly partitions: readonly MapPartition[]
  /** Of each its number in the channel's list, less that of the page's first. */
  readonly offsets: Uint16Array
  /** Gives one user's hand back. */
  release(): void
}

/** A cursor, its slice, and its places in two maps. */
export const cursorBytes = 384
/** Cursors are paid for so many at a time. */
export const cursorsPerReservation = 8
const orderEntryBytes = 8 + 2
/** Lists that begin with the same partition and differ are compared so many at most. */
const alikeMax = 4

interface StoredOrder {
  readonly partitions: readonly MapPartition[]
  readonly offsets: Uint16Array
  readonly reservation: Reservation
  users: number
}

export class ListMemory {
  readonly #ledger: ControlLedger
  /** By their first partition. */
  readonly #orders = new Map<MapPartition, StoredOrder[]>()

  constructor(ledger: ControlLedger) {
    this.#ledger = ledger
  }

  /** BUSY when it can't be had now, LIMIT_EXCEEDED when it never could. */
  reserve(bytes: number, jobId: JobId | undefined): Reservation {
    const reservation = this.tryReserve(bytes, jobId)
    if (reservation !== undefined) return reservation
    const partBytes = this.#ledger.partBytes('control')
    const fields = { bytes, partBytes, ...(jobId === undefined ? {} : { jobId }) }
    if (bytes > partBytes) {
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        'the list of the read channel takes more than all control memory of the worker (its option memory); list less',
        { fields },
      )
    }
    throw new ShuffleError(
      'BUSY',
      'the lists of read channels take all control memory of the worker (its option memory); open the channel later',
      { fields },
    )
  }

  tryReserve(bytes: number, jobId: JobId | undefined): Reservation | undefined {
    return this.#ledger.tryReserve({
      purpose: 'control',
      bytes,
      ...(jobId === undefined ? {} : { jobId }),
    })
  }

  /** The order as it is kept for another channel, or this one. Throws as {@link reserve} does. */
  share(partitions: readonly MapPartition[], offsets: Uint16Array): SharedOrder {
    const [first] = partitions
    assert(first !== undefined, 'a page lists something')
    const alike = this.#orders.get(first) ?? []
    let order = alike.find((each) => isSame(each, partitions, offsets))
    if (order === undefined) {
      const bytes = partitions.length * orderEntryBytes
      const reservation = this.reserve(bytes, first.key.jobId)
      order = { partitions, offsets, reservation, users: 0 }
      if (alike.length < alikeMax) {
        alike.push(order)
        this.#orders.set(first, alike)
      }
    }
    order.users += 1
    return this.#handOn(order)
  }

  #handOn(order: StoredOrder): SharedOrder {
    let isHeld = true
    return {
      partitions: order.partitions,
      offsets: order.offsets,
      release: () => {
        assert(isHeld, 'a shared order is given back once')
        isHeld = false
        this.#leave(order)
      },
    }
  }

  #leave(order: StoredOrder): void {
    order.users -= 1
    if (order.users > 0) return
    order.reservation.release()
    const [first] = order.partitions
    if (first === undefined) return
    const left = this.#orders.get(first)?.filter((each) => each !== order) ?? []
    if (left.length > 0) this.#orders.set(first, left)
    else this.#orders.delete(first)
  }
}

/**
 * The cursors that one channel may have: one always, so that it goes on however short memory is; more
 * as long as there is some.
 */
export class CursorAllowance {
  readonly #memory: ListMemory
  readonly #jobId: () => JobId | undefined
  readonly #reservations: Reservation[] = []
  #taken = 0

  constructor(memory: ListMemory, jobId: () => JobId | undefined) {
    this.#memory = memory
    this.#jobId = jobId
  }

  /** Whether one more may be made; pays for it. */
  hasRoom(): boolean {
    if (this.#taken < this.#capacity) return true
    const bytes = cursorsPerReservation * cursorBytes
    const more = this.#memory.tryReserve(bytes, this.#jobId())
    if (more !== undefined) this.#reservations.push(more)
    return more !== undefined
  }

  take(): void {
    assert(this.#taken < this.#capacity, 'a cursor is paid for before it is made')
    this.#taken += 1
  }

  give(): void {
    this.#taken -= 1
    assert(this.#taken >= 0, 'a cursor is given back once')
    // One step more is kept, so that a channel at the border doesn't pay and return all the time.
    if (this.#taken === 0) this.#shrinkTo(0)
    else if (this.#taken + 2 * cursorsPerReservation <= this.#capacity) {
      this.#shrinkTo(this.#reservations.length - 1)
    }
  }

  get #capacity(): number {
    return 1 + this.#reservations.length * cursorsPerReservation
  }

  #shrinkTo(count: number): void {
    for (const reservation of this.#reservations.splice(count)) reservation.release()
  }
}

function isSame(
  order: StoredOrder,
  partitions: readonly MapPartition[],
  offsets: Uint16Array,
): boolean {
  if (order.partitions.length !== partitions.length) return false
  for (let slot = 0; slot < partitions.length; slot++) {
    if (order.partitions[slot] !== partitions[slot]) return false
    if (order.offsets[slot] !== offsets[slot]) return false
  }
  return true
}
