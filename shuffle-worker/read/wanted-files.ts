// Which partitions of one disk are wanted at all, in the order of the sweep, and by how many entries:
// whoever has found one that can take the first of them need not ask further. Owned by the files of
// the disk's scheduler.

import { assert } from '../../client/common/assert.ts'
import type { MapPartition } from '../storage/storage-types.ts'

export class WantedFiles {
  readonly #counts = new Map<MapPartition, number>()
  /** By file order. */
  readonly #ordered: MapPartition[] = []

  /** Entries of it that are neither finished, failed nor dropped. */
  countOf(partition: MapPartition): number {
    return this.#counts.get(partition) ?? 0
  }

  /** One more entry of it is open. */
  add(partition: MapPartition): void {
    const count = this.#counts.get(partition) ?? 0
    this.#counts.set(partition, count + 1)
    if (count > 0) return
    const last = this.#ordered.at(-1)
    // Lists mostly come in the order of allocation.
    if (last === undefined || last.fileOrder < partition.fileOrder) this.#ordered.push(partition)
    else this.#ordered.splice(this.#indexFrom(partition.fileOrder), 0, partition)
  }

  /** An entry of it is over. */
  remove(partition: MapPartition): void {
    const count = this.#counts.get(partition) ?? 0
    assert(count > 0, 'no more entries end than were listed')
    if (count > 1) {
      this.#counts.set(partition, count - 1)
      return
    }
    this.#counts.delete(partition)
    let index = this.#indexFrom(partition.fileOrder)
    while (this.#ordered[index] !== partition) index += 1
    this.#ordered.splice(index, 1)
  }

  firstFrom(fileOrder: number): MapPartition | undefined {
    return this.#ordered[this.#indexFrom(fileOrder)]
  }

  clear(): void {
    this.#counts.clear()
    this.#ordered.length = 0
  }

  #indexFrom(fileOrder: number): number {
    let low = 0
    let high = this.#ordered.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#ordered[middle]?.fileOrder ?? 0) < fileOrder) low = middle + 1
      else high = middle
    }
    return low
  }
}
