// Which partitions of one disk are wanted at all, in the order of the sweep, by how many entries, and by
// which channel where it is one alone: whoever has found one that can take the first of them need not
// ask further, and where whole partitions are read need not look for it. Owned by the files of the
// disk's scheduler.

import { assert } from '../../client/common/assert.ts'
import type { DiskList } from './disk-list.ts'
import type { MapPartition } from '../storage/storage-types.ts'

interface Wanted {
  count: number
  /** Undefined from the second list on. */
  only: DiskList | undefined
}

export class WantedFiles {
  readonly #wanted = new Map<MapPartition, Wanted>()
  /** By file order. */
  readonly #ordered: MapPartition[] = []

  /** Entries of it that are neither finished, failed nor dropped. */
  countOf(partition: MapPartition): number {
    return this.#wanted.get(partition)?.count ?? 0
  }

  /** Whose all its entries are; undefined where they are of several, or were. */
  onlyListOf(partition: MapPartition): DiskList | undefined {
    return this.#wanted.get(partition)?.only
  }

  /** One more entry of it is open. */
  add(partition: MapPartition, list: DiskList): void {
    const known = this.#wanted.get(partition)
    if (known !== undefined) {
      known.count += 1
      if (known.only !== list) known.only = undefined
      return
    }
    this.#wanted.set(partition, { count: 1, only: list })
    const last = this.#ordered.at(-1)
    // Lists mostly come in the order of allocation.
    if (last === undefined || last.fileOrder < partition.fileOrder) this.#ordered.push(partition)
    else this.#ordered.splice(this.#indexFrom(partition.fileOrder), 0, partition)
  }

  /** An entry of it is over. */
  remove(partition: MapPartition): void {
    const known = this.#wanted.get(partition)
    assert(known !== undefined, 'no more entries end than were listed')
    known.count -= 1
    if (known.count > 0) return
    this.#wanted.delete(partition)
    let index = this.#indexFrom(partition.fileOrder)
    while (this.#ordered[index] !== partition) index += 1
    this.#ordered.splice(index, 1)
  }

  firstFrom(fileOrder: number): MapPartition | undefined {
    return this.#ordered[this.#indexFrom(fileOrder)]
  }

  clear(): void {
    this.#wanted.clear()
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
