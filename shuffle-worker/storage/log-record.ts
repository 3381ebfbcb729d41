// The layout of the shared log: segments of records, each a whole small partition. The whole record
// is the commit: it is there with its checksum or it isn't there.
//
//   segment:  | magic u32 | version u16 | 0 u16 | record | record | …
//
//   record:
//   0           4             8           12            16              20
//   | magic u32 | version u16 | length u32 | checksum u32 | header CRC u32 | partition … |
//               | 0 u16       |
//
// length and checksum (CRC32) are of the partition, which is laid out as in a file of its own.

import { crc32 } from '@node-rs/crc32'
import { ByteReader, ByteWriter } from './byte-codec.ts'

export const segmentHeaderLength = 8
export const logRecordHeaderLength = 20
export const logVersion = 1
const segmentMagic = 0x534c_5053 // SLPS
const recordMagic = 0x534c_5052 // SLPR

/** Far above a small partition with its table; keeps a damaged length from being believed. */
export const logRecordLengthMax = 2 * 1024 * 1024

export function encodeSegmentHeader(): Uint8Array {
  return new ByteWriter(segmentHeaderLength).u32(segmentMagic).u16(logVersion).u16(0).bytes
}

export function encodeLogRecordHeader(partition: readonly Uint8Array[]): Uint8Array {
  let checksum = 0
  let length = 0
  for (const part of partition) {
    checksum = crc32(part, checksum)
    length += part.byteLength
  }
  const writer = new ByteWriter(logRecordHeaderLength)
  writer.u32(recordMagic).u16(logVersion).u16(0).u32(length).u32(checksum)
  return writer.u32(crc32(writer.bytes)).bytes
}

/** What stands at the beginning of a segment or of a record. */
export type LogHeader<T> =
  | { readonly kind: 'valid'; readonly value: T }
  /** Sound, but of another version. */
  | { readonly kind: 'unknown-version'; readonly version: number }
  | { readonly kind: 'torn' }

export function decodeSegmentHeader(bytes: Uint8Array): LogHeader<undefined> {
  if (bytes.byteLength < segmentHeaderLength) return { kind: 'torn' }
  const reader = new ByteReader(bytes)
  if (reader.u32() !== segmentMagic) return { kind: 'torn' }
  const version = reader.u16()
  // No version: bytes that were never written.
  if (version === 0) return { kind: 'torn' }
  if (version !== logVersion) return { kind: 'unknown-version', version }
  return reader.u16() === 0 ? { kind: 'valid', value: undefined } : { kind: 'torn' }
}

export function decodeLogRecordHeader(
  bytes: Uint8Array,
): LogHeader<{ readonly length: number; readonly checksum: number }> {
  if (bytes.byteLength < logRecordHeaderLength) return { kind: 'torn' }
  const reader = new ByteReader(bytes)
  if (reader.u32() !== recordMagic) return { kind: 'torn' }
  const version = reader.u16()
  reader.u16()
  const length = reader.u32()
  const checksum = reader.u32()
  if (reader.u32() !== crc32(bytes.subarray(0, logRecordHeaderLength - 4))) {
    return { kind: 'torn' }
  }
  if (version !== logVersion) return { kind: 'unknown-version', version }
  if (length === 0 || length > logRecordLengthMax) return { kind: 'torn' }
  return { kind: 'valid', value: { length, checksum } }
}

export function isLogRecordBody(
  bytes: Uint8Array,
  header: { readonly length: number; readonly checksum: number },
): boolean {
  return bytes.byteLength === header.length && crc32(bytes) === header.checksum
}
