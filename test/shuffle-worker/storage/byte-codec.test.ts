import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteReader, ByteWriter } from '../../../shuffle-worker/storage/byte-codec.ts'

const number = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })

describe('numbers and texts on the disk', () => {
  it('come back as they were written', () => {
    fc.assert(
      fc.property(number, fc.string({ unit: 'binary-ascii', maxLength: 50 }), (value, text) => {
        const writer = new ByteWriter(1).varint(value).text(text).u64(value).u8(1).u16(2).u32(3)
        const reader = new ByteReader(writer.bytes)
        expect(reader.varint()).toBe(value)
        expect(reader.text(50)).toBe(text)
        expect(reader.u64()).toBe(value)
        expect([reader.u8(), reader.u16(), reader.u32()]).toEqual([1, 2, 3])
        reader.end()
      }),
    )
  })

  it.each([0, 127, 128, 2 ** 32, Number.MAX_SAFE_INTEGER])(
    'varint %i is cut off nowhere',
    (value) => {
      const { bytes } = new ByteWriter().varint(value)
      for (let length = 0; length < bytes.byteLength; length += 1) {
        expect(() => new ByteReader(bytes.subarray(0, length)).varint()).toThrow(/cut off/)
      }
    },
  )

  it('are refused when they are no number of ours', () => {
    const ones = Buffer.alloc(9, 0xff)
    expect(() => new ByteReader(ones).varint()).toThrow(/no end/)
    expect(() => new ByteReader(ones).u64()).toThrow(/2\^53/)
    const above = Buffer.from('ffffffffffffff7f', 'hex')
    expect(() => new ByteReader(above).varint()).toThrow(/2\^53/)
    expect(() => new ByteWriter().varint(-1)).toThrow(/varint/)
    expect(() => new ByteWriter().varint(0.5)).toThrow(/varint/)
  })

  it('are refused when bytes follow, or a text is longer than it may be', () => {
    const { bytes } = new ByteWriter().text('long')
    expect(() => {
      new ByteReader(bytes).end()
    }).toThrow(/follow/)
    expect(() => new ByteReader(bytes).text(3)).toThrow(/too long/)
  })
})
