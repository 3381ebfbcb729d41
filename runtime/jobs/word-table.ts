// Words and how often each was seen, in one piece of memory of fixed size: open addressing over a
// byte arena. When it is full its owner takes everything out and goes on with an empty one.

import { ok as assert } from 'node:assert/strict'

/** Memory of a word besides its bytes: two slots, its start, its end, its hash, its count. */
const bytesPerWord = 28

/** Words are on average about this long in text; more slots than needed cost less than too few. */
const wordBytesExpected = 12

export class WordTable {
  readonly #bytes: Uint8Array
  readonly #wordsMax: number
  /** Index of the word plus one, 0 for a free slot. */
  readonly #slots: Uint32Array
  readonly #starts: Uint32Array
  readonly #hashes: Uint32Array
  readonly #counts: Float64Array
  #count = 0
  #usedBytes = 0

  constructor(memoryBytes: number) {
    this.#wordsMax = Math.floor(memoryBytes / (bytesPerWord + wordBytesExpected))
    assert(this.#wordsMax >= 16, 'a word table holds at least some words')
    const slotCount = 2 ** Math.floor(Math.log2(this.#wordsMax * 2))
    this.#slots = new Uint32Array(slotCount)
    this.#starts = new Uint32Array(this.#wordsMax + 1)
    this.#hashes = new Uint32Array(this.#wordsMax)
    this.#counts = new Float64Array(this.#wordsMax)
    this.#bytes = new Uint8Array(this.#wordsMax * wordBytesExpected)
  }

  get count(): number {
    return this.#count
  }

  /** Counts a word; `false`, and nothing is changed, when there is no room for a new one. */
  add(bytes: Uint8Array, start: number, end: number): boolean {
    const hash = hashOf(bytes, start, end)
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (let found = this.#slots[slot] ?? 0; found !== 0; found = this.#slots[slot] ?? 0) {
      if (this.#hashes[found - 1] === hash && this.#isWord(found - 1, bytes, start, end)) {
        this.#counts[found - 1] = (this.#counts[found - 1] ?? 0) + 1
        return true
      }
      slot = (slot + 1) & mask
    }
    return this.#insert(slot, hash, bytes, start, end)
  }

  /** The words and counts, in no order. The memory is valid until {@link clear}. */
  *entries(): Generator<
    {
      readonly bytes: Uint8Array
      readonly start: number
      readonly end: number
      readonly count: number
    },
    void,
    void
  > {
    for (let word = 0; word < this.#count; word++) {
      yield {
        bytes: this.#bytes,
        start: this.#starts[word] ?? 0,
        end: this.#starts[word + 1] ?? 0,
        count: this.#counts[word] ?? 0,
      }
    }
  }

  clear(): void {
    this.#slots.fill(0)
    this.#count = 0
    this.#usedBytes = 0
  }

  #insert(slot: number, hash: number, bytes: Uint8Array, start: number, end: number): boolean {
    const length = end - start
    const word = this.#count
    // A quarter of the slots stays free, so that searches end soon.
    const isFull = word >= this.#wordsMax || word * 4 >= this.#slots.length * 3
    if (isFull || this.#usedBytes + length > this.#bytes.length) return false
    this.#bytes.set(bytes.subarray(start, end), this.#usedBytes)
    this.#usedBytes += length
    this.#starts[word + 1] = this.#usedBytes
    this.#hashes[word] = hash
    this.#counts[word] = 1
    this.#slots[slot] = word + 1
    this.#count += 1
    return true
  }

  #isWord(word: number, bytes: Uint8Array, start: number, end: number): boolean {
    const from = this.#starts[word] ?? 0
    if ((this.#starts[word + 1] ?? 0) - from !== end - start) return false
    for (let index = 0; index < end - start; index++) {
      if (this.#bytes[from + index] !== bytes[start + index]) return false
    }
    return true
  }
}

/** FNV-1a, finished so that the low bits depend on all bytes. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let index = start; index < end; index++) {
    hash = Math.imul(hash ^ (bytes[index] ?? 0), 0x01000193)
  }
  return (hash ^ (hash >>> 15)) >>> 0
}
