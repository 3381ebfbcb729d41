// Files open for reading in one data directory, each once however many readers it has. Owned by the
// storage directory.

import { assert } from '../../client/common/assert.ts'
import { dataPath, segmentPath, type DirectoryLayout } from './directory-layout.ts'
import type { PartitionPlace } from './journal-records.ts'
import type { QueuedDisk, QueuedFile } from './queued-disk.ts'

interface Shared {
  readonly file: Promise<QueuedFile>
  users: number
}

export class ReadingFiles {
  readonly #disk: QueuedDisk
  readonly #layout: DirectoryLayout
  readonly #open = new Map<number, Shared>()

  readonly #isDirect: () => boolean

  constructor(disk: QueuedDisk, layout: DirectoryLayout, isDirect = () => false) {
    this.#disk = disk
    this.#layout = layout
    this.#isDirect = isDirect
  }

  get count(): number {
    return this.#open.size
  }

  /** Each success is paired with one {@link recycle}. */
  async acquire(place: PartitionPlace): Promise<QueuedFile> {
    let shared = this.#open.get(place.ordinal)
    if (shared === undefined) {
      const isFile = place.kind === 'file'
      const path = (isFile ? dataPath : segmentPath)(this.#layout, place.ordinal)
      // Segments are written through the page cache, and small: that is where they are read from.
      const isDirect = isFile && this.#isDirect()
      shared = { file: this.#disk.open(path, 'read', { isDirect }), users: 0 }
      this.#open.set(place.ordinal, shared)
    }
    shared.users += 1
    try {
      return await shared.file
    } catch (error) {
      this.#leave(place, shared)
      throw error
    }
  }

  /** Resolves when the last user has gone and the file is closed; at once for any other. */
  async recycle(place: PartitionPlace): Promise<void> {
    const shared = this.#open.get(place.ordinal)
    assert(shared !== undefined, 'only an open file is given back')
    const file = await shared.file
    if (this.#leave(place, shared)) await file.close()
  }

  #leave(place: PartitionPlace, shared: Shared): boolean {
    shared.users -= 1
    if (shared.users > 0) return false
    if (this.#open.get(place.ordinal) === shared) this.#open.delete(place.ordinal)
    return true
  }
}
