// Writes one partition's own file from its beginning to its end: `.partial` while it grows, renamed
// when it is whole. One write is under way at a time, and everything that came meanwhile goes out in
// the next, so that pieces are large when the disk is slow. Owned by one open write. Whether bytes go
// past the page cache is the appender's affair.

import { dataPath, partialPath, type DirectoryLayout } from './directory-layout.ts'
import type { DirectMemory } from './direct-memory.ts'
import { BufferedAppender, DirectAppender, type FileAppender } from './file-appender.ts'
import { ignoreMissing } from './journal.ts'
import type { QueuedDisk, QueuedFile } from './queued-disk.ts'
import type { SpaceReservation } from './space-account.ts'

export interface PartitionFileWriterSettings {
  readonly disk: QueuedDisk
  readonly layout: DirectoryLayout
  readonly ordinal: number
  /** Of the write; what is written is moved there from reserved to written. */
  readonly space: SpaceReservation
  readonly sync: boolean
  /** For direct IO; undefined: buffered. */
  readonly directMemory: DirectMemory | undefined
}

interface Pending {
  readonly parts: readonly Uint8Array[]
  readonly byteLength: number
  readonly resolve: () => void
  readonly reject: (error: Error) => void
  readonly release: () => void
}

/** Of one gathered write: the system takes 1024. */
const writePartsMax = 1000

export class PartitionFileWriter {
  readonly ordinal: number
  readonly #settings: PartitionFileWriterSettings
  readonly #opened: Promise<QueuedFile>
  readonly #appender: FileAppender
  readonly #pending: Pending[] = []
  #running: Promise<void> | undefined
  #underWay: Promise<void> = Promise.resolve()
  #failure: Error | undefined

  constructor(settings: PartitionFileWriterSettings) {
    this.#settings = settings
    this.ordinal = settings.ordinal
    const { disk, layout, directMemory } = settings
    const isDirect = directMemory !== undefined
    this.#appender = isDirect ? new DirectAppender(directMemory) : new BufferedAppender()
    this.#opened = disk.open(partialPath(layout, settings.ordinal), 'create', { isDirect })
    this.#opened.catch(() => undefined)
  }

  /**
   * Resolves when the parts are written. They belong to the writer until `release` is called,
   * exactly once, when the disk is done with them, on every path.
   */
  append(parts: readonly Uint8Array[], release: () => void): Promise<void> {
    if (this.#failure !== undefined) {
      release()
      return Promise.reject(this.#failure)
    }
    const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0)
    return new Promise((resolve, reject) => {
      this.#pending.push({ parts, byteLength, resolve, reject, release })
      this.#running ??= this.#run()
    })
  }

  /** Syncs if so set, closes, renames. Each of these can fail, and then nothing is committed. */
  async commit(): Promise<void> {
    const { disk, layout, sync } = this.#settings
    await this.#running
    if (this.#failure !== undefined) throw this.#failure
    const file = await this.#opened
    await this.#appender.finish(file)
    if (sync) await file.sync()
    await file.close()
    await disk.rename(partialPath(layout, this.ordinal), dataPath(layout, this.ordinal))
    if (sync) await disk.syncDirectory(layout.partitions)
  }

  /** Refuses what is not yet at the disk. What is there keeps its memory until it ends. */
  fail(error: Error): void {
    this.#failure ??= error
    for (const each of this.#pending.splice(0)) {
      each.release()
      each.reject(this.#failure)
    }
  }

  /** Deletes the file, under whichever name it has, after the last call on it has ended. */
  async discard(): Promise<void> {
    const { disk, layout } = this.#settings
    await this.#running
    await this.#underWay
    const file = await this.#opened.catch(() => undefined)
    await file?.close().catch(() => undefined)
    await disk.unlink(partialPath(layout, this.ordinal)).catch(ignoreMissing)
    await disk.unlink(dataPath(layout, this.ordinal)).catch(ignoreMissing)
  }

  async #run(): Promise<void> {
    try {
      const file = await this.#opened
      while (this.#pending.length > 0) await this.#writeBatch(file, this.#takeBatch())
    } catch (error) {
      this.fail(error as Error)
    } finally {
      this.#running = undefined
    }
  }

  #takeBatch(): Pending[] {
    const { appendBytesMax } = this.#appender
    let bytes = 0
    let parts = 0
    let count = 0
    for (const each of this.#pending) {
      bytes += each.byteLength
      parts += each.parts.length
      if (count > 0 && (bytes > appendBytesMax || parts > writePartsMax)) break
      count += 1
    }
    return this.#pending.splice(0, count)
  }

  async #writeBatch(file: QueuedFile, batch: readonly Pending[]): Promise<void> {
    const parts = batch.flatMap((each) => each.parts)
    const byteLength = batch.reduce((sum, each) => sum + each.byteLength, 0)
    const { written, released, ended } = this.#appender.append(file, parts)
    const given = released.then(() => {
      for (const each of batch) each.release()
    })
    this.#underWay = ended.then(() => given)
    try {
      await written
    } catch (error) {
      for (const each of batch) each.reject(error as Error)
      throw error
    }
    this.#settings.space.written(byteLength)
    // Memory first, then the word that it is written: who hears it may ask for memory at once.
    await this.#underWay
    for (const each of batch) each.resolve()
  }
}
