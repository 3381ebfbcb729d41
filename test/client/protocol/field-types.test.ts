import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAttemptId, parseDataSetId, parseJobId } from '../../../client/common/ids.ts'
import {
  allocationId,
  bits64,
  boolean,
  bytes,
  enumeration,
  type FieldType,
  jobId,
  optionalUint64,
  optionalWorkerId,
  partitionKey,
  text,
  uint16,
  uint32,
  uint64,
  uint8,
} from '../../../client/protocol/field-types.ts'
import { HeaderReader } from '../../../client/protocol/header-reader.ts'

function encode<T>(type: FieldType<T>, value: T): string {
  const target = Buffer.alloc(type.sizeOf(value))
  expect(type.write(value, target, 0)).toBe(target.length)
  return target.toString('hex')
}

function decode<T>(type: FieldType<T>, hex: string): T {
  const source = Buffer.from(hex, 'hex')
  const reader = new HeaderReader()
  reader.reset(source, { start: 0, end: source.length }, 'Test')
  reader.enter('value')
  const value = type.read(reader)
  expect(reader.isAtEnd).toBe(true)
  return value
}

const idText = fc.stringMatching(/^[\x21-\x7e]{1,200}$/)
const safe = fc.maxSafeNat()

const cases: readonly (readonly [string, FieldType<unknown>, fc.Arbitrary<unknown>])[] = [
  ['u8', uint8, fc.nat(0xff)],
  ['u16', uint16, fc.nat(0xffff)],
  ['u32', uint32, fc.nat(0xffff_ffff)],
  ['u64', uint64, safe],
  ['u64?', optionalUint64, fc.option(safe, { nil: undefined })],
  ['bits64', bits64, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })],
  ['bool', boolean, fc.boolean()],
  ['u8(0 none, 7 all)', enumeration({ none: 0, all: 7 }), fc.constantFrom('none', 'all')],
  [
    'text(40)',
    text(40),
    fc.string({ unit: 'grapheme', maxLength: 5 }).filter((each) => Buffer.byteLength(each) <= 40),
  ],
  ['bytes(9)', bytes(9), fc.uint8Array({ maxLength: 9 })],
  ['id', jobId, idText],
  ['id?', optionalWorkerId, fc.option(idText, { nil: undefined })],
  [
    'partitionKey',
    partitionKey,
    fc.record({
      jobId: idText.map(parseJobId),
      dataSetId: idText.map(parseDataSetId),
      partitionIndex: fc.nat(0xffff_ffff),
      attemptId: idText.map(parseAttemptId),
    }),
  ],
  ['allocationId', allocationId, fc.record({ managerEpoch: safe, jobEpoch: safe, sequence: safe })],
]

describe('field types', () => {
  it.each(cases)('%s: what is written is read again', (wireType, type, values) => {
    expect(type.wireType).toBe(wireType)
    fc.assert(
      fc.property(values, (value) => {
        expect(decode(type, encode(type, value))).toEqual(value)
      }),
    )
  })

  it.each(cases)('%s: its examples are values of it', (_, type) => {
    for (const value of [type.examples.smallest, type.examples.largest]) {
      expect(decode(type, encode(type, value))).toEqual(value)
    }
  })

  it('have the layouts that they say', () => {
    expect(encode(uint64, 2 ** 53 - 1)).toBe('001fffffffffffff')
    expect(encode(optionalUint64, undefined)).toBe('ffffffffffffffff')
    expect(encode(text(10), 'aé')).toBe('000361c3a9')
    expect(encode(optionalWorkerId, undefined)).toBe('0000')
  })

  it.each([
    ['a u64 above 2^53 - 1', uint64, '0020000000000000'],
    ['a u64? above 2^53 - 1', optionalUint64, '0020000000000000'],
    ['a bool of 2', boolean, '02'],
    ['an unknown number of an enumeration', enumeration({ none: 0 }), '01'],
    ['text that is not UTF-8', text(10), '0001ff'],
    ['text that is cut inside a character', text(10), '0003f09f98'],
    ['text above its limit', text(2), '0003616161'],
    ['bytes above their limit', bytes(2), '0003616161'],
    ['bytes past the end', bytes(10), '000361'],
    ['an empty id', jobId, '0000'],
    ['an id with a space', jobId, '000120'],
    ['an id beyond ASCII', jobId, '0002c3a9'],
    ['an id of 201 characters', jobId, '00c9' + '61'.repeat(201)],
    ['an optional id with a control character', optionalWorkerId, '000107'],
  ])('refuse %s, naming message and field', (_, type, hex) => {
    expect(() => decode(type as FieldType<unknown>, hex)).toThrow(
      expect.objectContaining({
        code: 'PROTOCOL',
        fields: { message: 'Test', field: 'value' },
      }) as Error,
    )
  })

  it.each([
    ['u8', uint8, 256],
    ['u16', uint16, -1],
    ['u32', uint32, 1.5],
    ['u64', uint64, 2 ** 53],
  ])('%s asserts that a value fits', (_, type, value) => {
    expect(() => encode(type, value)).toThrow('a field of at most')
  })
})
