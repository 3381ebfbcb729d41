// What an InputGate hands out: the records of one entry of one run, as views into pooled memory, or
// one event. Whoever takes a batch from the gate recycles it; after that its views are not to be
// touched any more.

import { assert } from '../common/assert.ts'
import type { PartitionKey } from '../common/ids.ts'

/** Where a batch comes from. */
export interface BatchOrigin {
  /** Index in the list that the gate was created with. */
  readonly inputIndex: number
  readonly key: PartitionKey
  /** The subpartition served: for broadcast data each one of the range in turn. */
  readonly subpartition: number
  readonly regionIndex: number
}

/** Records of one run, in the order in which they were emitted. */
export class RecordBatch {
  readonly kind = 'records'
  readonly origin: BatchOrigin
  readonly recordCount: number
  /** Bytes of the records, without their framing. */
  readonly byteCount: number
  readonly #memory: Uint8Array
  readonly #start: number
  readonly #head: Uint8Array | undefined
  #release: (() => void) | undefined

  constructor(options: {
    readonly origin: BatchOrigin
    readonly recordCount: number
    readonly byteCount: number
    /** A first record that had begun in an earlier entry; whole, in memory of its own. */
    readonly head: Uint8Array | undefined
    readonly memory: Uint8Array
    /** Where in `memory` the framed records begin that follow `head`. */
    readonly start: number
    readonly release: () => void
  }) {
    this.origin = options.origin
    this.recordCount = options.recordCount
    this.byteCount = options.byteCount
    this.#head = options.head
    this.#memory = options.memory
    this.#start = options.start
    this.#release = options.release
  }

  /**
   * The fast way through: calls `visit` with each record as a range of bytes, without making an
   * object for it.
   */
  forEach(visit: (bytes: Uint8Array, start: number, end: number) => void): void {
    assert(this.#release !== undefined, 'a recycled batch is not read')
    let left = this.recordCount
    if (this.#head !== undefined) {
      visit(this.#head, 0, this.#head.length)
      left -= 1
    }
    const bytes = this.#memory
    let position = this.#start
    for (; left > 0; left -= 1) {
      const end = position + 4 + recordLength(bytes, position)
      visit(bytes, position + 4, end)
      position = end
    }
  }

  /** Each record as a view, valid until {@link recycle}. */
  *[Symbol.iterator](): Generator<Uint8Array, void, undefined> {
    assert(this.#release !== undefined, 'a recycled batch is not read')
    let left = this.recordCount
    if (this.#head !== undefined) {
      yield this.#head
      left -= 1
    }
    let position = this.#start
    for (; left > 0; left -= 1) {
      const end = position + 4 + recordLength(this.#memory, position)
      yield this.#memory.subarray(position + 4, end)
      position = end
    }
  }

  /** Gives the memory back, exactly once; the gate can ask for more data only with free memory. */
  recycle(): void {
    const release = this.#release
    assert(release !== undefined, 'a batch is recycled exactly once')
    this.#release = undefined
    release()
  }
}

/** One event of the runtime, in its place among the records of its run. */
export class EventBatch {
  readonly kind = 'event'
  readonly origin: BatchOrigin
  /** The code that the producer gave: one of `eventCodes`. */
  readonly code: number
  /** The bytes of the event: memory of its own, valid for ever. */
  readonly bytes: Uint8Array

  constructor(options: {
    readonly origin: BatchOrigin
    readonly code: number
    readonly bytes: Uint8Array
  }) {
    this.origin = options.origin
    this.code = options.code
    this.bytes = options.bytes
  }

  /** Nothing to give back; here so that every batch is treated alike. */
  recycle(): void {
    return
  }
}

export type GateBatch = RecordBatch | EventBatch

/** The length field of the framed record at `position`. */
export function recordLength(bytes: Uint8Array, position: number): number {
  const high = ((bytes[position] ?? 0) << 8) | (bytes[position + 1] ?? 0)
  const low = ((bytes[position + 2] ?? 0) << 8) | (bytes[position + 3] ?? 0)
  return ((high << 16) | low) >>> 0
}
