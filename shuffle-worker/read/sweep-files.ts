// The files of one disk that are open or have been begun by some channel. At most so many are open:
// past it the one visited longest ago is closed, and opened again when its turn comes. Owned by the
// disk's scheduler.

import type { MapPartition, PartitionReader } from '../storage/storage-types.ts'
import { SweepFile } from './sweep-file.ts'

export interface SweepFilesOptions {
  readonly openFilesMax: number
  /** Entries of the partition that are listed and not begun, over all channels. */
  readonly listedCountOf: (partition: MapPartition) => number
  readonly onFault: (error: unknown) => void
}

export class SweepFiles {
  readonly #options: SweepFilesOptions
  readonly #files = new Map<MapPartition, SweepFile>()
  /** Those that are pinned and open, the one visited longest ago first. */
  readonly #opened = new Set<SweepFile>()

  constructor(options: SweepFilesOptions) {
    this.#options = options
  }

  get openCount(): number {
    return this.#opened.size
  }

  get(partition: MapPartition): SweepFile | undefined {
    return this.#files.get(partition)
  }

  /** The file as it is known already, or from now on. */
  of(partition: MapPartition): SweepFile {
    let file = this.#files.get(partition)
    if (file === undefined) {
      file = new SweepFile(partition)
      file.listedCount = this.#options.listedCountOf(partition)
      this.#files.set(partition, file)
    }
    return file
  }

  open(file: SweepFile): Promise<PartitionReader> {
    this.#opened.delete(file)
    this.#opened.add(file)
    return file.open()
  }

  /** So many entries more, or less, are listed of the partition. */
  changeListed(partition: MapPartition, delta: 1 | -1): void {
    const file = this.#files.get(partition)
    if (file === undefined) return
    file.listedCount += delta
    this.dropIfUnwanted(file)
  }

  /** Forgets and closes it when no channel wants anything of it. */
  dropIfUnwanted(file: SweepFile): void {
    if (file.wants.size > 0 || file.listedCount > 0) return
    this.#files.delete(file.partition)
    this.#close(file)
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
  }

  #close(file: SweepFile): void {
    this.#opened.delete(file)
    file.close(this.#options.onFault)
  }
}
