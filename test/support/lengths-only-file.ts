// A file of gigabytes that keeps the bytes that are not zero, and the lengths of all others. A model's
// payload is zeros, so what stays are the headers of entries, indexes and tables: the worker reads
// back exactly what it wrote. Only its end may be written over.

import { FileNode } from './virtual-file-tree.ts'

/** Bytes are looked at in steps of these sizes: zeros by the large one, the rest by the small. */
const largeStep = 4096
const smallStep = 64
const zeros = Buffer.alloc(largeStep)

export class LengthsOnlyFile extends FileNode {
  #sizeBytes = 0
  /** Ascending; of each kept piece its place, its length, and where in `#kept` it is. */
  readonly #positions: number[] = []
  readonly #lengths: number[] = []
  readonly #offsets: number[] = []
  #kept = Buffer.alloc(4096)
  #keptBytes = 0

  override get sizeBytes(): number {
    return this.#sizeBytes
  }

  override content(): Uint8Array {
    const bytes = new Uint8Array(this.#sizeBytes)
    this.read(bytes, 0)
    return bytes
  }

  override read(target: Uint8Array, position: number): number {
    const count = Math.max(0, Math.min(target.byteLength, this.#sizeBytes - position))
    target.fill(0, 0, count)
    for (let piece = this.#firstEndingAfter(position); piece < this.#positions.length; piece++) {
      const start = this.#positions[piece] ?? 0
      if (start >= position + count) break
      const from = Math.max(start, position)
      const to = Math.min(start + (this.#lengths[piece] ?? 0), position + count)
      const offset = (this.#offsets[piece] ?? 0) + from - start
      target.set(this.#kept.subarray(offset, offset + to - from), from - position)
    }
    return count
  }

  override write(parts: readonly Uint8Array[], position: number): void {
    const byteCount = parts.reduce((sum, part) => sum + part.byteLength, 0)
    if (position + byteCount < this.#sizeBytes) {
      throw new Error('a file that keeps lengths only is written at its end')
    }
    this.#cut(position)
    let at = position
    for (const part of parts) {
      this.#keepNonZero(Buffer.from(part.buffer, part.byteOffset, part.byteLength), at)
      at += part.byteLength
    }
    this.#sizeBytes = at
  }

  override truncate(sizeBytes: number): void {
    this.#cut(sizeBytes)
    this.#sizeBytes = sizeBytes
  }

  override flipBits(): void {
    throw new Error('a file that keeps lengths only is not damaged')
  }

  override sync(): void {
    return
  }

  override crash(): void {
    throw new Error('a file that keeps lengths only does not lose power')
  }

  #keepNonZero(part: Buffer, position: number): void {
    for (let from = 0; from < part.length; from += largeStep) {
      const to = Math.min(from + largeStep, part.length)
      if (isZero(part, from, to)) continue
      for (let start = from; start < to; start += smallStep) {
        const end = Math.min(start + smallStep, to)
        if (!isZero(part, start, end)) this.#keep(part.subarray(start, end), position + start)
      }
    }
  }

  #keep(bytes: Uint8Array, position: number): void {
    if (this.#keptBytes + bytes.length > this.#kept.length) {
      const grown = Buffer.alloc(this.#kept.length * 2)
      grown.set(this.#kept)
      this.#kept = grown
    }
    this.#kept.set(bytes, this.#keptBytes)
    this.#positions.push(position)
    this.#lengths.push(bytes.length)
    this.#offsets.push(this.#keptBytes)
    this.#keptBytes += bytes.length
  }

  /** Forgets what lies at or behind `position`. */
  #cut(position: number): void {
    while (this.#positions.length > 0) {
      const last = this.#positions.length - 1
      const start = this.#positions[last] ?? 0
      const length = this.#lengths[last] ?? 0
      if (start + length <= position) return
      if (start < position) {
        this.#lengths[last] = position - start
        return
      }
      this.#positions.pop()
      this.#lengths.pop()
      this.#offsets.pop()
    }
  }

  #firstEndingAfter(position: number): number {
    let low = 0
    let high = this.#positions.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const end = (this.#positions[middle] ?? 0) + (this.#lengths[middle] ?? 0)
      if (end <= position) low = middle + 1
      else high = middle
    }
    return low
  }
}

function isZero(bytes: Buffer, from: number, to: number): boolean {
  return bytes.compare(zeros, 0, to - from, from, to) === 0
}
