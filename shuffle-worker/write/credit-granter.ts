// Decides which open region of a disk may hold how many of the worker's write buffers. One per
// disk. A credit is a real buffer in hand: granted means acquired, so data within credit always has
// its memory. Owned by the write service; regions come and go through their RegionCredit.
//
//   RegionStart ─▶ waiting (arrival order) ─ minimum fits ─▶ open ─ RegionFinish, all written ─▶ gone
//                                                             │ ▲
//                                      spend (WriteData) ▼ │ grow, only while nobody waits
//                                                      recycled ─▶ refilled to the minimum first

import { assert } from '../../client/common/assert.ts'
import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { JobId } from '../../client/common/ids.ts'

/** Where write buffers come from: the ledger's write part. */
export interface BufferSource {
  /** All `count` buffers at once, or undefined when so many are not free. */
  tryAcquire(request: { readonly count: number; readonly jobId: JobId }): PooledBuffer[] | undefined
}

export interface CreditGranterOptions {
  readonly source: BufferSource
  /** Most buffers that all regions of this disk hold together. */
  readonly shareBuffers: number
  /** A region is kept at this many, or at all it can use when that is fewer. */
  readonly minimumBuffers: number
  /** A region that is likely to use more opens with so many; as with the minimum when not given. */
  readonly firstGrantBuffers?: number
  /** What a region grows to while no other waits. */
  readonly targetBuffers: number
  /** Most regions that hold credit at a time. */
  readonly openRegionsMax: number
  /** A suspect disk gets no grants; what is granted stays. `distribute` when that has changed. */
  readonly isSuspended: () => boolean
}

export interface RegionDemand {
  /** Whose memory it counts as. */
  readonly jobId: JobId
  /** Most buffers that the whole region can still use; 0 for an empty region. */
  readonly neededBuffers: number
  /** What it is likely to use in all; as `neededBuffers` when not given. */
  readonly likelyBuffers?: number
  /** Called with each grant, after the buffers are in hand; the first may be during `enter`. */
  readonly onGrant: (count: number) => void
}

/** One region's buffers. `close` exactly once; a taken buffer counts until it is recycled. */
export interface RegionCredit {
  /** Buffers granted and not yet spent. */
  readonly unspent: number
  /** Granted, or taken and not yet recycled. */
  readonly held: number
  /** Whether the region has got its minimum. */
  readonly isOpen: boolean
  /** Spends one credit; undefined when there is none: the peer sent beyond it. */
  take(): PooledBuffer | undefined
  /** Lowers what the region can still use, as its bytes arrive. */
  setNeeded(buffers: number): void
  /** The region takes no more: what is unspent goes back. */
  close(): void
}

interface Region {
  readonly jobId: JobId
  readonly likely: number
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
  #takenBuffers = 0
  #isDistributing = false
  #isDistributionDue = false
  #isStarved = false
  /** Whether the first of those that wait lacks memory, not its turn. */
  #isShort = false
  #writtenCount = 0

  constructor(options: CreditGranterOptions) {
    assert(options.minimumBuffers >= 1, 'a region needs at least one buffer')
    assert(
      options.shareBuffers >= options.minimumBuffers,
      'the share of a disk holds at least one region',
    )
    assert(
      (options.firstGrantBuffers ?? 0) <= options.shareBuffers,
      'the share of a disk holds the first grant',
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

  /** Those of them that wait for memory: the disk's share, or the source, is used up. */
  get regionsShortOfMemory(): number {
    return this.#isShort ? this.#waiting.length : 0
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
      jobId: demand.jobId,
      likely: demand.likelyBuffers ?? demand.neededBuffers,
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

  /** Gives out what can be given; to be called when the source may have buffers again. */
  distribute(): void {
    if (this.#isDistributing || this.#options.isSuspended()) return
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
    this.#isShort = false
    let region = this.#waiting[0]
    while (region !== undefined && this.#open.size < this.#options.openRegionsMax) {
      if (!this.#grantFirst(region)) {
        this.#isShort = true
        return
      }
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

  /**
   * All that a small region uses at once: it then lies in one write, and costs one message. Where so
   * much can't be had, the minimum lets it begin; but not while buffers are on their way to the disk.
   * They come back a few at a time, so where many regions wait each would get no more than its minimum.
   */
  #grantFirst(region: Region): boolean {
    const { firstGrantBuffers = 0 } = this.#options
    const minimum = this.#minimumOf(region)
    if (minimum === 0) return true
    const first = Math.min(firstGrantBuffers, region.likely, region.needed)
    if (first > minimum && this.#grant(region, first)) return true
    return (first <= minimum || this.#takenBuffers === 0) && this.#grant(region, minimum)
  }

  #grant(region: Region, count: number): boolean {
    if (this.#heldBuffers + count > this.#options.shareBuffers) return false
    const buffers = this.#options.source.tryAcquire({ count, jobId: region.jobId })
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
    return new HeldCredit(region, {
      take: () => this.#take(region),
      close: () => {
        this.#close(region)
      },
    })
  }

  /** Recycling it, wherever that happens, is what makes room for the next grant. */
  #take(region: Region): PooledBuffer | undefined {
    const buffer = region.buffers.pop()
    if (buffer === undefined) return undefined
    region.taken += 1
    this.#takenBuffers += 1
    return {
      bytes: buffer.bytes,
      recycle: () => {
        buffer.recycle()
        region.taken -= 1
        this.#takenBuffers -= 1
        this.#heldBuffers -= 1
        this.#writtenCount += 1
        this.#distributeSoon()
      },
    }
  }

  /** Once for all buffers of a batch that are recycled in one go. */
  #distributeSoon(): void {
    if (this.#isDistributionDue) return
    this.#isDistributionDue = true
    queueMicrotask(() => {
      this.#isDistributionDue = false
      this.distribute()
    })
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

/** A class, because objects with a getter of their own each have a shape of their own: slow to use. */
class HeldCredit implements RegionCredit {
  readonly #region: Region
  readonly take: RegionCredit['take']
  readonly close: RegionCredit['close']

  constructor(region: Region, granter: Pick<RegionCredit, 'take' | 'close'>) {
    this.#region = region
    this.take = granter.take
    this.close = granter.close
  }

  get unspent(): number {
    return this.#region.buffers.length
  }

  get held(): number {
    return heldOf(this.#region)
  }

  get isOpen(): boolean {
    return this.#region.state === 'open'
  }

  setNeeded(buffers: number): void {
    this.#region.needed = buffers
  }
}

function heldOf(region: Region): number {
  return region.buffers.length + region.taken
}
