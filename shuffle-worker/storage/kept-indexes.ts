// Indexes of committed partitions that stay in memory between their reads: region tables and index
// rows, from the moment they were written, so that the sweep of a disk with heads needs no jump to
// the end of a file before it reads it. At most half of the index memory, counted in the ledger; the
// other half is always there for those who have to read an index first. Owned by the data store.
//
// Readers go round in circles, and a circle that is larger than what fits would push out everything
// just before it is needed again. So what is kept stays, and makes room only when nobody has used it
// for a minute.

import { assert } from '../../client/common/assert.ts'
import type { Clock } from '../../client/common/clock.ts'
import type { JobId } from '../../client/common/ids.ts'
import type { MemoryLedger, Reservation } from '../memory/memory-ledger.ts'
import { regionMemoryBytes, type RegionPlace } from './partition-format.ts'
import { runMemoryBytes, type RunTable } from './stored-region-index.ts'

export interface KeptIndexesSettings {
  readonly clock: Clock
  readonly ledger: Pick<MemoryLedger, 'tryReserve' | 'partBytes'>
}

/** What is kept of one partition. `drop` when it is released or its write has failed. */
export interface KeptIndex {
  /** The region table, if it is kept; counts as a use. */
  readonly regions: readonly RegionPlace[] | undefined
  row(regionIndex: number): RunTable | undefined
  /** Keeps it if there is room. */
  keepRegions(regions: readonly RegionPlace[]): void
  keepRow(table: RunTable): void
  /** While it is read it is not pushed out, so that all that readers see is counted. */
  pin(): void
  unpin(): void
  drop(): void
}

/** Not used for so long, it makes room for others. */
const unusedMs = 60_000
/** An object with a map, and its place in the order of use. */
const partitionMemoryBytes = 256
const rowMemoryBytes = 160

export class KeptIndexes {
  readonly #settings: KeptIndexesSettings
  readonly #bytesMax: number
  /** Those that keep something, the one unused longest first. */
  readonly #inUseOrder = new Set<Kept>()
  #bytes = 0
  #isClosed = false

  constructor(settings: KeptIndexesSettings) {
    this.#settings = settings
    this.#bytesMax = Math.floor(settings.ledger.partBytes('index') / 2)
  }

  /** Counted in the ledger's index part. */
  get bytes(): number {
    return this.#bytes
  }

  of(jobId: JobId): KeptIndex {
    return new Kept(jobId, this)
  }

  /** Memory for something of `kept`; undefined when there is no room. */
  reserve(kept: Kept, bytes: number): Reservation | undefined {
    if (this.#isClosed) return undefined
    const needed = this.#inUseOrder.has(kept) ? bytes : bytes + partitionMemoryBytes
    if (!this.#makeRoom(needed)) return undefined
    const { ledger } = this.#settings
    const reservation = ledger.tryReserve({ purpose: 'index', bytes: needed, jobId: kept.jobId })
    if (reservation === undefined) return undefined
    this.#bytes += needed
    this.used(kept)
    return reservation
  }

  used(kept: Kept): void {
    kept.usedMs = this.#settings.clock.nowMs()
    this.#inUseOrder.delete(kept)
    this.#inUseOrder.add(kept)
  }

  release(kept: Kept, reservations: readonly Reservation[]): void {
    this.#inUseOrder.delete(kept)
    for (const reservation of reservations) {
      this.#bytes -= reservation.bytes
      reservation.release()
    }
    assert(this.#bytes >= 0, 'what is kept is counted once')
  }

  /** The store stops: nothing is kept from now on. Idempotent. */
  close(): void {
    this.#isClosed = true
    for (const kept of [...this.#inUseOrder]) kept.drop()
  }

  #makeRoom(bytes: number): boolean {
    const nowMs = this.#settings.clock.nowMs()
    for (const oldest of this.#inUseOrder) {
      if (this.#bytes + bytes <= this.#bytesMax) return true
      if (nowMs - oldest.usedMs < unusedMs) return false
      if (!oldest.isPinned) oldest.clear()
    }
    return this.#bytes + bytes <= this.#bytesMax
  }
}

class Kept implements KeptIndex {
  readonly jobId: JobId
  usedMs = 0
  readonly #owner: KeptIndexes
  readonly #reservations: Reservation[] = []
  readonly #rows = new Map<number, RunTable>()
  #regions: readonly RegionPlace[] | undefined
  #pins = 0
  #isDropped = false

  constructor(jobId: JobId, owner: KeptIndexes) {
    this.jobId = jobId
    this.#owner = owner
  }

  get isPinned(): boolean {
    return this.#pins > 0
  }

  get regions(): readonly RegionPlace[] | undefined {
    if (this.#regions !== undefined) this.#owner.used(this)
    return this.#regions
  }

  row(regionIndex: number): RunTable | undefined {
    const table = this.#rows.get(regionIndex)
    if (table !== undefined) this.#owner.used(this)
    return table
  }

  keepRegions(regions: readonly RegionPlace[]): void {
    if (this.#regions !== undefined || !this.#reserve(regions.length * regionMemoryBytes)) return
    this.#regions = regions
  }

  keepRow(table: RunTable): void {
    if (this.#rows.has(table.regionIndex)) return
    if (!this.#reserve(rowMemoryBytes + table.runCount * runMemoryBytes)) return
    this.#rows.set(table.regionIndex, table)
  }

  pin(): void {
    this.#pins += 1
  }

  unpin(): void {
    this.#pins -= 1
    assert(this.#pins >= 0, 'a kept index is unpinned once for each pin')
    if (this.#isDropped && this.#pins === 0) this.clear()
  }

  drop(): void {
    this.#isDropped = true
    if (this.#pins === 0) this.clear()
  }

  clear(): void {
    this.#regions = undefined
    this.#rows.clear()
    this.#owner.release(this, this.#reservations.splice(0))
  }

  #reserve(bytes: number): boolean {
    if (this.#isDropped) return false
    const reservation = this.#owner.reserve(this, bytes)
    if (reservation !== undefined) this.#reservations.push(reservation)
    return reservation !== undefined
  }
}
