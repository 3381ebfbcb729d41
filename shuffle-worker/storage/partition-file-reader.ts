// An open committed partition: its region table in memory, its index rows read when asked for, its
// bytes read through the disk's queue. One per partition, shared by its readers. All memory is taken
// from the ledger's index part first and stays charged until the disk no longer touches it.

import { assert } from '../../client/common/assert.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { MemoryLedger, Reservation } from '../memory/memory-ledger.ts'
import { ByteWriter, corrupt } from './byte-codec.ts'
import type { PartitionPlace } from './journal-records.ts'
import type { KeptIndex } from './kept-indexes.ts'
import {
  decodeFooter,
  decodeIndexRow,
  decodeTable,
  footerLength,
  regionLineLengthMax,
  regionMemoryBytes,
  tableLengthMax,
  writeFacts,
  type PartitionFacts,
  type PartitionTable,
  type RegionPlace,
} from './partition-format.ts'
import type { QueuedFile } from './queued-disk.ts'
import type { ReadingFiles } from './reading-files.ts'
import type { DiskRead, FileImage, RegionIndex } from './storage-types.ts'
import { HeldRegionIndex, RunTable, runMemoryBytes } from './stored-region-index.ts'

export interface PartitionFileSettings {
  readonly files: ReadingFiles
  readonly ledger: MemoryLedger
  readonly place: PartitionPlace
  /** As the journal has them: what the file must say. */
  readonly facts: PartitionFacts
  /** What stays in memory between reads; nothing does when not given. */
  readonly kept?: KeptIndex | undefined
}

/** One read gets the footer with most tables, and all of a small partition. */
const tailReadBytes = 64 * 1024
/** Others give index memory back within milliseconds; longer means that something hangs. */
const indexMemoryTimeoutMs = 10_000

interface SharedRow {
  readonly table: Promise<RunTable>
  reservation: Reservation | undefined
  users: number
}

export class PartitionFile {
  readonly #settings: PartitionFileSettings
  readonly #file: QueuedFile
  readonly #regions: readonly RegionPlace[]
  /** Of the region table; undefined where it is kept for longer. */
  readonly #reservation: Reservation | undefined
  readonly #rows = new Map<number, SharedRow>()

  private constructor(
    settings: PartitionFileSettings,
    file: QueuedFile,
    regions: readonly RegionPlace[],
    reservation: Reservation | undefined,
  ) {
    this.#settings = settings
    this.#file = file
    this.#regions = regions
    this.#reservation = reservation
    settings.kept?.pin()
  }

  /** DATA_CORRUPT when the file isn't what the journal says; UNSUPPORTED_VERSION. */
  static async open(settings: PartitionFileSettings, image?: FileImage): Promise<PartitionFile> {
    const file = await settings.files.acquire(settings.place)
    try {
      const kept = settings.kept?.regions
      if (kept !== undefined) return new PartitionFile(settings, file, kept, undefined)
      const { table, reservation, tail } = await readTable({ file, image }, settings)
      try {
        keepLastRow(settings, table.regions, tail)
      } catch (error) {
        reservation.release()
        throw error
      }
      reservation.shrinkTo(table.regions.length * regionMemoryBytes)
      return new PartitionFile(settings, file, table.regions, reservation)
    } catch (error) {
      // Not awaited: a read that hangs keeps the file from closing.
      settings.files.recycle(settings.place).catch(() => undefined)
      throw error
    }
  }

  /** Reads the table once more for what isn't kept in memory. */
  static async uncompressedBytes(settings: PartitionFileSettings): Promise<Float64Array> {
    const file = await settings.files.acquire(settings.place)
    try {
      const { table, reservation } = await readTable({ file, image: undefined }, settings)
      reservation.release()
      return table.uncompressedBytes
    } finally {
      settings.files.recycle(settings.place).catch(() => undefined)
    }
  }

  get regionCount(): number {
    return this.#regions.length
  }

