// Checks what a producer sends and builds the partition's index from it, without touching a payload
// byte: entries in, index rows and the table out. Owned by one open write; knows no file.

import { ShuffleError } from '../../client/common/errors.ts'
import type { AllocationId, PartitionKey } from '../../client/common/ids.ts'
import { broadcastSubpartition, EntryReader, entryPayloadMax } from '../../client/protocol/entry.ts'
import { encodeTail, IndexRowWriter, regionCountMax, type RegionPlace } from './partition-format.ts'
import type { Durability, RegionStart, RegionTotals, WriteTotals } from './storage-types.ts'

export interface PartitionBuilderSettings {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  readonly subpartitionCount: number
  readonly bufferSizeBytes: number
  readonly codec: string
}

interface OpenRegion {
  readonly start: RegionStart
  readonly row: IndexRowWriter
  readonly position: number
  byteLength: number
  entryCount: number
  runSubpartition: number
  runByteLength: number
  runEntryCount: number
  runEnded: boolean
}

export class PartitionBuilder {
  readonly #settings: PartitionBuilderSettings
  readonly #entries = new EntryReader('PROTOCOL')
  readonly #regions: RegionPlace[] = []
  #region: OpenRegion | undefined
  #length = 0
  #entryCount = 0
  #byteCount = 0

  constructor(settings: PartitionBuilderSettings) {
    this.#settings = settings
  }

  /** Bytes of the partition so far. */
  get length(): number {
    return this.#length
  }

  get byteCount(): number {
    return this.#byteCount
  }

  get entryCount(): number {
    return this.#entryCount
  }

  get regionCount(): number {
    return this.#regions.length
  }

  /** Those that are finished. */
  get regions(): readonly RegionPlace[] {
    return this.#regions
  }

  startRegion(start: RegionStart): void {
    if (this.#region !== undefined) throw this.#broken('a region starts within another')
    if (start.regionIndex !== this.#regions.length || start.regionIndex >= regionCountMax) {
      throw this.#broken(`region ${String(this.#regions.length)} comes next`, start.regionIndex)
    }
    this.#region = {
      start,
      row: new IndexRowWriter(start.isBroadcast),
      position: this.#length,
      byteLength: 0,
      entryCount: 0,
      runSubpartition: -1,
      runByteLength: 0,
      runEntryCount: 0,
      runEnded: true,
    }
  }

  /** The first `length` of `bytes` must be whole entries that continue the open region. */
  add(bytes: Uint8Array, length: number): void {
    const region = this.#region
    if (region === undefined) throw this.#broken('entries come outside a region')
    if (length > bytes.byteLength) throw this.#broken('a body is longer than its buffer')
    const entries = this.#entries.reset(bytes, 0, length)
    while (entries.next()) this.#addEntry(region, entries)
    region.byteLength += length
    if (region.byteLength > region.start.boundBytes) {
      throw this.#broken(`the region passes its bound of ${String(region.start.boundBytes)} bytes`)
    }
    this.#length += length
    this.#byteCount += length
  }

  /** The region's index row, which follows its entries in the file. */
  finishRegion(totals: RegionTotals): Uint8Array {
    const region = this.#region
    if (region === undefined) throw this.#broken('a region finishes that was not started')
    if (!region.runEnded) throw this.#broken('the last run of the region has no end')
    this.#checkCount('entries of the region', region.entryCount, totals.entryCount)
    this.#checkCount('bytes of the region', region.byteLength, totals.byteCount)
    this.#closeRun(region)
    const row = region.row.finish(this.#settings.key, region.start.regionIndex)
    this.#regions.push({
      position: region.position,
      byteLength: region.byteLength,
      rowLength: row.byteLength,
      entryCount: region.entryCount,
      isBroadcast: region.start.isBroadcast,
    })
    this.#region = undefined
    this.#length += row.byteLength
    return row
  }

  /** Table and footer, the end of the file. */
  finish(totals: WriteTotals, durability: Durability): Uint8Array {
    if (this.#region !== undefined) throw this.#broken('the write finishes within a region')
    const { subpartitionCount } = this.#settings
    this.#checkCount('regions', this.#regions.length, totals.regionCount)
    this.#checkCount('bytes', this.#byteCount, totals.byteCount)
    this.#checkCount(
      'subpartitions with their uncompressed bytes',
      subpartitionCount,
      totals.uncompressedBytes.length,
    )
    const regionsLength = this.#length
    const tail = encodeTail(
      {
        facts: {
          ...this.#settings,
          durability,
          regionCount: this.#regions.length,
          entryCount: this.#entryCount,
          byteCount: this.#byteCount,
          recordCount: totals.recordCount,
        },
        regions: this.#regions,
        uncompressedBytes: Float64Array.from(totals.uncompressedBytes),
      },
      regionsLength,
    )
    this.#length += tail.byteLength
    return tail
  }

  #addEntry(region: OpenRegion, entry: EntryReader): void {
    const { subpartition } = entry
    if (entry.length > entryPayloadMax(this.#settings.bufferSizeBytes)) {
      throw this.#broken('an entry does not fit the buffer size of its data set', subpartition)
    }
    if (subpartition !== region.runSubpartition) this.#startRun(region, subpartition)
    else if (region.runEnded)
      throw this.#broken('an entry follows the last of its run', subpartition)
    region.runByteLength += entry.end - entry.start
    region.runEntryCount += 1
    region.runEnded = entry.isLastOfRun
    region.entryCount += 1
    this.#entryCount += 1
  }

  #startRun(region: OpenRegion, subpartition: number): void {
    if (!region.runEnded) throw this.#broken('a run has no last entry', region.runSubpartition)
    const isMark = subpartition === broadcastSubpartition
    if (isMark !== region.start.isBroadcast) {
      throw this.#broken(
        'the broadcast mark stands in all entries of a broadcast region and no other',
      )
    }
    if (!isMark && subpartition >= this.#settings.subpartitionCount) {
      throw this.#broken('an entry is of no subpartition of this partition', subpartition)
    }
    if (subpartition < region.runSubpartition) {
      throw this.#broken('subpartitions descend within a region', subpartition)
    }
    this.#closeRun(region)
    region.runSubpartition = subpartition
  }

  #closeRun(region: OpenRegion): void {
    if (region.runEntryCount === 0) return
    region.row.add({
      subpartition: region.runSubpartition,
      byteLength: region.runByteLength,
      entryCount: region.runEntryCount,
    })
    region.runByteLength = 0
    region.runEntryCount = 0
  }

  #checkCount(what: string, counted: number, declared: number): void {
    if (counted === declared) return
    throw new ShuffleError(
      'COUNT_MISMATCH',
      `the producer declared ${String(declared)} ${what}, ${String(counted)} came; the attempt must run again`,
      { fields: { ...this.#settings.key, counted, declared } },
    )
  }

  #broken(what: string, subject?: number): ShuffleError {
    return new ShuffleError('PROTOCOL', `malformed write: ${what}`, {
      fields: {
        ...this.#settings.key,
        regionIndex: this.#region?.start.regionIndex ?? this.#regions.length,
        subject,
      },
    })
  }
}
