// The entry: the same bytes in WriteData, in the file, and in ReadData. The worker copies and
// regroups entries and never changes one. Owned by whoever packs (client write), stores (worker)
// or unpacks (client read); this file is only their layout and their checksum. All big-endian.
//
//   0        4              8      9     10       12         16
//   | length | subpartition | flags | type | 0 (u16) | checksum | payload … |
//
// length: bytes of the payload as stored. subpartition: 0xFFFFFFFF in a broadcast region.
// A compressed payload is the uncompressed length (u32), then a raw LZ4 block.
//
// The checksum is CRC32 over the identity of the entry and then its payload. It is made by the
// producer and checked by the consumer, so that neither disk nor worker can give a wrong entry the
// right look:
//
//   0            4        8              12         16       20      21     22       24
//   | key CRC32  | region | subpartition | position | length | flags | type | 0 (u16) |
//
// key CRC32: of the key's text "jobId dataSetId partitionIndex attemptId" (single spaces).
// subpartition: as in the header. position: of the entry in its run (one region and subpartition,
// or one broadcast region), from 0. It is not sent: who reads counts.

import { crc32 } from '@node-rs/crc32'
import { assert } from '../common/assert.ts'
import { type ErrorCode, ShuffleError } from '../common/errors.ts'
import { type PartitionKey, partitionKeyText } from '../common/ids.ts'
import { bufferView } from './buffer-view.ts'

export const entryHeaderLength = 16

/** Stands in the subpartition field of every entry of a broadcast region. */
export const broadcastSubpartition = 0xffff_ffff

/** How much less than the buffer size an entry's payload is at most, before compression too. */
export const entryReserveBytes = 64

/** Bytes before the block of a compressed payload: the uncompressed length. */
export const compressedPrefixLength = 4

export const entryFlags = {
  /** The payload is compressed with the codec of the partition. */
  compressed: 1,
  /** The last entry of its run. */
  lastOfRun: 2,
} as const

const entryFlagsKnown = entryFlags.compressed | entryFlags.lastOfRun

/**
 * What the payload is. `data` are records in the framing of the client that wrote them; the others
 * are events of the runtime, in its own bytes. A number that a reader doesn't know is an event it
 * can't act on: DATA_CORRUPT.
 */
export const entryTypes = {
  data: 0,
  /** The producer has written all its records; the payload is the runtime's. */
  endOfData: 1,
  /** Nothing more follows for the subpartition. */
  endOfPartition: 2,
  /** The end of one superstep of an iteration. */
  endOfSuperstep: 3,
  /** Any other event, serialized by the runtime. */
  runtimeEvent: 4,
} as const

export type EntryTypeName = keyof typeof entryTypes

/** The largest payload of an entry in buffers of this size. */
export function entryPayloadMax(bufferSizeBytes: number): number {
  return bufferSizeBytes - entryReserveBytes
}

export interface EntryHeader {
  /** Bytes of the payload as stored. */
  readonly length: number
  readonly subpartition: number
  readonly flags: number
  readonly type: number
  readonly checksum: number
}

/** What the checksum covers beside the payload. */
export interface EntryIdentity {
  readonly regionIndex: number
  /** As in the header: the broadcast mark, not the subpartition served. */
  readonly subpartition: number
  /** Within its run, from 0. */
  readonly position: number
  readonly flags: number
  readonly type: number
}

/** Writes the 16 bytes before a payload; returns the offset after them. */
export function writeEntryHeader(target: Uint8Array, offset: number, header: EntryHeader): number {
  const view = bufferView(target)
  view.writeUInt32BE(header.length, offset)
  view.writeUInt32BE(header.subpartition, offset + 4)
  view.writeUInt8(header.flags, offset + 8)
  view.writeUInt8(header.type, offset + 9)
  view.writeUInt16BE(0, offset + 10)
  return view.writeUInt32BE(header.checksum, offset + 12)
}

/**
 * Makes and checks the checksums of one partition's entries. The identity goes through a table here:
 * for twenty bytes a call into native code costs ten times as much.
 */
export class EntryChecksum {
  /** Of the CRC, after the key. */
  readonly #keyState: number

  constructor(key: PartitionKey) {
    this.#keyState = nextCrcState(0xffff_ffff, crc32(partitionKeyText(key)))
  }

