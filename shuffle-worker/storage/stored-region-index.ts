// The decoded index row of one region: where each subpartition's run lies. Shared by the readers of
// its partition, and counted in the ledger until the last of them releases it.

import { assert } from '../../client/common/assert.ts'
import type { IndexRow, RegionPlace } from './partition-format.ts'
import type { RegionIndex, RegionRange, RegionRun } from './storage-types.ts'

/** Bytes of memory per run: number, end and count. */
export const runMemoryBytes = 16

/** Runs in ascending order with prefix sums, so that any range is two look-ups. */
export class RunTable {
  readonly regionIndex: number
  readonly isBroadcast: boolean
  readonly position: number
  readonly byteLength: number
  readonly entryCount: number
  readonly #subpartitions: Uint32Array
  /** End of each run, from the region's beginning. */
  readonly #ends: Float64Array
  readonly #entryCounts: Uint32Array

  constructor(regionIndex: number, row: IndexRow, region: RegionPlace, basePosition: number) {
    this.regionIndex = regionIndex
    this.isBroadcast = row.isBroadcast
    this.position = basePosition + region.position
    this.byteLength = region.byteLength
    this.entryCount = region.entryCount
    this.#subpartitions = row.subpartitions
    this.#ends = prefixSums(row.byteLengths)
    this.#entryCounts = row.entryCounts
  }

  get runCount(): number {
    return this.#subpartitions.length
  }

  range(first: number, last: number): RegionRange {
    if (this.isBroadcast) return this
    const from = this.#lowerBound(first)
    const to = this.#lowerBound(last + 1)
    const begin = this.#beginOf(from)
    let entryCount = 0
    for (let run = from; run < to; run += 1) entryCount += this.#entryCounts[run] ?? 0
    return { position: this.position + begin, byteLength: this.#beginOf(to) - begin, entryCount }
  }

  *runs(first: number, last: number): Iterable<RegionRun> {
    if (this.isBroadcast) {
      if (this.entryCount === 0) return
      for (let subpartition = first; subpartition <= last; subpartition += 1) {
        const { position, byteLength, entryCount } = this
        yield { subpartition, position, byteLength, entryCount }
      }
      return
    }
    for (let run = this.#lowerBound(first); run < this.runCount; run += 1) {
      const subpartition = this.#subpartitions[run] ?? 0
      if (subpartition > last) return
      const begin = this.#beginOf(run)
      yield {
        subpartition,
        position: this.position + begin,
        byteLength: this.#beginOf(run + 1) - begin,
        entryCount: this.#entryCounts[run] ?? 0,
      }
    }
  }

  #beginOf(run: number): number {
    return run === 0 ? 0 : (this.#ends[run - 1] ?? 0)
  }

  /** The first run whose subpartition is not below. */
  #lowerBound(subpartition: number): number {
    let low = 0
    let high = this.runCount
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#subpartitions[middle] ?? 0) < subpartition) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** One holder's hand on a shared {@link RunTable}. */
export class HeldRegionIndex implements RegionIndex {
  readonly #table: RunTable
  #release: (() => void) | undefined

  constructor(table: RunTable, release: () => void) {
    this.#table = table
    this.#release = release
  }

  get regionIndex(): number {
    return this.#table.regionIndex
  }

  get isBroadcast(): boolean {
    return this.#table.isBroadcast
  }

  get position(): number {
    return this.#table.position
  }

  get byteLength(): number {
    return this.#table.byteLength
  }

  get entryCount(): number {
    return this.#table.entryCount
  }

  range(first: number, last: number): RegionRange {
    return this.#table.range(first, last)
  }

  runs(first: number, last: number): Iterable<RegionRun> {
    return this.#table.runs(first, last)
  }

  release(): void {
    const release = this.#release
    assert(release !== undefined, 'a region index is released once')
    this.#release = undefined
    release()
  }
}

function prefixSums(lengths: Float64Array): Float64Array {
  let sum = 0
  return lengths.map((length) => (sum += length))
}
