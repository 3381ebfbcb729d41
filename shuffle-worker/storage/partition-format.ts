// The layout of a partition on the disk: as a file of its own, or as the body of one record in the
// shared log, byte for byte the same. Pure functions; the file writer and reader own the bytes.
//
//   partition:  | region 0 | region 1 | … | table | footer |
//   region:     | entries, subpartitions ascending … | index row |
//
//   index row:  one run per subpartition that has entries (broadcast: one run in all)
//   | flags u8 | run count | { subpartition less the one before, bytes, entries } … | checksum u32 |
//
//   table:
//   | facts | { region's entry bytes, row bytes, entries, flags u8 } … | uncompressed bytes |
//   facts: key text, manager epoch, job epoch, sequence, subpartitions, buffer size, codec,
//          durability u8, regions, entries, entry bytes, records
//   uncompressed bytes: count of subpartitions with any, { gap, bytes } …
//
//   footer, 32 bytes, the last 8 at the same place in every version:
//   0              4                8                 16               20          24        26   28
//   | table length | table checksum | length of all u64 | footer checksum | reserved  | version | 0 | magic u32 |
//
// Numbers without a type are varints. Checksums are CRC32; an index row's covers the key and the
// region's number too, so that a row of another partition doesn't pass.

import { crc32 } from '@node-rs/crc32'
import { ShuffleError } from '../../client/common/errors.ts'
import {
  idLengthMax,
  parsePartitionKeyText,
  partitionKeyText,
  type AllocationId,
  type PartitionKey,
} from '../../client/common/ids.ts'
import { ByteReader, ByteWriter, corrupt, varintLengthMax } from './byte-codec.ts'
import type { Durability } from './storage-types.ts'

export const partitionFormatVersion = 1
export const footerLength = 32
const footerMagic = 0x534c_5046 // SLPF

/** Keeps a damaged count from asking for memory. Far above what a client may open. */
export const subpartitionCountMax = 1 << 20
export const regionCountMax = 1 << 24
const keyTextLengthMax = 4 * idLengthMax
export const codecLengthMax = 64

export interface PartitionFacts {
  readonly key: PartitionKey
  readonly allocation: AllocationId
  readonly subpartitionCount: number
  readonly bufferSizeBytes: number
  readonly codec: string
  readonly durability: Durability
  readonly regionCount: number
  readonly entryCount: number
  /** Of the entries. */
  readonly byteCount: number
  readonly recordCount: number
}

export interface RegionPlace {
  /** Of the entries, from the partition's beginning. */
  readonly position: number
  readonly byteLength: number
  readonly rowLength: number
  readonly entryCount: number
  readonly isBroadcast: boolean
}

export interface PartitionTable {
  readonly facts: PartitionFacts
  readonly regions: readonly RegionPlace[]
  readonly uncompressedBytes: Float64Array
}

export interface Footer {
  readonly tableLength: number
  readonly tableChecksum: number
  readonly totalLength: number
}

/** What a region of a table in memory takes: an object. */
export const regionMemoryBytes = 96

/** Runs of one region in subpartition order, a number of each in each array. */
export interface IndexRow {
  readonly isBroadcast: boolean
  readonly subpartitions: Uint32Array
  readonly byteLengths: Float64Array
  readonly entryCounts: Uint32Array
}

const broadcastFlag = 1

/** Most bytes an index row of so many runs can take. */
export function indexRowLengthMax(runCountMax: number): number {
  return 1 + varintLengthMax + runCountMax * (5 + varintLengthMax + 5) + 4
}

/** Most bytes that table and footer can take, but for the regions' lines. */
export function tableLengthMax(subpartitionCount: number): number {
  const facts = keyTextLengthMax + codecLengthMax + 16 * varintLengthMax
  return facts + (subpartitionCount + 1) * (varintLengthMax + 3) + footerLength
}

/** Most bytes of a region's line in the table. */
export const regionLineLengthMax = 3 * varintLengthMax + 1

/** Builds an index row run by run: a few bytes each, whatever the number of entries. */
export class IndexRowWriter {
  readonly #isBroadcast: boolean
  readonly #runs = new ByteWriter(64)
  #runCount = 0
  #nextSubpartition = 0

  constructor(isBroadcast: boolean) {
    this.#isBroadcast = isBroadcast
  }

  add(run: {
    readonly subpartition: number
    readonly byteLength: number
    readonly entryCount: number
  }): void {
    const subpartition = this.#isBroadcast ? 0 : run.subpartition
    this.#runs.varint(subpartition - this.#nextSubpartition)
    this.#runs.varint(run.byteLength).varint(run.entryCount)
    this.#nextSubpartition = subpartition + 1
    this.#runCount += 1
  }

