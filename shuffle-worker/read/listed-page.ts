// Up to 4,096 entries of one channel's list on one disk that have not been begun, in the order of the
// sweep. Which partitions they are is shared with the other channels that list the same; a channel's
// own are a bit per entry, its range (once, or eight bytes per entry where they differ), and where
// some are resumed 24 bytes per entry. Owned by an entry list.
//
//   shared   partitions  [ p3 | p7 | p9 | p12 ]   by file order
//            offsets     [  2 |  0 |  3 |   1 ]   index in the channel's list, less firstIndex
//   own      listed bits [  1 |  0 |  1 |   1 ]   0: begun, failed or dropped

import { assert } from '../../client/common/assert.ts'
import { fromBeginning, type ReadStart } from '../../client/protocol/partition-list.ts'
import type { Reservation } from '../memory/memory-ledger.ts'
import type { MapPartition } from '../storage/storage-types.ts'
import type { ListMemory, SharedOrder } from './list-memory.ts'

/** One entry of a list whose partition is here. */
export interface ListedEntry {
  readonly index: number
  readonly partition: MapPartition
  readonly firstSubpartition: number
  readonly lastSubpartition: number
  readonly start: ReadStart
}

export const pageEntriesMax = 4096
/** Indexes of a page lie within so many. */
export const pageIndexSpan = 2 ** 16
const wordBits = 32

export class ListedPage {
  readonly firstIndex: number
  readonly lastIndex: number
  readonly #order: SharedOrder
  readonly #reservation: Reservation
  readonly #listed: Uint32Array
  readonly #ranges: Uint32Array
  readonly #starts: Float64Array | undefined
  #count: number
  #isReleased = false

  /** Takes its memory; throws BUSY or LIMIT_EXCEEDED and holds nothing then. */
  constructor(entries: readonly ListedEntry[], memory: ListMemory) {
    assert(entries.length > 0 && entries.length <= pageEntriesMax, 'a page is of a bounded size')
    const sorted = inSweepOrder(entries)
    this.firstIndex = entries.reduce((least, { index }) => Math.min(least, index), Infinity)
    this.lastIndex = entries.reduce((most, { index }) => Math.max(most, index), 0)
    assert(this.lastIndex - this.firstIndex < pageIndexSpan, 'the indexes of a page are near')
    this.#count = sorted.length
    this.#listed = allSet(sorted.length)
    this.#ranges = rangesOf(sorted)
    this.#starts = startsOf(sorted)
    const ownBytes = this.#listed.byteLength + this.#ranges.byteLength
    const bytes = ownBytes + (this.#starts?.byteLength ?? 0)
    this.#reservation = memory.reserve(bytes, sorted[0]?.partition.key.jobId)
    try {
      this.#order = memory.share(
        sorted.map(({ partition }) => partition),
        offsetsOf(sorted, this.firstIndex),
      )
    } catch (error) {
      this.#reservation.release()
      throw error
    }
  }

  /** Entries still listed. */
  get count(): number {
    return this.#count
  }

  /** The first slot at or behind `fileOrder` that is still listed. */
  nextFrom(fileOrder: number): number | undefined {
    return this.#nextListed(this.#slotFrom(fileOrder))
  }

  /** The first slot behind `slot` of the same partition that is still listed. */
  nextOfSame(slot: number): number | undefined {
    const next = this.#nextListed(slot + 1)
    if (next === undefined || this.partitionAt(next) !== this.partitionAt(slot)) return undefined
    return next
  }

  slotOf(index: number): number | undefined {
    if (index < this.firstIndex || index > this.lastIndex) return undefined
    const slot = this.#order.offsets.indexOf(index - this.firstIndex)
    return slot >= 0 && this.#isListed(slot) ? slot : undefined
  }

  partitionAt(slot: number): MapPartition {
    const partition = this.#order.partitions[slot]
    assert(partition !== undefined, 'a slot lies in its page')
    return partition
  }

