// The shared log of one data directory: where small partitions go that are not worth a file each.
// Appends are in order, one write at a time, all that waits in one write, so that a torn tail is the
// only damage a crash can do. A segment that is full, or whose last write failed, takes no more; one
// whose partitions are all released is deleted. Owned by the storage directory.

import { assert } from '../../client/common/assert.ts'
import type { Logger } from '../../client/common/log.ts'
import { segmentPath, type DirectoryLayout } from './directory-layout.ts'
import { ignoreMissing } from './journal.ts'
import {
  encodeLogRecordHeader,
  encodeSegmentHeader,
  logRecordHeaderLength,
  segmentHeaderLength,
} from './log-record.ts'
import type { QueuedDisk, QueuedFile } from './queued-disk.ts'

export interface SharedLogSettings {
  readonly disk: QueuedDisk
  readonly layout: DirectoryLayout
  readonly logger: Logger
  readonly nextOrdinal: () => number
  readonly segmentSizeBytes: number
  /** Sync each write, and the directory when a segment is made. */
  readonly sync: boolean
  /** A segment is gone from the disk. */
  readonly onDeleted: (ordinal: number, sizeBytes: number) => void
}

export interface LogPlace {
  readonly ordinal: number
  /** Of the partition, after its record's header. */
  readonly offset: number
}

interface Segment {
  readonly ordinal: number
  end: number
  liveCount: number
  /** Open for appending; undefined for one that takes no more. */
  file: QueuedFile | undefined
}

interface Pending {
  readonly parts: readonly Uint8Array[]
  readonly length: number
  readonly resolve: (place: LogPlace) => void
  readonly reject: (error: Error) => void
  /** The disk no longer touches the parts. */
  readonly release: () => void
}

/** Most bytes of one write; the rest waits for the next. */
const batchBytesMax = 4 * 1024 * 1024

export class SharedLog {
  readonly #settings: SharedLogSettings
  readonly #segments = new Map<number, Segment>()
  #current: Segment | undefined
  readonly #pending: Pending[] = []
  #running: Promise<void> | undefined

  constructor(settings: SharedLogSettings) {
    this.#settings = settings
  }

  get segmentCount(): number {
    return this.#segments.size
  }

  /** A segment that recovery found, with so many live partitions. */
  adopt(ordinal: number, sizeBytes: number, liveCount: number): void {
    this.#segments.set(ordinal, { ordinal, end: sizeBytes, liveCount, file: undefined })
  }

  /**
   * Writes one partition as one record. The parts belong to the log until `release` is called,
   * exactly once, also when the append fails. The partition counts as live from then on.
   */
  append(parts: readonly Uint8Array[], release: () => void): Promise<LogPlace> {
    const length = parts.reduce((sum, part) => sum + part.byteLength, 0)
    return new Promise((resolve, reject) => {
      this.#pending.push({ parts, length, resolve, reject, release })
      this.#running ??= this.#run()
    })
  }

  /** A partition of the segment is released and unread: deletes the segment with the last. */
  async released(ordinal: number): Promise<void> {
    const segment = this.#segments.get(ordinal)
    if (segment === undefined) return
    segment.liveCount -= 1
    await this.#deleteIfDone(segment)
  }

  async close(): Promise<void> {
    await this.#running
    const file = this.#current?.file
    if (this.#current !== undefined) this.#current.file = undefined
    this.#current = undefined
    await file?.close()
  }

  async #run(): Promise<void> {
    await Promise.resolve()
    while (this.#pending.length > 0) {
      const batch = this.#takeBatch()
      try {
        await this.#write(batch)
      } catch (error) {
        for (const each of batch) each.reject(error as Error)
      }
    }
    this.#running = undefined
  }

  #takeBatch(): Pending[] {
    let bytes = 0
    let count = 0
    for (const each of this.#pending) {
      if (count > 0 && bytes + each.length > batchBytesMax) break
      bytes += each.length
      count += 1
    }
    return this.#pending.splice(0, count)
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    const release = () => {
      for (const each of batch) each.release()
    }
    let segment: Segment
    try {
      segment = this.#current ?? (await this.#create())
    } catch (error) {
      release()
      throw error
    }
    const places: LogPlace[] = []
    const parts: Uint8Array[] = []
    let end = segment.end
    for (const each of batch) {
      parts.push(encodeLogRecordHeader(each.parts), ...each.parts)
      places.push({ ordinal: segment.ordinal, offset: end + logRecordHeaderLength })
      end += logRecordHeaderLength + each.length
    }
    segment.liveCount += batch.length
    await this.#writeParts(segment, { parts, end, release }, batch.length)
    for (const [index, each] of batch.entries()) {
      const place = places[index]
      if (place !== undefined) each.resolve(place)
    }
    if (segment.end >= this.#settings.segmentSizeBytes) await this.#retire(segment)
  }

  async #writeParts(
    segment: Segment,
    write: { readonly parts: readonly Uint8Array[]; readonly end: number; release: () => void },
    recordCount: number,
  ): Promise<void> {
    const { file } = segment
    assert(file !== undefined, 'the current segment is open for appending')
    try {
      const { result, ended } = file.write(write.parts, segment.end)
      void ended.then(write.release)
      await result
      if (this.#settings.sync) await file.sync()
      segment.end = write.end
    } catch (error) {
      segment.liveCount -= recordCount
      this.#settings.logger.warn(
        { segment: segment.ordinal, error },
        'a write to the shared log failed, the segment takes no more',
      )
      // What is after the end now is no record of ours: cut it, or let recovery do so.
      file.truncate(segment.end).catch(() => undefined)
      await this.#retire(segment).catch(() => undefined)
      throw error
    }
  }

  async #create(): Promise<Segment> {
    const { disk, layout, nextOrdinal, sync } = this.#settings
    const ordinal = nextOrdinal()
    const path = segmentPath(layout, ordinal)
    const file = await disk.open(path, 'create')
    try {
      await file.write([encodeSegmentHeader()], 0).result
      if (sync) {
        await file.sync()
        await disk.syncDirectory(layout.log)
      }
    } catch (error) {
      file.closeQuietly()
      disk.unlink(path).catch(() => undefined)
      throw error
    }
    const segment: Segment = { ordinal, end: segmentHeaderLength, liveCount: 0, file }
    this.#segments.set(ordinal, segment)
    this.#current = segment
    return segment
  }

  async #retire(segment: Segment): Promise<void> {
    const { file } = segment
    segment.file = undefined
    if (this.#current === segment) this.#current = undefined
    file?.closeQuietly()
    await this.#deleteIfDone(segment)
  }

  async #deleteIfDone(segment: Segment): Promise<void> {
    if (segment.liveCount > 0 || segment === this.#current) return
    if (!this.#segments.delete(segment.ordinal)) return
    const { disk, layout, onDeleted, logger } = this.#settings
    try {
      await disk.unlink(segmentPath(layout, segment.ordinal)).catch(ignoreMissing)
      onDeleted(segment.ordinal, segment.end)
    } catch (error) {
      logger.warn({ segment: segment.ordinal, error }, 'a released segment could not be deleted')
    }
  }
}
