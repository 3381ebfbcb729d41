// The body of ReadData: segments, each naming a run and followed by whole entries of it. Packed by
// the worker's reading views, walked by the client's buffer unpacker. All big-endian.
//
//   0           4        8              12           16
//   | partition | region | subpartition | byteLength | entries … |   and the next segment
//
// partition: index of the entry in the channel's list. subpartition: the one that is served, also
// for a broadcast region. byteLength: of the entries that follow.

import { assert } from '../common/assert.ts'
import { ShuffleError } from '../common/errors.ts'
import { bufferView } from './buffer-view.ts'
import { entryHeaderLength } from './entry.ts'

export const segmentHeaderLength = 16

export interface SegmentHeader {
  readonly partition: number
  readonly regionIndex: number
  readonly subpartition: number
  readonly byteLength: number
}

/** Writes the 16 bytes before a segment's entries; returns the offset after them. */
export function writeSegmentHeader(
  target: Uint8Array,
  offset: number,
  header: SegmentHeader,
): number {
  const view = bufferView(target)
  view.writeUInt32BE(header.partition, offset)
  view.writeUInt32BE(header.regionIndex, offset + 4)
  view.writeUInt32BE(header.subpartition, offset + 8)
  return view.writeUInt32BE(header.byteLength, offset + 12)
}

/**
 * Walks over the segments of one body without making an object for each: after `next()` answered
 * true the fields are those of the segment it stands on, its entries lie in [entriesStart,
 * entriesEnd). A malformed body is a PROTOCOL error.
 */
export class SegmentReader {
  #view: Buffer = Buffer.alloc(0)
  #end = 0

  partition = 0
  regionIndex = 0
  subpartition = 0
  entriesStart = 0
  entriesEnd = 0

  /** Aims at the first `length` bytes of `bytes`, one whole body. */
  reset(bytes: Uint8Array, length: number): this {
    assert(length <= bytes.length, 'a body lies within its memory')
    this.#view = bufferView(bytes)
    this.#end = length
    this.entriesEnd = 0
    return this
  }

  next(): boolean {
    const start = this.entriesEnd
    if (start === this.#end) return false
    if (this.#end - start < segmentHeaderLength) fail(start, 'its header is cut off')
    const view = this.#view
    const byteLength = view.readUInt32BE(start + 12)
    this.partition = view.readUInt32BE(start)
    this.regionIndex = view.readUInt32BE(start + 4)
    this.subpartition = view.readUInt32BE(start + 8)
    this.entriesStart = start + segmentHeaderLength
    this.entriesEnd = this.entriesStart + byteLength
    if (this.entriesEnd > this.#end) fail(start, `its ${String(byteLength)} bytes pass the end`)
    if (byteLength < entryHeaderLength) fail(start, 'it holds no entry')
    return true
  }
}

function fail(offset: number, what: string): never {
  throw new ShuffleError(
    'PROTOCOL',
    `malformed segment at byte ${String(offset)} of a ReadData body: ${what}`,
    { fields: { offset } },
  )
}