  /** From now on it is not listed. */
  take(slot: number): ListedEntry {
    assert(this.#isListed(slot), 'an entry is taken once')
    const entry = this.#entryAt(slot)
    this.#listed[slot >>> 5] = (this.#listed[slot >>> 5] ?? 0) & ~(1 << (slot & 31))
    this.#count -= 1
    return entry
  }

  *entries(): Iterable<ListedEntry> {
    for (let slot = this.#nextListed(0); slot !== undefined; slot = this.#nextListed(slot + 1)) {
      yield this.#entryAt(slot)
    }
  }

  /** Exactly once. */
  release(): void {
    assert(!this.#isReleased, 'a page is released once')
    this.#isReleased = true
    this.#order.release()
    this.#reservation.release()
  }

  #entryAt(slot: number): ListedEntry {
    const range = this.#ranges.length === 2 ? 0 : 2 * slot
    return {
      index: this.firstIndex + (this.#order.offsets[slot] ?? 0),
      partition: this.partitionAt(slot),
      firstSubpartition: this.#ranges[range] ?? 0,
      lastSubpartition: this.#ranges[range + 1] ?? 0,
      start: this.#startAt(slot),
    }
  }

  #startAt(slot: number): ReadStart {
    const starts = this.#starts
    if (starts === undefined) return fromBeginning
    return {
      regionIndex: starts[3 * slot] ?? 0,
      subpartition: starts[3 * slot + 1] ?? 0,
      byteOffset: starts[3 * slot + 2] ?? 0,
    }
  }

  #isListed(slot: number): boolean {
    return (((this.#listed[slot >>> 5] ?? 0) >>> (slot & 31)) & 1) === 1
  }

  #nextListed(from: number): number | undefined {
    const length = this.#order.partitions.length
    let slot = from
    while (slot < length) {
      const rest = (this.#listed[slot >>> 5] ?? 0) >>> (slot & 31)
      // The lowest bit that is set.
      if (rest !== 0) return slot + (wordBits - 1 - Math.clz32(rest & -rest))
      slot = (slot | (wordBits - 1)) + 1
    }
    return undefined
  }

  #slotFrom(fileOrder: number): number {
    const { partitions } = this.#order
    let low = 0
    let high = partitions.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((partitions[middle]?.fileOrder ?? 0) < fileOrder) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Lists mostly come in the order of allocation, which is the order of the sweep. */
function inSweepOrder(entries: readonly ListedEntry[]): readonly ListedEntry[] {
  let last = -Infinity
  const isSorted = entries.every(({ partition: { fileOrder } }) => {
    const isBehind = fileOrder >= last
    last = fileOrder
    return isBehind
  })
  if (isSorted) return entries
  return [...entries].sort((a, b) => a.partition.fileOrder - b.partition.fileOrder)
}

/** Filled in a loop: `Uint16Array.from` costs ten times that. */
function offsetsOf(entries: readonly ListedEntry[], firstIndex: number): Uint16Array {
  const offsets = new Uint16Array(entries.length)
  entries.forEach(({ index }, slot) => {
    offsets[slot] = index - firstIndex
  })
  return offsets
}

function allSet(length: number): Uint32Array {
  const words = new Uint32Array(Math.ceil(length / wordBits)).fill(0xffff_ffff)
  const rest = length % wordBits
  if (rest > 0) words[words.length - 1] = 2 ** rest - 1
  return words
}

/** One pair when all have the same. */
function rangesOf(entries: readonly ListedEntry[]): Uint32Array {
  const [first] = entries
  const isUniform = entries.every(
    (each) =>
      each.firstSubpartition === first?.firstSubpartition &&
      each.lastSubpartition === first.lastSubpartition,
  )
  const shown = isUniform ? entries.slice(0, 1) : entries
  return Uint32Array.from(
    shown.flatMap(({ firstSubpartition, lastSubpartition }) => [
      firstSubpartition,
      lastSubpartition,
    ]),
  )
}

function startsOf(entries: readonly ListedEntry[]): Float64Array | undefined {
  const isAnyResumed = entries.some(
    ({ start }) => start.regionIndex > 0 || start.subpartition > 0 || start.byteOffset > 0,
  )
  if (!isAnyResumed) return undefined
  return Float64Array.from(
    entries.flatMap(({ start }) => [start.regionIndex, start.subpartition, start.byteOffset]),
  )
}
