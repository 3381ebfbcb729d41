// Randomness from a seed (sfc32). The same seed gives the same numbers for ever.

import type { Random } from '../../client/common/random.ts'

export class VirtualRandom implements Random {
  readonly #state: Uint32Array

  constructor(seed: number | string) {
    const text = String(seed)
    this.#state = Uint32Array.of(hash(`${text}/a`), hash(`${text}/b`), hash(`${text}/c`), 1)
    for (let round = 0; round < 12; round += 1) this.#next()
  }

  float(): number {
    return (this.#next() * 0x20_0000 + (this.#next() >>> 11)) / 0x20_0000_0000_0000
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    for (let index = 0; index < length; index += 1) bytes[index] = this.#next() >>> 24
    return bytes
  }

  /** Uniform in [min, max). */
  between(min: number, max: number): number {
    return min + this.float() * (max - min)
  }

  /** Uniform integer in [0, below). */
  integer(below: number): number {
    return Math.floor(this.float() * below)
  }

  chance(probability: number): boolean {
    return this.float() < probability
  }

  /** An independent source, so that more draws of one part don't change another's. */
  fork(name: string): VirtualRandom {
    return new VirtualRandom(`${this.#state.join('.')}/${name}`)
  }

  #next(): number {
    const [a = 0, b = 0, c = 0, counter = 0] = this.#state
    const result = (a + b + counter) >>> 0
    this.#state[0] = b ^ (b >>> 9)
    this.#state[1] = c + (c << 3)
    this.#state[2] = ((c << 21) | (c >>> 11)) + result
    this.#state[3] = counter + 1
    return result
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  return value >>> 0
}