  finish(key: PartitionKey, regionIndex: number): Uint8Array {
    const row = new ByteWriter(this.#runs.length + 16)
    row.u8(this.#isBroadcast ? broadcastFlag : 0).varint(this.#runCount)
    row.append(this.#runs.bytes)
    row.u32(rowChecksum(row.bytes, key, regionIndex))
    return row.bytes
  }
}

/** DATA_CORRUPT unless `bytes` is exactly the row of this region of this partition. */
export function decodeIndexRow(
  bytes: Uint8Array,
  expected: {
    readonly key: PartitionKey
    readonly regionIndex: number
    readonly region: RegionPlace
    readonly subpartitionCount: number
  },
): IndexRow {
  if (bytes.byteLength < 4) throw corrupt('an index row is too short')
  const body = bytes.subarray(0, -4)
  const stored = new ByteReader(bytes.subarray(-4)).u32()
  if (stored !== rowChecksum(body, expected.key, expected.regionIndex)) {
    throw corrupt(`the index row of region ${String(expected.regionIndex)} fails its checksum`)
  }
  const reader = new ByteReader(body)
  const isBroadcast = (reader.u8() & broadcastFlag) !== 0
  const row = readRuns(reader, isBroadcast, expected.subpartitionCount)
  reader.end()
  const bytesSum = row.byteLengths.reduce((sum, each) => sum + each, 0)
  const entries = row.entryCounts.reduce((sum, each) => sum + each, 0)
  const { region } = expected
  if (
    isBroadcast !== region.isBroadcast ||
    bytesSum !== region.byteLength ||
    entries !== region.entryCount
  ) {
    throw corrupt(
      `the index row of region ${String(expected.regionIndex)} is not what the table says`,
    )
  }
  return row
}

function readRuns(reader: ByteReader, isBroadcast: boolean, subpartitionCount: number): IndexRow {
  const runCount = reader.varint()
  if (runCount > (isBroadcast ? 1 : subpartitionCount)) throw corrupt('an index row is too long')
  const subpartitions = new Uint32Array(runCount)
  const byteLengths = new Float64Array(runCount)
  const entryCounts = new Uint32Array(runCount)
  let next = 0
  for (let run = 0; run < runCount; run += 1) {
    const subpartition = next + reader.varint()
    if (subpartition >= subpartitionCount) throw corrupt('an index row names no subpartition')
    subpartitions[run] = subpartition
    byteLengths[run] = reader.varint()
    entryCounts[run] = reader.varint()
    next = subpartition + 1
  }
  return { isBroadcast, subpartitions, byteLengths, entryCounts }
}

function rowChecksum(body: Uint8Array, key: PartitionKey, regionIndex: number): number {
  const identity = new ByteWriter(8).u32(crc32(partitionKeyText(key))).u32(regionIndex)
  return crc32(body, crc32(identity.bytes))
}

/** Facts stand in the table of a partition and in its journal record. */
export function writeFacts(writer: ByteWriter, facts: PartitionFacts): void {
  const { allocation } = facts
  writer.text(partitionKeyText(facts.key))
  writer.varint(allocation.managerEpoch).varint(allocation.jobEpoch).varint(allocation.sequence)
  writer.varint(facts.subpartitionCount).varint(facts.bufferSizeBytes).text(facts.codec)
  writer.u8(facts.durability === 'sync' ? 1 : 0)
  writer.varint(facts.regionCount).varint(facts.entryCount)
  writer.varint(facts.byteCount).varint(facts.recordCount)
}

export function readFacts(reader: ByteReader): PartitionFacts {
  const keyText = reader.text(keyTextLengthMax)
  const allocation = {
    managerEpoch: reader.varint(),
    jobEpoch: reader.varint(),
    sequence: reader.varint(),
  }
  const facts: PartitionFacts = {
    key: parseKey(keyText),
    allocation,
    subpartitionCount: reader.varint(),
    bufferSizeBytes: reader.varint(),
    codec: reader.text(codecLengthMax),
    durability: reader.u8() === 1 ? 'sync' : 'none',
    regionCount: reader.varint(),
    entryCount: reader.varint(),
    byteCount: reader.varint(),
    recordCount: reader.varint(),
  }
  if (facts.subpartitionCount > subpartitionCountMax || facts.regionCount > regionCountMax) {
    throw corrupt('a count passes its limit')
  }
  return facts
}

function parseKey(text: string): PartitionKey {
  try {
    return parsePartitionKeyText(text)
  } catch {
    throw corrupt('a partition key is malformed')
  }
}

/** Table and footer, to be written after the last region, which ends at `regionsLength`. */
export function encodeTail(table: PartitionTable, regionsLength: number): Uint8Array {
  const writer = new ByteWriter(1024)
  writeFacts(writer, table.facts)
  for (const region of table.regions) {
    writer.varint(region.byteLength).varint(region.rowLength).varint(region.entryCount)
    writer.u8(region.isBroadcast ? broadcastFlag : 0)
  }
  writeUncompressed(writer, table.uncompressedBytes)
  const tableLength = writer.length
  const footer = new ByteWriter(footerLength)
  footer.u32(tableLength).u32(crc32(writer.bytes))
  footer.u64(regionsLength + tableLength + footerLength)
  footer.u32(crc32(footer.bytes))
  footer.u32(0).u16(partitionFormatVersion).u16(0).u32(footerMagic)
  return writer.append(footer.bytes).bytes
}

/** UNSUPPORTED_VERSION for a sound footer of another version, DATA_CORRUPT for anything else. */
export function decodeFooter(bytes: Uint8Array, totalLength: number): Footer {
  if (bytes.byteLength !== footerLength) throw corrupt('the footer is cut off')
  const reader = new ByteReader(bytes)
  const footer: Footer = {
    tableLength: reader.u32(),
    tableChecksum: reader.u32(),
    totalLength: safeLength(reader),
  }
  const checksum = reader.u32()
  const reserved = reader.u32()
  const version = reader.u16()
  const padding = reader.u16()
  if (reader.u32() !== footerMagic) throw corrupt('the file does not end in a footer')
  // No version: bytes that were never written.
  if (version === 0) throw corrupt('the footer is torn')
  if (version !== partitionFormatVersion) {
    throw new ShuffleError(
      'UNSUPPORTED_VERSION',
      `a partition has format version ${String(version)}, this worker reads ${String(partitionFormatVersion)}; it is left alone`,
      { fields: { version } },
    )
  }
  if (checksum !== crc32(bytes.subarray(0, 16)) || reserved !== 0 || padding !== 0) {
    throw corrupt('the footer fails its checksum')
  }
  if (footer.totalLength !== totalLength || footer.tableLength + footerLength > totalLength) {
    throw corrupt('the file has another length than its footer says')
  }
  return footer
}

/** A length of another version's footer may be anything: judged later. */
function safeLength(reader: ByteReader): number {
  const high = reader.u32()
  return high * 0x1_0000_0000 + reader.u32()
}

export function decodeTable(bytes: Uint8Array, footer: Footer): PartitionTable {
  if (bytes.byteLength !== footer.tableLength || crc32(bytes) !== footer.tableChecksum) {
    throw corrupt('the table fails its checksum')
  }
  const reader = new ByteReader(bytes)
  const facts = readFacts(reader)
  const regions = readRegions(reader, facts)
  const last = regions.at(-1)
  const regionsLength = last === undefined ? 0 : last.position + last.byteLength + last.rowLength
  if (regionsLength + bytes.byteLength + footerLength !== footer.totalLength) {
    throw corrupt('the regions do not fill the file')
  }
  const uncompressedBytes = readUncompressed(reader, facts.subpartitionCount)
  reader.end()
  return { facts, regions, uncompressedBytes }
}

function readRegions(reader: ByteReader, facts: PartitionFacts): RegionPlace[] {
  const regions: RegionPlace[] = []
  let position = 0
  let entryCount = 0
  let byteCount = 0
  for (let index = 0; index < facts.regionCount; index += 1) {
    const region: RegionPlace = {
      position,
      byteLength: reader.varint(),
      rowLength: reader.varint(),
      entryCount: reader.varint(),
      isBroadcast: reader.u8() === broadcastFlag,
    }
    regions.push(region)
    position += region.byteLength + region.rowLength
    entryCount += region.entryCount
    byteCount += region.byteLength
  }
  if (entryCount !== facts.entryCount || byteCount !== facts.byteCount) {
    throw corrupt('the regions do not add up to the totals')
  }
  return regions
}

function writeUncompressed(writer: ByteWriter, uncompressedBytes: Float64Array): void {
  let count = 0
  for (const bytes of uncompressedBytes) if (bytes > 0) count += 1
  writer.varint(count)
  let next = 0
  for (const [subpartition, bytes] of uncompressedBytes.entries()) {
    if (bytes === 0) continue
    writer.varint(subpartition - next).varint(bytes)
    next = subpartition + 1
  }
}

function readUncompressed(reader: ByteReader, subpartitionCount: number): Float64Array {
  const all = new Float64Array(subpartitionCount)
  const count = reader.varint()
  if (count > subpartitionCount) throw corrupt('too many subpartitions')
  let next = 0
  for (let index = 0; index < count; index += 1) {
    const subpartition = next + reader.varint()
    if (subpartition >= subpartitionCount) throw corrupt('a subpartition passes the last')
    all[subpartition] = reader.varint()
    next = subpartition + 1
  }
  return all
}
