// What a segment of the shared log holds beyond what the journal knows of it: whole records are
// committed partitions, a torn tail is cut, and what has another version, or can't be read, is left as
// it is.

import { isShuffleError } from '../../client/common/errors.ts'
import type { Logger } from '../../client/common/log.ts'
import { isUnreadable } from './disk-operation.ts'
import type { PartitionPlace } from './journal-records.ts'
import {
  decodeLogRecordHeader,
  decodeSegmentHeader,
  isLogRecordBody,
  logRecordHeaderLength,
  segmentHeaderLength,
  type LogHeader,
} from './log-record.ts'
import { decodeFooter, decodeTable, footerLength, type PartitionFacts } from './partition-format.ts'
import type { QueuedDisk, QueuedFile } from './queued-disk.ts'

export interface FoundPartition {
  readonly place: PartitionPlace
  readonly facts: PartitionFacts
}

export interface ScannedSegment {
  readonly sizeBytes: number
  /** Where the known records end. */
  readonly end: number
  /** Whole records from `knownEnd` on. */
  readonly found: readonly FoundPartition[]
  /** Not even its header is whole: nothing was ever committed in it. */
  readonly isEmpty: boolean
  /** Another version begins here, or the disk can't read it: neither read nor cut. */
  readonly isForeign: boolean
}

export interface SegmentSettings {
  readonly disk: QueuedDisk
  readonly path: string
  readonly ordinal: number
  readonly knownEnd: number
  readonly logger: Logger
}

/** Scans the tail and cuts what is torn. */
export async function recoverSegment(settings: SegmentSettings): Promise<ScannedSegment> {
  try {
    return await scanAndCut(settings)
  } catch (error) {
    if (!isUnreadable(error)) throw error
    const { path, knownEnd, logger } = settings
    logger.warn({ path, error }, 'a segment that cannot be read is left alone; check the disk')
    // What the journal knows there is served as far as it can be.
    return { sizeBytes: knownEnd, end: knownEnd, found: [], isEmpty: false, isForeign: true }
  }
}

async function scanAndCut(settings: SegmentSettings): Promise<ScannedSegment> {
  const { disk, path, logger } = settings
  const file = await disk.open(path, 'update')
  try {
    const scanned = await scan(file, settings)
    if (scanned.isForeign) {
      logger.warn({ path }, 'a segment of the shared log has another version and is left alone')
    } else if (!scanned.isEmpty && scanned.end < scanned.sizeBytes) {
      await file.truncate(scanned.end)
      await file.sync()
    }
    return scanned
  } finally {
    await file.close()
  }
}

async function scan(file: QueuedFile, settings: SegmentSettings): Promise<ScannedSegment> {
  const sizeBytes = await file.sizeBytes()
  const header = decodeSegmentHeader(await readUpTo(file, 0, segmentHeaderLength))
  if (header.kind !== 'valid') {
    const isForeign = header.kind === 'unknown-version'
    return { sizeBytes, end: 0, found: [], isEmpty: !isForeign, isForeign }
  }
  const found: FoundPartition[] = []
  let end = Math.max(settings.knownEnd, segmentHeaderLength)
  while (end < sizeBytes) {
    const record = await readRecord(file, settings.ordinal, end)
    if (record.kind === 'valid') {
      found.push(record.value)
      end += logRecordHeaderLength + record.value.place.byteLength
      continue
    }
    const isForeign = record.kind === 'unknown-version'
    return { sizeBytes, end, found, isEmpty: false, isForeign }
  }
  return { sizeBytes, end, found, isEmpty: false, isForeign: false }
}

async function readRecord(
  file: QueuedFile,
  ordinal: number,
  position: number,
): Promise<LogHeader<FoundPartition>> {
  const header = decodeLogRecordHeader(await readUpTo(file, position, logRecordHeaderLength))
  if (header.kind !== 'valid') return header
  const offset = position + logRecordHeaderLength
  const body = await readUpTo(file, offset, header.value.length)
  if (!isLogRecordBody(body, header.value)) return { kind: 'torn' }
  try {
    const footer = decodeFooter(body.subarray(-footerLength), body.byteLength)
    const table = decodeTable(
      body.subarray(-footerLength - footer.tableLength, -footerLength),
      footer,
    )
    const place: PartitionPlace = { kind: 'segment', ordinal, offset, byteLength: body.byteLength }
    return { kind: 'valid', value: { place, facts: table.facts } }
  } catch (error) {
    if (isShuffleError(error, 'UNSUPPORTED_VERSION')) return { kind: 'unknown-version', version: 0 }
    if (isShuffleError(error, 'DATA_CORRUPT')) return { kind: 'torn' }
    throw error
  }
}

async function readUpTo(file: QueuedFile, position: number, length: number): Promise<Uint8Array> {
  const target = Buffer.alloc(length)
  const count = await file.read(target, position).result
  return target.subarray(0, count)
}
