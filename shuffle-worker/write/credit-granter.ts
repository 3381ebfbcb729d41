// Decides which open region of a disk may hold how many of the worker's write buffers. One per
// disk. A credit is a real buffer in hand: granted means acquired, so data within credit always has
// its memory. Owned by the write service; regions come and go through their RegionCredit.
//
//   RegionStart ─▶ waiting (arrival order) ─ minimum fits ─▶ open ─ RegionFinish, all written ─▶ gone
//                                                             │ ▲
//                                      spend (WriteData) ▼ │ grow, only while nobody waits
//                                                       written ─▶ refilled to the minimum first

import { assert } from '../../client/common/assert.ts'
import type { PooledBuffer } from '../../client/common/buffer.ts'

/** Where write buffers come from: the ledger's write part. */
export interface BufferSource {
  /** All `count` buffers at once, or undefined when so many are not free. */
  tryAcquire(count: number): PooledBuffer[] | undefined
}

export interface CreditGranterOptions {
  readonly source: BufferSource
  /** Most buffers that all regions of this disk hold together. */
  readonly shareBuffers: number
  /** A region opens with this many, or with all it can use when that is fewer. */
  readonly minimumBuffers: number
  /** What a region grows to while no other waits. */
  readonly targetBuffers: number
  /** Most regions that hold credit at a time. */
  readonly openRegionsMax: number
}

export interface RegionDemand {
  /** Most buffers that the whole region can still use; 0 for an empty region. */
  readonly neededBuffers: number
  /** Called with each grant, after the buffers are in hand; the first may be during `enter`. */
  readonly onGrant: (count: number) => void
}

/** One region's buffers. `close` exactly once; `written` for each buffer taken. */
export interface RegionCredit {
  /** Buffers granted and not yet spent. */
  readonly unspent: number
  /** Granted, and taken but not yet written. */
  readonly held: number
  /** Whether the region has got its minimum. */
  readonly isOpen: boolean
  /** Spends one credit; undefined when there is none: the peer sent beyond it. */
  take(): PooledBuffer | undefined
  /** Lowers what the region can still use, as its bytes arrive. */
  setNeeded(buffers: number): void
  /** `count` taken buffers have gone back to the source. */
  written(count: number): void
  /** The region takes no more: what is unspent goes back. */
  close(): void
}

interface Region {
  needed: number
  readonly onGrant: (count: number) => void
  readonly buffers: PooledBuffer[]
  taken: number
  state: 'waiting' | 'open' | 'closed'
}

export class CreditGranter {
  readonly #options: CreditGranterOptions
  readonly #waiting: Region[] = []
  readonly #open = new Set<Region>()
  #heldBuffers = 0
  #isSuspended = false
  #isDistributing = false
  #isStarved = false
  #writtenCount = 0

  constructor(options: CreditGranterOptions) {
    assert(options.minimumBuffers >= 1, 'a region needs at least one buffer')
    assert(
      options.shareBuffers >= options.minimumBuffers,
      'the share of a disk holds at least one region',
    )
    this.#options = options
  }

  /** Buffers granted, or taken and not yet written. */
  get heldBuffers(): number {
    return this.#heldBuffers
  }

  get unspentBuffers(): number {
    let sum = 0
    for (const region of this.#open) sum += region.buffers.length
    return sum
  }

  get waitingRegions(): number {
    return this.#waiting.length
  }

  get openRegions(): number {
    return this.#open.size
  }

  /** Whether the last distribution stopped because the source had no buffers. */
  get isStarved(): boolean {
    return this.#isStarved
  }

  /** Buffers written since the start: whether a waiting region's turn comes nearer. */
  get writtenCount(): number {
    return this.#writtenCount
  }

  enter(demand: RegionDemand): RegionCredit {
    const region: Region = {
      needed: demand.neededBuffers,
      onGrant: demand.onGrant,
      buffers: [],
      taken: 0,
      state: 'waiting',
    }
    this.#waiting.push(region)
    this.distribute()
    return this.#creditOf(region)
  }

  /** A suspect disk gets no grants; what is granted stays. */
  setSuspended(isSuspended: boolean): void {
    this.#isSuspended = isSuspended
    this.distribute()
  }

  /** Gives out what can be given; to be called when the source may have buffers again. */
  distribute(): void {
    if (this.#isSuspended || this.#isDistributing) return
    this.#isDistributing = true
    try {
      this.#isStarved = false
      this.#refillOpen()
      this.#openWaiting()
      if (this.#waiting.length === 0) this.#growOpen()
    } finally {
      this.#isDistributing = false
    }
  }

  #refillOpen(): void {
    for (const region of this.#open) {
      const missing = this.#minimumOf(region) - heldOf(region)
      if (missing > 0) this.#grant(region, missing)
    }
  }

  #openWaiting(): void {
    let region = this.#waiting[0]
    while (region !== undefined && this.#open.size < this.#options.openRegionsMax) {
      const minimum = this.#minimumOf(region)
      if (minimum > 0 && !this.#grant(region, minimum)) return
      this.#waiting.shift()
      region.state = 'open'
      this.#open.add(region)
      region = this.#waiting[0]
    }
  }

  #growOpen(): void {
    const { targetBuffers, minimumBuffers, shareBuffers } = this.#options
    for (const region of this.#open) {
      const room = Math.min(targetBuffers, region.needed + region.taken) - heldOf(region)
      const count = Math.min(room, shareBuffers - this.#heldBuffers)
      // In pieces worth a message: the rest of the region, or half a minimum.
      if (count > 0 && (count === room || count * 2 >= minimumBuffers)) this.#grant(region, count)
    }
  }

  #minimumOf(region: Region): number {
    return Math.min(this.#options.minimumBuffers, region.needed)
  }

  #grant(region: Region, count: number): boolean {
    if (this.#heldBuffers + count > this.#options.shareBuffers) return false
    const buffers = this.#options.source.tryAcquire(count)
    if (buffers === undefined) {
      this.#isStarved = true
      return false
    }
    assert(buffers.length === count, 'the source gives exactly what was asked for')
    region.buffers.push(...buffers)
    this.#heldBuffers += count
    region.onGrant(count)
    return true
  }

  #creditOf(region: Region): RegionCredit {
    return {
      get unspent() {
        return region.buffers.length
      },
      get held() {
        return heldOf(region)
      },
      get isOpen() {
        return region.state === 'open'
      },
      take: () => {
        const buffer = region.buffers.pop()
        if (buffer !== undefined) region.taken++
        return buffer
      },
      setNeeded: (buffers) => {
        region.needed = buffers
      },
      written: (count) => {
        this.#written(region, count)
      },
      close: () => {
        this.#close(region)
      },
    }
  }

  #written(region: Region, count: number): void {
    assert(count <= region.taken, 'no more buffers are written than were taken')
    region.taken -= count
    this.#heldBuffers -= count
    this.#writtenCount += count
    this.distribute()
  }

  #close(region: Region): void {
    assert(region.state !== 'closed', 'a region closes once')
    if (region.state === 'waiting') this.#waiting.splice(this.#waiting.indexOf(region), 1)
    this.#open.delete(region)
    region.state = 'closed'
    this.#heldBuffers -= region.buffers.length
    for (const buffer of region.buffers.splice(0)) buffer.recycle()
    this.distribute()
  }
}

function heldOf(region: Region): number {
  return region.buffers.length + region.taken
}