  /** The checksum of an entry with this identity and stored payload. */
  of(identity: EntryIdentity, payload: Uint8Array): number {
    let state = nextCrcState(this.#keyState, identity.regionIndex)
    state = nextCrcState(state, identity.subpartition)
    state = nextCrcState(state, identity.position)
    state = nextCrcState(state, payload.length)
    state = nextCrcState(state, (identity.flags << 24) | (identity.type << 16))
    return crc32(payload, ~state >>> 0)
  }
}

/** Four tables of CRC32, so that four bytes go in at once: table k is a byte and k zeros behind it. */
const crcTable0 = Int32Array.from({ length: 256 }, (_, byte) => {
  let state = byte
  for (let bit = 0; bit < 8; bit += 1) state = (state >>> 1) ^ ((state & 1) * 0xedb8_8320)
  return state
})
const crcTable1 = crcTable0.map(behindZero)
const crcTable2 = crcTable1.map(behindZero)
const crcTable3 = crcTable2.map(behindZero)

function behindZero(state: number): number {
  return (state >>> 8) ^ (crcTable0[state & 0xff] ?? 0)
}

/** The state after the four bytes of `word`, the highest first. */
function nextCrcState(state: number, word: number): number {
  const swapped = (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)
  const mixed = state ^ swapped
  return (
    (crcTable3[mixed & 0xff] ?? 0) ^
    (crcTable2[(mixed >>> 8) & 0xff] ?? 0) ^
    (crcTable1[(mixed >>> 16) & 0xff] ?? 0) ^
    (crcTable0[mixed >>> 24] ?? 0)
  )
}

/**
 * Walks over whole entries in memory without making an object for each: after `next()` answered
 * true the fields are those of the entry it stands on. A malformed entry throws the code given:
 * PROTOCOL where a peer sent it, DATA_CORRUPT where it was stored.
 */
export class EntryReader {
  readonly #code: ErrorCode
  #bytes: Uint8Array = noBytes
  #view: Buffer = noBytes
  #next = 0
  #end = 0

  /** Where the header of the entry begins. */
  start = 0
  length = 0
  subpartition = 0
  flags = 0
  type = 0
  checksum = 0

  constructor(code: 'PROTOCOL' | 'DATA_CORRUPT') {
    this.#code = code
  }

  /** Aims at `bytes[start, end)`, which must hold whole entries. */
  reset(bytes: Uint8Array, start: number, end: number): this {
    assert(start >= 0 && start <= end && end <= bytes.length, 'entries lie within their memory')
    this.#bytes = bytes
    this.#view = bufferView(bytes)
    this.#next = start
    this.#end = end
    return this
  }

  next(): boolean {
    const start = this.#next
    if (start === this.#end) return false
    if (this.#end - start < entryHeaderLength) this.#fail(start, 'its header is cut off')
    const view = this.#view
    this.start = start
    this.length = view.readUInt32BE(start)
    this.subpartition = view.readUInt32BE(start + 4)
    this.flags = view.readUInt8(start + 8)
    this.type = view.readUInt8(start + 9)
    this.checksum = view.readUInt32BE(start + 12)
    this.#next = start + entryHeaderLength + this.length
    if (this.#next > this.#end) {
      this.#fail(start, `its length ${String(this.length)} passes the end`)
    }
    if ((this.flags & ~entryFlagsKnown) !== 0 || view.readUInt16BE(start + 10) !== 0) {
      this.#fail(start, 'a reserved bit is set')
    }
    return true
  }

  /** Where the entry ends and the next begins. */
  get end(): number {
    return this.#next
  }

  get isBroadcast(): boolean {
    return this.subpartition === broadcastSubpartition
  }

  get isCompressed(): boolean {
    return (this.flags & entryFlags.compressed) !== 0
  }

  get isLastOfRun(): boolean {
    return (this.flags & entryFlags.lastOfRun) !== 0
  }

  /** A view of the stored payload, valid as long as the memory is. */
  payload(): Uint8Array {
    return this.#bytes.subarray(this.start + entryHeaderLength, this.#next)
  }

  #fail(offset: number, what: string): never {
    throw new ShuffleError(this.#code, `malformed entry at byte ${String(offset)}: ${what}`, {
      fields: { offset, end: this.#end },
    })
  }
}

const noBytes = Buffer.alloc(0)
