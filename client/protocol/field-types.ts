// How one value stands in a header. A type is declared once, here; the codec, WIRE.md and the
// golden vectors are made from it. All numbers are big-endian and unsigned.

import { assert } from '../common/assert.ts'
import { ShuffleError } from '../common/errors.ts'
import {
  type AllocationId,
  type AttemptId,
  type ClusterId,
  type DataSetId,
  idLengthMax,
  type JobId,
  parseAttemptId,
  parseClusterId,
  parseDataSetId,
  parseJobId,
  parseWorkerId,
  type PartitionKey,
  type WorkerId,
} from '../common/ids.ts'
import type { HeaderReader } from './header-reader.ts'

export interface FieldType<T> {
  /** Name of the layout in WIRE.md and wire.json. */
  readonly wireType: string
  /** A sentence on the layout, for WIRE.md. */
  readonly layout: string
  sizeOf(value: T): number
  /** Writes at `offset`; returns the offset after the value. */
  write(value: T, target: Buffer, offset: number): number
  read(reader: HeaderReader): T
  /** They make the smallest and the largest golden vector of each message. */
  readonly examples: { readonly smallest: T; readonly largest: T }
}

function assertInteger(value: number, max: number): void {
  assert(
    Number.isInteger(value) && value >= 0 && value <= max,
    `a field of at most ${String(max)} holds ${String(value)}`,
  )
}

export const uint8: FieldType<number> = {
  wireType: 'u8',
  layout: 'one byte',
  sizeOf: () => 1,
  write(value, target, offset) {
    assertInteger(value, 0xff)
    return target.writeUInt8(value, offset)
  },
  read: (reader) => reader.uint8(),
  examples: { smallest: 0, largest: 0xff },
}

export const uint16: FieldType<number> = {
  wireType: 'u16',
  layout: 'two bytes',
  sizeOf: () => 2,
  write(value, target, offset) {
    assertInteger(value, 0xffff)
    return target.writeUInt16BE(value, offset)
  },
  read: (reader) => reader.uint16(),
  examples: { smallest: 0, largest: 0xffff },
}

export const uint32: FieldType<number> = {
  wireType: 'u32',
  layout: 'four bytes',
  sizeOf: () => 4,
  write(value, target, offset) {
    assertInteger(value, 0xffff_ffff)
    return target.writeUInt32BE(value, offset)
  },
  read: (reader) => reader.uint32(),
  examples: { smallest: 0, largest: 0xffff_ffff },
}

/** A count or size: eight bytes on the wire, a number here. */
export const uint64: FieldType<number> = {
  wireType: 'u64',
  layout: 'eight bytes; a value above 2^53 - 1 is a PROTOCOL error',
  sizeOf: () => 8,
  write(value, target, offset) {
    assertInteger(value, Number.MAX_SAFE_INTEGER)
    const next = target.writeUInt32BE(Math.floor(value / 0x1_0000_0000), offset)
    return target.writeUInt32BE(value % 0x1_0000_0000, next)
  },
  read: (reader) => reader.safeUint64(),
  examples: { smallest: 0, largest: Number.MAX_SAFE_INTEGER },
}

const unknownUint64 = 0xffff_ffff_ffff_ffffn

/** A count that its sender may not know. */
export const optionalUint64: FieldType<number | undefined> = {
  wireType: 'u64?',
  layout: 'eight bytes; all ones: not known; else as u64',
  sizeOf: () => 8,
  write(value, target, offset) {
    if (value === undefined) return target.writeBigUInt64BE(unknownUint64, offset)
    return uint64.write(value, target, offset)
  },
  read(reader) {
    const value = reader.uint64()
    if (value === unknownUint64) return undefined
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) return reader.fail('is larger than 2^53 - 1')
    return Number(value)
  },
  examples: { smallest: undefined, largest: Number.MAX_SAFE_INTEGER },
}

