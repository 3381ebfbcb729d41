// The entries of one channel's list on one disk that have not been begun, page by page. Owned by a
// disk list. Pages are filled as the client's frames come, however small those are.

import type { MapPartition } from '../storage/storage-types.ts'
import type { ListMemory } from './list-memory.ts'
import { type ListedEntry, ListedPage, pageEntriesMax, pageIndexSpan } from './listed-page.ts'

export class EntryList {
  readonly #memory: ListMemory
  readonly #pages: ListedPage[] = []
  #count = 0

  constructor(memory: ListMemory) {
    this.#memory = memory
  }

  get count(): number {
    return this.#count
  }

  /**
   * Takes entries of ascending index; calls back with each that is listed. Throws BUSY or
   * LIMIT_EXCEEDED; some may be listed then.
   */
  add(entries: readonly ListedEntry[], onListed: (entry: ListedEntry) => void): void {
    for (let from = 0; from < entries.length; from += pageEntriesMax) {
      const chunk = entries.slice(from, from + pageEntriesMax)
      this.#addChunk(chunk)
      this.#count += chunk.length
      for (const entry of chunk) onListed(entry)
    }
  }

  /** The first listed partition at or behind `fileOrder`. */
  nextFrom(fileOrder: number): MapPartition | undefined {
    let next: MapPartition | undefined
    for (const page of this.#pages) {
      const slot = page.nextFrom(fileOrder)
      if (slot === undefined) continue
      const partition = page.partitionAt(slot)
      if (next === undefined || partition.fileOrder < next.fileOrder) next = partition
    }
    return next
  }

  countOf(partition: MapPartition): number {
    let count = 0
    for (const page of this.#pages) {
      let slot = page.nextFrom(partition.fileOrder)
      if (slot !== undefined && page.partitionAt(slot) !== partition) slot = undefined
      for (; slot !== undefined; slot = page.nextOfSame(slot)) count += 1
    }
    return count
  }

  /** One listed entry of the partition, which is listed no more. */
  take(partition: MapPartition): ListedEntry | undefined {
    for (const page of this.#pages) {
      const slot = page.nextFrom(partition.fileOrder)
      if (slot !== undefined && page.partitionAt(slot) === partition) return this.#take(page, slot)
    }
    return undefined
  }

  /** The entry of this index, if it is listed here; it is no more then. */
  takeIndex(index: number): ListedEntry | undefined {
    for (const page of this.#pages) {
      const slot = page.slotOf(index)
      if (slot !== undefined) return this.#take(page, slot)
    }
    return undefined
  }

  /** Gives all up; calls back with the partition of each entry. */
  clear(onEntry: (partition: MapPartition) => void): void {
    this.#count = 0
    for (const page of this.#pages.splice(0)) {
      for (const { partition } of page.entries()) onEntry(partition)
      page.release()
    }
  }

  #take(page: ListedPage, slot: number): ListedEntry {
    const entry = page.take(slot)
    this.#count -= 1
    if (page.count === 0) {
      this.#pages.splice(this.#pages.indexOf(page), 1)
      page.release()
    }
    return entry
  }

  /**
   * Joined with pages before it that are no larger, so that frames of one entry make few pages and
   * none is built again more than a dozen times.
   */
  #addChunk(entries: readonly ListedEntry[]): void {
    let joined = entries
    let joinedPages = 0
    for (const page of this.#pages.toReversed()) {
      if (!canJoin(page, joined)) break
      joined = [...page.entries(), ...joined]
      joinedPages += 1
    }
    const made = new ListedPage(joined, this.#memory)
    for (const page of this.#pages.splice(this.#pages.length - joinedPages)) page.release()
    this.#pages.push(made)
  }
}

function canJoin(page: ListedPage, entries: readonly ListedEntry[]): boolean {
  const lastIndex = entries.reduce((last, { index }) => Math.max(last, index), 0)
  return (
    page.count <= entries.length &&
    page.count + entries.length <= pageEntriesMax &&
    lastIndex - page.firstIndex < pageIndexSpan
  )
}
