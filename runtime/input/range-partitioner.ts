// Divides keys among subpartitions by splitters, so that all of a subpartition sort before all of the
// next. A key that equals splitters may go to any subpartition that touches one of them: they take
// turns, and a key that most records have is spread.
//
//   subpartition 0 | splitter 0 | subpartition 1 | splitter 1 | subpartition 2 …

import { compareBytes, keyPrefix } from '../sort/record-order.ts'

export class RangePartitioner {
  readonly #splitters: readonly Uint8Array[]
  readonly #prefixes: Uint32Array
  readonly #spreadsEqual: boolean
  #turn: number

  /**
   * `splitters` in order; `spreadsEqual: false` keeps equal keys together. `turn` is where taking
   * turns begins: with the same one, another attempt at the same input gives the same division.
   */
  constructor(options: {
    readonly splitters: readonly Uint8Array[]
    readonly spreadsEqual: boolean
    readonly turn?: number
  }) {
    this.#splitters = options.splitters
    this.#prefixes = Uint32Array.from(options.splitters, (key) => keyPrefix(key, 0, key.length))
    this.#spreadsEqual = options.spreadsEqual
    this.#turn = options.turn ?? 0
  }

  subpartitionOf(bytes: Uint8Array, start: number, end: number): number {
    const prefix = keyPrefix(bytes, start, end)
    const first = this.#countBefore(bytes, start, end, prefix)
    if (!this.#spreadsEqual) return first
    let last = first
    while (last < this.#splitters.length && this.#compare(last, bytes, start, end, prefix) === 0) {
      last += 1
    }
    if (last === first) return first
    this.#turn = (this.#turn + 1) % 0x1000_0000
    return first + (this.#turn % (last - first + 1))
  }

  /** How many splitters sort before the key: binary search. */
  #countBefore(bytes: Uint8Array, start: number, end: number, prefix: number): number {
    let low = 0
    let high = this.#splitters.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(middle, bytes, start, end, prefix) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #compare(splitter: number, bytes: Uint8Array, start: number, end: number, prefix: number) {
    const difference = (this.#prefixes[splitter] ?? 0) - prefix
    if (difference !== 0) return difference
    const key = this.#splitters[splitter] ?? new Uint8Array(0)
    return compareBytes(key, 0, key.length, bytes, start, end)
  }
}

/** Splitters at even quantiles of `samples`: one fewer than `subpartitionCount`, or none. */
export function chooseSplitters(
  samples: readonly Uint8Array[],
  subpartitionCount: number,
): Uint8Array[] {
  if (samples.length === 0) return []
  const sorted = [...samples].sort((a, b) => Buffer.compare(a, b))
  return Array.from({ length: subpartitionCount - 1 }, (_, index) => {
    const at = Math.floor(((index + 1) * sorted.length) / subpartitionCount)
    return sorted[Math.min(at, sorted.length - 1)] ?? new Uint8Array(0)
  })
}
