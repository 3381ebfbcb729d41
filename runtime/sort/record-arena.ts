// Records in one piece of memory, and their order. Nothing is allocated per record: bytes grow from
// the front, a table of offsets from the back, and what sorting needs lies between them.
//
//   | bytes of records 0, 1, 2 … → | keys, indices, two scratch arrays |   free   | ← … offset 1, offset 0 |
//
// Sorting is by four bytes of the keys at a time: a radix sort of (four bytes, index) pairs, then the
// groups that tie by their next four bytes. Small groups are sorted by comparing whole keys.

import { ok as assert } from 'node:assert/strict'
import { compareBytes, keyPrefix } from './record-order.ts'

/** Memory of a record besides its bytes: its offset, and two (key, index) pairs while sorting. */
export const arenaBytesPerRecord = 20

/** Two spare words: the end of the last record, and the alignment of the arrays. */
const arenaSpareBytes = 8

/** Up to here an insertion sort is faster than counting. */
const insertionSortMax = 24

/** A group of records that agree in all key bytes before `depth`. */
interface Group {
  readonly low: number
  readonly high: number
  readonly depth: number
}

export class RecordArena {
  readonly bytes: Uint8Array
  readonly #words: Uint32Array
  readonly #trailerBytes: number
  #usedBytes = 0
  #count = 0

  /** `trailerBytes` at the end of each record are no part of its key. */
  constructor(options: { readonly capacityBytes: number; readonly trailerBytes: number }) {
    const capacity = Math.floor(options.capacityBytes / 4) * 4
    assert(capacity > arenaBytesPerRecord + arenaSpareBytes, 'an arena holds at least a record')
    const memory = new ArrayBuffer(capacity)
    this.bytes = new Uint8Array(memory)
    this.#words = new Uint32Array(memory)
    this.#trailerBytes = options.trailerBytes
  }

  get count(): number {
    return this.#count
  }

  /** Whether a record of this length would fit into the empty arena. */
  canEverHold(length: number): boolean {
    return length + arenaBytesPerRecord + arenaSpareBytes <= this.bytes.length
  }

  /** Copies a record; `false`, and nothing is changed, when there is no room. */
  add(from: Uint8Array, start: number, end: number): boolean {
    const length = end - start
    const needed = arenaBytesPerRecord * (this.#count + 1) + arenaSpareBytes
    if (this.#usedBytes + length + needed > this.bytes.length) return false
    copyBytes(from, start, this.bytes, this.#usedBytes, length)
    this.#words[this.#words.length - 1 - this.#count] = this.#usedBytes
    this.#count += 1
    this.#usedBytes += length
    return true
  }

  clear(): void {
    this.#usedBytes = 0
    this.#count = 0
  }

  startOf(record: number): number {
    return this.#words[this.#words.length - 1 - record] ?? 0
  }

  endOf(record: number): number {
    return record + 1 < this.#count ? this.startOf(record + 1) : this.#usedBytes
  }

  /** The records in order of their keys; valid until the arena is added to or cleared. */
  sort(): Uint32Array {
    const count = this.#count
    const first = Math.ceil(this.#usedBytes / 4)
    const part = (index: number) =>
      this.#words.subarray(first + index * count, first + (index + 1) * count)
    const sorter = new GroupSorter(this, this.#trailerBytes, {
      keys: part(0),
      indices: part(1),
      spareKeys: part(2),
      spareIndices: part(3),
    })
    return sorter.sort()
  }
}

interface SortMemory {
  readonly keys: Uint32Array
  readonly indices: Uint32Array
  readonly spareKeys: Uint32Array
  readonly spareIndices: Uint32Array
}

class GroupSorter {
  readonly #arena: RecordArena
  readonly #trailerBytes: number
  readonly #keys: Uint32Array
  readonly #indices: Uint32Array
  readonly #spareKeys: Uint32Array
  readonly #spareIndices: Uint32Array
  /** One histogram of 256 for each of the four bytes. */
  readonly #counts = new Uint32Array(1024)
  readonly #groups: Group[] = []

  constructor(arena: RecordArena, trailerBytes: number, memory: SortMemory) {
    this.#arena = arena
    this.#trailerBytes = trailerBytes
    this.#keys = memory.keys
    this.#indices = memory.indices
    this.#spareKeys = memory.spareKeys
    this.#spareIndices = memory.spareIndices
  }

  sort(): Uint32Array {
    const count = this.#indices.length
    for (let index = 0; index < count; index++) this.#indices[index] = index
    this.#groups.push({ low: 0, high: count, depth: 0 })
    for (let group = this.#groups.pop(); group !== undefined; group = this.#groups.pop()) {
      if (group.high - group.low <= insertionSortMax) this.#insertionSort(group)
      else this.#radixSort(group)
    }
    return this.#indices
  }

  #keyEnd(record: number): number {
    return this.#arena.endOf(record) - this.#trailerBytes
  }

  #insertionSort({ low, high, depth }: Group): void {
    const indices = this.#indices
    for (let at = low + 1; at < high; at++) {
      const record = indices[at] ?? 0
      let hole = at
      while (hole > low && this.#isBefore(record, indices[hole - 1] ?? 0, depth)) {
        indices[hole] = indices[hole - 1] ?? 0
        hole -= 1
      }
      indices[hole] = record
    }
  }

  #isBefore(a: number, b: number, depth: number): boolean {
    const arena = this.#arena
    const bytes = arena.bytes
    return (
      compareBytes(
        bytes,
        arena.startOf(a) + depth,
        this.#keyEnd(a),
        bytes,
        arena.startOf(b) + depth,
        this.#keyEnd(b),
      ) < 0
    )
  }

