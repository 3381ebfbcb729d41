// What the channels want from one disk: their lists, and the files that are open or have been begun by
// some channel. At most so many files are open: past it the one visited longest ago is closed, and
// opened again when its turn comes. Owned by the disk's scheduler.

import type { FileImage, MapPartition, PartitionReader } from '../storage/storage-types.ts'
import type { DiskList } from './disk-list.ts'
import type { PartitionCursor } from './partition-cursor.ts'
import { SweepFile } from './sweep-file.ts'
import { WantedFiles } from './wanted-files.ts'

export interface SweepFilesOptions {
  readonly openFilesMax: number
  readonly onNotClosed: (error: unknown) => void
}

export class SweepFiles {
  readonly #options: SweepFilesOptions
  readonly #lists = new Set<DiskList>()
  readonly #wanted = new WantedFiles()
  readonly #files = new Map<MapPartition, SweepFile>()
  /** Those that are pinned and open, the one visited longest ago first. */
  readonly #opened = new Set<SweepFile>()

  constructor(options: SweepFilesOptions) {
    this.#options = options
  }

  /** Of the channels that want something. */
  get lists(): ReadonlySet<DiskList> {
    return this.#lists
  }

  get openCount(): number {
    return this.#opened.size
  }

  listed(list: DiskList, partition: MapPartition): void {
    this.#lists.add(list)
    this.#wanted.add(partition, list)
    const file = this.#files.get(partition)
    if (file !== undefined) file.listedCount += 1
  }

  unlisted(list: DiskList, partition: MapPartition): void {
    this.#wanted.remove(partition)
    const file = this.#files.get(partition)
    if (file !== undefined) file.listedCount -= 1
    this.#leave(list, file)
  }

  remove(list: DiskList, cursor: PartitionCursor): void {
    this.#wanted.remove(cursor.partition)
    const file = this.#files.get(cursor.partition)
    file?.wants.delete(cursor)
    this.#leave(list, file)
  }

  /** The file as it is known already, or from now on. */
  of(partition: MapPartition): SweepFile {
    let file = this.#files.get(partition)
    if (file === undefined) {
      file = new SweepFile(partition)
      // Whoever has begun it keeps it known.
      file.listedCount = this.#wanted.countOf(partition)
      this.#files.set(partition, file)
    }
    return file
  }

  open(file: SweepFile, image?: FileImage): Promise<PartitionReader> {
    this.#opened.delete(file)
    this.#opened.add(file)
    return file.open(image)
  }

  /** Makes the cursors of all channels that have it in their list and can take something now. */
  begin(file: SweepFile): void {
    for (const list of this.#listsOf(file.partition)) {
      if (file.listedCount === 0) break
      list.begin(file.partition, (cursor) => {
        file.wants.add(cursor)
        file.listedCount -= 1
      })
    }
    this.#dropIfUnwanted(file)
  }

  /** It can't be read: fails every entry of it. */
  fail(file: SweepFile, error: unknown): void {
    for (const cursor of [...file.wants]) cursor.list.channel.fail(cursor, error)
    for (const list of [...this.#lists]) {
      for (;;) {
        const entry = list.listed.take(file.partition)
        if (entry === undefined) break
        this.unlisted(list, file.partition)
        list.channel.failEntry(entry, error)
      }
    }
    this.#dropIfUnwanted(file)
  }

  /** The first partition at or behind `fileOrder` that some channel can take something of now. */
  nextFrom(fileOrder: number): MapPartition | undefined {
    const first = this.firstWantedFrom(fileOrder)
    let next: MapPartition | undefined
    const only = first === undefined ? undefined : this.onlyListOf(first)
    if (only?.nextFrom(fileOrder) === first) return first
    for (const list of this.#lists) {
      next = earlier(next, list.nextFrom(fileOrder))
      if (next === first) break
    }
    return next
  }

  /** The one channel's that wants it; undefined where several do. */
  onlyListOf(partition: MapPartition): DiskList | undefined {
    return this.#wanted.onlyListOf(partition)
  }

  /** The first that some channel wants, whether it can take something of it now or not. */
  firstWantedFrom(fileOrder: number): MapPartition | undefined {
    return this.#wanted.firstFrom(fileOrder)
  }

  /** Closes those visited longest ago. Two are always wanted: the present one and the next. */
  trim(): void {
    for (const oldest of this.#opened) {
      if (this.#opened.size <= Math.max(2, this.#options.openFilesMax)) return
      this.#close(oldest)
      if (oldest.wants.size === 0) this.#files.delete(oldest.partition)
    }
  }

  close(): void {
    for (const file of [...this.#opened]) this.#close(file)
    this.#files.clear()
    this.#lists.clear()
    this.#wanted.clear()
  }

  #listsOf(partition: MapPartition): Iterable<DiskList> {
    const only = this.onlyListOf(partition)
    return only === undefined ? this.#lists : [only]
  }

  #leave(list: DiskList, file: SweepFile | undefined): void {
    if (list.isEmpty) this.#lists.delete(list)
    if (file !== undefined) this.#dropIfUnwanted(file)
  }

  /** Forgets and closes it when no channel wants anything of it. */
  #dropIfUnwanted(file: SweepFile): void {
    if (file.wants.size > 0 || file.listedCount > 0) return
    this.#files.delete(file.partition)
    this.#close(file)
  }

  #close(file: SweepFile): void {
    this.#opened.delete(file)
    file.close(this.#options.onNotClosed)
  }
}

export function earlier(
  a: MapPartition | undefined,
  b: MapPartition | undefined,
): MapPartition | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return b.fileOrder < a.fileOrder ? b : a
}
