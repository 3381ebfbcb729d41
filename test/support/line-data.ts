// Input files for the sort and word-count runs, made from a seed and written as a stream, so that a
// gigabyte costs no memory.

import { closeSync, openSync, writeSync } from 'node:fs'

/** xorshift128+-like 32-bit generator: fast, seedable, good enough for test data. */
export function seededIntegers(seed: number): (below: number) => number {
  let a = seed >>> 0 || 1
  let b = 0x9e3779b9
  return (below) => {
    let t = a
    a = b
    t ^= t << 13
    t ^= t >>> 17
    t ^= b ^ (b << 5)
    b = t >>> 0
    return (((a + b) >>> 0) % below) >>> 0
  }
}

/** Collects bytes and writes them in pieces of about a megabyte. */
class LineFile {
  readonly #file: number
  readonly #chunk = Buffer.allocUnsafe(1 << 20)
  #filled = 0
  bytes = 0

  constructor(path: string) {
    this.#file = openSync(path, 'w')
  }

  write(part: Uint8Array): void {
    for (let at = 0; at < part.length;) {
      if (this.#filled === this.#chunk.length) this.#flush()
      const length = Math.min(part.length - at, this.#chunk.length - this.#filled)
      this.#chunk.set(part.subarray(at, at + length), this.#filled)
      this.#filled += length
      at += length
    }
    this.bytes += part.length
  }

  close(): void {
    this.#flush()
    closeSync(this.#file)
  }

  #flush(): void {
    writeSync(this.#file, this.#chunk, 0, this.#filled)
    this.#filled = 0
  }
}

export interface LineDataSpec {
  readonly path: string
  readonly sizeBytes: number
  readonly seed: number
}

/** Lines of 3 to 17 words from a vocabulary of 20,000, about 70 bytes each. */
export function writeTextLines({ path, sizeBytes, seed }: LineDataSpec): void {
  const next = seededIntegers(seed)
  const words = Array.from({ length: 20_000 }, () =>
    Buffer.from(Array.from({ length: 2 + next(9) }, () => 97 + next(26))),
  )
  const file = new LineFile(path)
  const space = Buffer.from(' ')
  const newline = Buffer.from('\n')
  while (file.bytes < sizeBytes) {
    for (let left = 3 + next(15); left > 0; left--) {
      file.write(words[next(words.length)] ?? space)
      file.write(left === 1 ? newline : space)
    }
  }
  file.close()
}

/** Random bytes: lines of every length from empty to `longestBytes`, no newline at the end. */
export function writeBinaryLines(
  { path, sizeBytes, seed }: LineDataSpec,
  longestBytes: number,
): void {
  const next = seededIntegers(seed)
  const file = new LineFile(path)
  const noise = Buffer.from(Array.from({ length: 1 << 16 }, () => next(256)))
  for (let at = 0; at < noise.length; at++) if (noise[at] === 10) noise[at] = 11
  const newline = Buffer.from('\n')
  const writeNoise = (length: number) => {
    for (let left = length; left > 0;) {
      const from = next(noise.length)
      const part = noise.subarray(from, Math.min(noise.length, from + left))
      file.write(part)
      left -= part.length
    }
  }
  while (file.bytes < sizeBytes) {
    const kind = next(100)
    if (kind < 10) writeNoise(0)
    else if (kind < 98) writeNoise(1 + next(200))
    else if (kind < 99) writeNoise(next(100_000))
    else writeNoise(next(longestBytes))
    file.write(newline)
  }
  writeNoise(17)
  file.close()
}

/** Nine lines in ten are the same; the others are distinct. */
export function writeSkewedLines({ path, sizeBytes, seed }: LineDataSpec): void {
  const next = seededIntegers(seed)
  const file = new LineFile(path)
  const hot = Buffer.from(`${'the same key in nine lines of ten '.repeat(2)}\n`)
  while (file.bytes < sizeBytes) {
    if (next(10) < 9) file.write(hot)
    else file.write(Buffer.from(`${String(next(1 << 30))} and ${String(next(1 << 30))}\n`))
  }
  file.close()
}