/** A set of 64 bits. */
export const bits64: FieldType<bigint> = {
  wireType: 'bits64',
  layout: 'eight bytes, one bit each',
  sizeOf: () => 8,
  write: (value, target, offset) => target.writeBigUInt64BE(value, offset),
  read: (reader) => reader.uint64(),
  examples: { smallest: 0n, largest: 0xffff_ffff_ffff_ffffn },
}

export const boolean: FieldType<boolean> = {
  wireType: 'bool',
  layout: 'one byte: 0 or 1, anything else is a PROTOCOL error',
  sizeOf: () => 1,
  write: (value, target, offset) => target.writeUInt8(value ? 1 : 0, offset),
  read(reader) {
    const value = reader.uint8()
    if (value > 1) return reader.fail(`is ${String(value)}, neither 0 nor 1`)
    return value === 1
  },
  examples: { smallest: false, largest: true },
}

/** One of a few declared numbers. A number that this version doesn't know is a PROTOCOL error. */
export function enumeration<const Values extends Readonly<Record<string, number>>>(
  values: Values,
): FieldType<keyof Values & string> {
  const names = Object.keys(values) as (keyof Values & string)[]
  const namesByNumber = new Map<number | undefined, keyof Values & string>(
    names.map((name) => [values[name], name]),
  )
  const [smallest] = names
  const largest = names.at(-1)
  assert(smallest !== undefined && largest !== undefined, 'an enumeration has values')
  return {
    wireType: `u8(${names.map((name) => `${String(values[name])} ${name}`).join(', ')})`,
    layout: 'one byte, one of the numbers named; any other is a PROTOCOL error',
    sizeOf: () => 1,
    write: (value, target, offset) => target.writeUInt8(values[value] ?? 0, offset),
    read(reader) {
      const value = reader.uint8()
      return namesByNumber.get(value) ?? reader.fail(`has the unknown value ${String(value)}`)
    },
    examples: { smallest, largest },
  }
}

export function text(lengthMax: number): FieldType<string> {
  return {
    wireType: `text(${String(lengthMax)})`,
    layout: 'u16 length, then that many bytes of UTF-8; at most the number of bytes given',
    sizeOf: (value) => 2 + Buffer.byteLength(value),
    write(value, target, offset) {
      const length = target.write(value, offset + 2)
      assertInteger(length, lengthMax)
      target.writeUInt16BE(length, offset)
      return offset + 2 + length
    },
    read: (reader) => reader.text(lengthMax),
    examples: {
      smallest: '',
      largest: 'é'.repeat(Math.floor(lengthMax / 2)) + 'x'.repeat(lengthMax % 2),
    },
  }
}

export function bytes(lengthMax: number): FieldType<Uint8Array> {
  return {
    wireType: `bytes(${String(lengthMax)})`,
    layout: 'u16 length, then that many bytes; at most the number given',
    sizeOf: (value) => 2 + value.length,
    write(value, target, offset) {
      assertInteger(value.length, lengthMax)
      target.set(value, target.writeUInt16BE(value.length, offset))
      return offset + 2 + value.length
    },
    read: (reader) => reader.bytes(lengthMax),
    examples: {
      smallest: new Uint8Array(0),
      largest: Uint8Array.from({ length: lengthMax }, (_, index) => index & 0xff),
    },
  }
}

/** An id: 1 to 200 printable ASCII characters without spaces. */
function id<T extends string>(parse: (text: string) => T): FieldType<T> {
  const longest = 'abcdefghijklmnopqrstuvwxyz0123456789-_.:'.repeat(idLengthMax / 40)
  return {
    wireType: 'id',
    layout: `u16 length (1 to ${String(idLengthMax)}), then that many printable ASCII characters without spaces (0x21 to 0x7e)`,
    sizeOf: (value) => 2 + value.length,
    write(value, target, offset) {
      const length = target.write(value, offset + 2, 'latin1')
      assert(length >= 1 && length <= idLengthMax, 'an id has 1 to 200 characters')
      target.writeUInt16BE(length, offset)
      return offset + 2 + length
    },
    read: (reader) => readId(reader, parse),
    examples: { smallest: parse('a'), largest: parse(longest) },
  }
}

