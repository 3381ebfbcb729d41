// Small partitions that are held in memory until they finish, so that they need no file of their
// own. All together have one bound; when it would be passed the one that has been held longest gets
// a file. Owned by the data store.

import { assert } from '../../client/common/assert.ts'

export interface HeldPartition {
  /** Leaves memory for a file of its own. */
  spill(): void
}

export class HeldPartitions {
  readonly #bytesMax: number
  /** In the order in which they came. */
  readonly #held = new Map<HeldPartition, number>()
  #bytes = 0

  constructor(options: { readonly bytesMax: number }) {
    this.#bytesMax = options.bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  get count(): number {
    return this.#held.size
  }

  /** Counts `bytes` more for it; false when that can't be, and it must get a file itself. */
  hold(partition: HeldPartition, bytes: number): boolean {
    while (this.#bytes + bytes > this.#bytesMax) {
      const oldest = this.#oldestBut(partition)
      if (oldest === undefined) return false
      this.leave(oldest)
      oldest.spill()
    }
    this.#held.set(partition, (this.#held.get(partition) ?? 0) + bytes)
    this.#bytes += bytes
    return true
  }

  /** It has spilled, finished or failed. Idempotent. */
  leave(partition: HeldPartition): void {
    this.#bytes -= this.#held.get(partition) ?? 0
    assert(this.#bytes >= 0, 'held bytes are counted once')
    this.#held.delete(partition)
  }

  #oldestBut(partition: HeldPartition): HeldPartition | undefined {
    for (const each of this.#held.keys()) if (each !== partition) return each
    return undefined
  }
}