  #radixSort(group: Group): void {
    const { low, high, depth } = group
    this.#counts.fill(0)
    const counts = this.#counts
    for (let at = low; at < high; at++) {
      const record = this.#indices[at] ?? 0
      const key = keyPrefix(
        this.#arena.bytes,
        this.#arena.startOf(record) + depth,
        this.#keyEnd(record),
      )
      this.#keys[at] = key
      for (let byte = 0; byte < 4; byte++) {
        const slot = byte * 256 + ((key >>> (byte * 8)) & 255)
        counts[slot] = (counts[slot] ?? 0) + 1
      }
    }
    for (let byte = 0; byte < 4; byte++) this.#distribute(group, byte)
    this.#pushTies(group)
  }

  /** One stable pass by one byte of the keys, skipped when it is the same in all. */
  #distribute({ low, high }: Group, byte: number): void {
    const counts = this.#counts.subarray(byte * 256, byte * 256 + 256)
    const first = ((this.#keys[low] ?? 0) >>> (byte * 8)) & 255
    if (counts[first] === high - low) return
    let position = low
    for (let slot = 0; slot < 256; slot++) {
      const count = counts[slot] ?? 0
      counts[slot] = position
      position += count
    }
    const keys = this.#keys
    const indices = this.#indices
    for (let at = low; at < high; at++) {
      const key = keys[at] ?? 0
      const slot = (key >>> (byte * 8)) & 255
      const target = counts[slot] ?? 0
      counts[slot] = target + 1
      this.#spareKeys[target] = key
      this.#spareIndices[target] = indices[at] ?? 0
    }
    keys.set(this.#spareKeys.subarray(low, high), low)
    indices.set(this.#spareIndices.subarray(low, high), low)
  }

  #pushTies({ low, high, depth }: Group): void {
    const keys = this.#keys
    for (let start = low; start < high;) {
      const key = keys[start]
      let end = start + 1
      while (end < high && keys[end] === key) end += 1
      if (end - start > 1) this.#pushTie({ low: start, high: end, depth })
      start = end
    }
  }

  /**
   * Records whose keys agree in these four bytes, missing ones taken as zeros: those that end here
   * come first, by length, and are in order then; the others go on with their next four bytes.
   */
  #pushTie({ low, high, depth }: Group): void {
    if (high - low <= insertionSortMax) {
      // At once, not as a group: there can be half as many of these as records.
      this.#insertionSort({ low, high, depth })
      return
    }
    let target = low
    for (let left = 0; left <= 5; left++) {
      const groupStart = target
      for (let at = low; at < high; at++) {
        const record = this.#indices[at] ?? 0
        const length = this.#keyEnd(record) - this.#arena.startOf(record) - depth
        if (Math.min(length, 5) === left) this.#spareIndices[target++] = record
      }
      if (left === 5 && target - groupStart > 1) {
        this.#groups.push({ low: groupStart, high: target, depth: depth + 4 })
      }
    }
    assert(target === high, 'every record of a tie has its place')
    this.#indices.set(this.#spareIndices.subarray(low, high), low)
  }
}

/** Short copies in a loop: cheaper than the two views that `set` would need. */
function copyBytes(
  from: Uint8Array,
  start: number,
  to: Uint8Array,
  position: number,
  length: number,
): void {
  if (length > 64) {
    to.set(from.subarray(start, start + length), position)
    return
  }
  for (let index = 0; index < length; index++) to[position + index] = from[start + index] ?? 0
}