function readId<T extends string>(reader: HeaderReader, parse: (text: string) => T): T {
  const value = reader.latin1(idLengthMax)
  try {
    return parse(value)
  } catch (error) {
    if (!(error instanceof ShuffleError)) throw error
    return reader.fail(`is no id: ${error.message}`)
  }
}

/** An id that may be left out: empty on the wire, undefined here. */
function optionalId<T extends string>(parse: (text: string) => T): FieldType<T | undefined> {
  const required = id(parse)
  return {
    wireType: 'id?',
    layout: 'u16 length 0: not stated; else as id',
    sizeOf: (value) => (value === undefined ? 2 : required.sizeOf(value)),
    write(value, target, offset) {
      if (value === undefined) return target.writeUInt16BE(0, offset)
      return required.write(value, target, offset)
    },
    read: (reader) =>
      readId(reader, (value) => (value === '' ? undefined : parse(value)) as T & string),
    examples: { smallest: undefined, largest: required.examples.largest },
  }
}

export const workerId: FieldType<WorkerId> = id(parseWorkerId)
export const clusterId: FieldType<ClusterId> = id(parseClusterId)
export const jobId: FieldType<JobId> = id(parseJobId)
export const dataSetId: FieldType<DataSetId> = id(parseDataSetId)
export const attemptId: FieldType<AttemptId> = id(parseAttemptId)
export const optionalWorkerId = optionalId(parseWorkerId)
export const optionalClusterId = optionalId(parseClusterId)

export const partitionKey: FieldType<PartitionKey> = {
  wireType: 'partitionKey',
  layout: 'job id (id), data set id (id), partition index (u32), attempt id (id)',
  sizeOf: (key) =>
    jobId.sizeOf(key.jobId) + dataSetId.sizeOf(key.dataSetId) + 4 + attemptId.sizeOf(key.attemptId),
  write(key, target, offset) {
    let next = jobId.write(key.jobId, target, offset)
    next = dataSetId.write(key.dataSetId, target, next)
    next = uint32.write(key.partitionIndex, target, next)
    return attemptId.write(key.attemptId, target, next)
  },
  read: (reader) => ({
    jobId: jobId.read(reader),
    dataSetId: dataSetId.read(reader),
    partitionIndex: reader.uint32(),
    attemptId: attemptId.read(reader),
  }),
  examples: {
    smallest: {
      jobId: jobId.examples.smallest,
      dataSetId: dataSetId.examples.smallest,
      partitionIndex: 0,
      attemptId: attemptId.examples.smallest,
    },
    largest: {
      jobId: jobId.examples.largest,
      dataSetId: dataSetId.examples.largest,
      partitionIndex: 0xffff_ffff,
      attemptId: attemptId.examples.largest,
    },
  },
}

export const allocationId: FieldType<AllocationId> = {
  wireType: 'allocationId',
  layout: 'manager epoch, job epoch, sequence (u64 each)',
  sizeOf: () => 24,
  write(allocation, target, offset) {
    let next = uint64.write(allocation.managerEpoch, target, offset)
    next = uint64.write(allocation.jobEpoch, target, next)
    return uint64.write(allocation.sequence, target, next)
  },
  read: (reader) => ({
    managerEpoch: reader.safeUint64(),
    jobEpoch: reader.safeUint64(),
    sequence: reader.safeUint64(),
  }),
  examples: {
    smallest: { managerEpoch: 0, jobEpoch: 0, sequence: 0 },
    largest: {
      managerEpoch: Number.MAX_SAFE_INTEGER,
      jobEpoch: Number.MAX_SAFE_INTEGER,
      sequence: Number.MAX_SAFE_INTEGER,
    },
  },
}
