// Merges sorted runs into one order: a heap of cursors, the smallest head on top. Where records carry
// counts, those with the same key become one.

import { ok as assert } from 'node:assert/strict'
import { addCounts, countBytes } from './record-count.ts'
import type { KeySink, RunCursor } from './run-cursor.ts'

/** Where merged records go. Of each record the key comes in parts, then its end. */
export interface SortedSink extends KeySink {
  /** `count` as bytes where records have one; its memory is valid during the call. */
  end(count: Uint8Array | undefined): void
}

export class RunMerger {
  readonly #heap: RunCursor[]
  readonly #hasCounts: boolean
  readonly #count = new Uint8Array(countBytes)
  readonly #otherCount = new Uint8Array(countBytes)

  constructor(cursors: readonly RunCursor[], hasCounts: boolean) {
    this.#hasCounts = hasCounts
    this.#heap = cursors.filter((cursor) => !cursor.isAtEnd)
    for (let at = Math.floor(this.#heap.length / 2) - 1; at >= 0; at--) this.#siftDown(at)
  }

  get isAtEnd(): boolean {
    return this.#heap.length === 0
  }

  /** Length of the next record's key. */
  get keyLength(): number {
    return this.#top.keyLength
  }

  /** Hands the next record to `sink`. */
  next(sink: SortedSink): void {
    const top = this.#top
    if (!this.#hasCounts) {
      top.copyKey(sink)
      sink.end(undefined)
      this.#advance(0)
      return
    }
    top.readTrailer(this.#count)
    this.#gatherCounts(top)
    top.copyKey(sink)
    sink.end(this.#count)
    this.#advance(0)
  }

  get #top(): RunCursor {
    const top = this.#heap[0]
    assert(top !== undefined, 'a merger at its end has no record')
    return top
  }

  /**
   * Adds the counts of the other heads with the same key. Each run has a key once, so all that are
   * equal to the top are heads, and each next one is a child of the top when the last has moved on.
   */
  #gatherCounts(top: RunCursor): void {
    for (;;) {
      const at = this.#smallerChild(0)
      const other = at === undefined ? undefined : this.#heap[at]
      if (at === undefined || other === undefined || top.compare(other) !== 0) return
      other.readTrailer(this.#otherCount)
      addCounts(this.#count, this.#otherCount)
      this.#advance(at)
    }
  }

  #advance(at: number): void {
    const cursor = this.#heap[at]
    cursor?.advance()
    if (cursor?.isAtEnd === true) {
      const last = this.#heap.pop()
      if (last !== undefined && last !== cursor) this.#heap[at] = last
    }
    this.#siftDown(at)
  }

  #smallerChild(at: number): number | undefined {
    const left = this.#heap[2 * at + 1]
    const right = this.#heap[2 * at + 2]
    if (left === undefined) return undefined
    return right === undefined || left.compare(right) <= 0 ? 2 * at + 1 : 2 * at + 2
  }

  #siftDown(from: number): void {
    let at = from
    for (;;) {
      const child = this.#smallerChild(at)
      const here = this.#heap[at]
      const below = child === undefined ? undefined : this.#heap[child]
      if (child === undefined || here === undefined || below === undefined) return
      if (here.compare(below) <= 0) return
      this.#heap[at] = below
      this.#heap[child] = here
      at = child
    }
  }
}
