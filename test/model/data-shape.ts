// What a modelled data set looks like, and the bodies that its producers send: real entries whose
// payload is zeros, so that a lengths-only file keeps next to nothing of them.

import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  type PartitionKey,
} from '../../client/common/ids.ts'
import { entryFlags, entryHeaderLength, writeEntryHeader } from '../../client/protocol/entry.ts'

export interface DataShape {
  readonly name: string
  readonly producers: number
  readonly consumers: number
  /** A consumer's share of one file, over all its regions, headers counted. */
  readonly sliceBytes: number
  /** Regions of a file; each holds the same of every consumer. */
  readonly regions: number
}

export const bufferSizeBytes = 32 * 1024

export function keyOf(shape: DataShape, partitionIndex: number): PartitionKey {
  return {
    jobId: parseJobId(`job-${shape.name}`),
    dataSetId: parseDataSetId(shape.name),
    partitionIndex,
    attemptId: parseAttemptId('attempt-0'),
  }
}

export interface ShapedEntry {
  readonly subpartition: number
  /** With its header. */
  readonly byteLength: number
  readonly isLastOfRun: boolean
}

/** About what a full buffer of records takes that compresses to half. */
const entryBytesMax = bufferSizeBytes / 2 - 64

/** Of one run: as few equal entries as it takes. */
export function entryLengths(runBytes: number): number[] {
  const count = Math.ceil(runBytes / entryBytesMax)
  return Array.from(
    { length: count },
    (_, index) =>
      Math.floor((runBytes * (index + 1)) / count) - Math.floor((runBytes * index) / count),
  )
}

export function regionRunBytes(shape: DataShape): number {
  return Math.ceil(shape.sliceBytes / shape.regions)
}

/** The bodies of one region, each with its entries, packed as a client packs them. */
export function regionBodies(shape: DataShape): ShapedEntry[][] {
  const lengths = entryLengths(regionRunBytes(shape))
  const bodies: ShapedEntry[][] = []
  let body: ShapedEntry[] = []
  let bodyBytes = 0
  for (let subpartition = 0; subpartition < shape.consumers; subpartition++) {
    for (const [index, byteLength] of lengths.entries()) {
      if (bodyBytes + byteLength > bufferSizeBytes) {
        bodies.push(body)
        body = []
        bodyBytes = 0
      }
      body.push({ subpartition, byteLength, isLastOfRun: index === lengths.length - 1 })
      bodyBytes += byteLength
    }
  }
  if (body.length > 0) bodies.push(body)
  return bodies
}

/** Writes the entries into `target`, which may hold anything; returns their length. */
export function writeBody(target: Uint8Array, entries: readonly ShapedEntry[]): number {
  const length = bodyLength(entries)
  target.fill(0, 0, length)
  let offset = 0
  for (const { subpartition, byteLength, isLastOfRun } of entries) {
    writeEntryHeader(target, offset, {
      length: byteLength - entryHeaderLength,
      subpartition,
      flags: isLastOfRun ? entryFlags.lastOfRun : 0,
      type: 0,
      checksum: 0,
    })
    offset += byteLength
  }
  return length
}

export function bodyLength(entries: readonly ShapedEntry[]): number {
  return entries.reduce((sum, { byteLength }) => sum + byteLength, 0)
}

export function totalBytes(shape: DataShape): number {
  return shape.producers * shape.consumers * regionRunBytes(shape) * shape.regions
}