  async regionIndex(regionIndex: number, image?: FileImage): Promise<RegionIndex> {
    const kept = this.#settings.kept?.row(regionIndex)
    if (kept !== undefined) return new HeldRegionIndex(kept, () => undefined)
    let row = this.#rows.get(regionIndex)
    if (row === undefined) {
      const table = this.#readRow(regionIndex, image)
      row = { table, reservation: undefined, users: 0 }
      this.#rows.set(regionIndex, row)
    }
    const shared = row
    shared.users += 1
    const leave = () => {
      this.#leaveRow(regionIndex, shared)
    }
    try {
      return new HeldRegionIndex(await shared.table, leave)
    } catch (error) {
      leave()
      throw error
    }
  }

  /**
   * Whole or an error. In a segment the caller may read on into its neighbours; past the end of a
   * file there is nothing.
   */
  read(target: Uint8Array, position: number, bytesMin?: number): DiskRead {
    return readAll(this.#file, { target, position, bytesMin })
  }

  get blockBytes(): number {
    return this.#file.blockBytes
  }

  /** Waits for reads under way when it is the file's last user. Rows still held are given up. */
  async close(): Promise<void> {
    this.#reservation?.release()
    for (const row of this.#rows.values()) row.reservation?.release()
    this.#rows.clear()
    if (this.#isKeepable) this.#settings.kept?.keepRegions(this.#regions)
    this.#settings.kept?.unpin()
    await this.#settings.files.recycle(this.#settings.place)
  }

  async #readRow(regionIndex: number, image: FileImage | undefined): Promise<RunTable> {
    const region = this.#regions[regionIndex]
    assert(region !== undefined, 'a region index is below the region count')
    const { ledger, place, facts } = this.#settings
    // A run takes at least three bytes of the row.
    const runCountMax = Math.ceil(region.rowLength / 3)
    const reservation = await ledger.reserve({
      purpose: 'index',
      bytes: region.rowLength + runCountMax * (runMemoryBytes + 8),
      jobId: facts.key.jobId,
      timeoutMs: indexMemoryTimeoutMs,
    })
    const position = place.offset + region.position + region.byteLength
    const source = { file: this.#file, image }
    const bytes = await readWhole(source, {
      length: region.rowLength,
      position,
      reservation,
    })
    try {
      const row = decodeIndexRow(bytes, {
        key: facts.key,
        regionIndex,
        region,
        subpartitionCount: facts.subpartitionCount,
      })
      const table = new RunTable(regionIndex, row, region, place.offset)
      this.#keepRow(regionIndex, reservation, table)
      return table
    } catch (error) {
      reservation.release()
      throw error
    }
  }

  #keepRow(regionIndex: number, reservation: Reservation, table: RunTable): void {
    const row = this.#rows.get(regionIndex)
    if (row === undefined) throw closedError()
    reservation.shrinkTo(table.runCount * runMemoryBytes)
    row.reservation = reservation
  }

  #leaveRow(regionIndex: number, row: SharedRow): void {
    row.users -= 1
    if (row.users > 0 || this.#rows.get(regionIndex) !== row) return
    this.#rows.delete(regionIndex)
    row.reservation?.release()
    if (this.#isKeepable) {
      row.table.then(
        (table) => this.#settings.kept?.keepRow(table),
        () => undefined,
      )
    }
  }

  /** In a segment the index comes with the data, in one read. */
  get #isKeepable(): boolean {
    return this.#settings.place.kind === 'file'
  }
}

interface Source {
  readonly file: QueuedFile
  readonly image: FileImage | undefined
}

async function readTable(
  source: Source,
  settings: PartitionFileSettings,
): Promise<{
  readonly table: PartitionTable
  readonly reservation: Reservation
  /** What was read first: as much of the end as one read takes. */
  readonly tail: FileImage
}> {
  const { ledger, place, facts } = settings
  const lengthMax =
    tableLengthMax(facts.subpartitionCount) + facts.regionCount * regionLineLengthMax
  const reservation = await ledger.reserve({
    purpose: 'index',
    bytes:
      tailReadBytes +
      lengthMax +
      8 * facts.subpartitionCount +
      facts.regionCount * regionMemoryBytes,
    jobId: facts.key.jobId,
    timeoutMs: indexMemoryTimeoutMs,
  })
  const tailLength = Math.min(place.byteLength, tailReadBytes)
  if (tailLength < footerLength) {
    reservation.release()
    throw corrupt('the partition is shorter than a footer')
  }
  const end = place.offset + place.byteLength
  const tail = await readWhole(source, {
    length: tailLength,
    position: end - tailLength,
    reservation,
  })
  let isReading = false
  try {
    const footer = decodeFooter(tail.subarray(-footerLength), place.byteLength)
    if (footer.tableLength > lengthMax) throw corrupt('the table is longer than it can be')
    const wanted = footer.tableLength + footerLength
    let bytes: Uint8Array = tail.subarray(Math.max(0, tailLength - wanted), -footerLength)
    if (wanted > tailLength) {
      isReading = true
      bytes = await readWhole(source, {
        length: footer.tableLength,
        position: end - wanted,
        reservation,
      })
      isReading = false
    }
    const table = decodeTable(bytes, footer)
    checkFacts(table.facts, facts)
    return { table, reservation, tail: { bytes: tail, start: end - tailLength } }
  } catch (error) {
    if (!isReading) reservation.release()
    throw error
  }
}

function checkFacts(stored: PartitionFacts, known: PartitionFacts): void {
  const bytesOf = (facts: PartitionFacts) => {
    const writer = new ByteWriter()
    writeFacts(writer, facts)
    return writer.bytes
  }
  if (bytesOf(stored).equals(bytesOf(known))) return
  throw corrupt('the file holds another partition than the journal says')
}

/** The index row of the last region often lies in what was read of the end already. */
function keepLastRow(
  { kept, place, facts }: PartitionFileSettings,
  regions: readonly RegionPlace[],
  tail: FileImage,
): void {
  const regionIndex = regions.length - 1
  const region = regions[regionIndex]
  if (kept === undefined || region === undefined || place.kind !== 'file') return
  const offset = place.offset + region.position + region.byteLength - tail.start
  if (offset < 0) return
  const row = decodeIndexRow(tail.bytes.subarray(offset, offset + region.rowLength), {
    key: facts.key,
    regionIndex,
    region,
    subpartitionCount: facts.subpartitionCount,
  })
  kept.keepRow(new RunTable(regionIndex, row, region, place.offset))
}

/** On failure the reservation is released, but not before the disk has let go of the memory. */
async function readWhole(
  { file, image }: Source,
  piece: { readonly length: number; readonly position: number; readonly reservation: Reservation },
): Promise<Uint8Array> {
  const offset = image === undefined ? -1 : piece.position - image.start
  if (image !== undefined && offset >= 0 && offset + piece.length <= image.bytes.byteLength) {
    return image.bytes.subarray(offset, offset + piece.length)
  }
  const target = Buffer.allocUnsafeSlow(piece.length)
  const { result, ended } = file.read(target, piece.position)
  try {
    const count = await result
    if (count !== piece.length) throw corrupt('the file ends before the partition does')
    return target
  } catch (error) {
    void ended.then(() => {
      piece.reservation.release()
    })
    throw error
  }
}

/** Whole, or at least `bytesMin`, or an error. */
export function readAll(
  file: QueuedFile,
  read: {
    readonly target: Uint8Array
    readonly position: number
    readonly bytesMin?: number | undefined
  },
): DiskRead {
  const { target, position, bytesMin = target.byteLength } = read
  const { result, ended } = file.read(target, position)
  const whole = result.then((count) => {
    if (count < bytesMin) throw corrupt('the file ends before the partition does')
    return count
  })
  whole.catch(() => undefined)
  return { result: whole, ended }
}

function closedError(): ShuffleError {
  return new ShuffleError('CANCELLED', 'the partition was closed while its index was read')
}
