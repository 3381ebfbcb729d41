import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeLogRecordHeader,
  decodeSegmentHeader,
  encodeLogRecordHeader,
  encodeSegmentHeader,
  isLogRecordBody,
} from '../../../shuffle-worker/storage/log-record.ts'

const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), {
  minLength: 1,
  maxLength: 4,
})

describe('a record of the shared log', () => {
  it('knows its partition, however it is cut into parts', () => {
    fc.assert(
      fc.property(parts, (all) => {
        const body = Buffer.concat(all)
        const header = decodeLogRecordHeader(encodeLogRecordHeader(all))
        expect(header).toMatchObject({ kind: 'valid', value: { length: body.byteLength } })
        expect(header.kind === 'valid' && isLogRecordBody(body, header.value)).toBe(true)
      }),
    )
  })

  it('is torn when a bit of header or body is flipped', () => {
    fc.assert(
      fc.property(parts, fc.nat(), fc.nat(7), (all, at, bit) => {
        const record = Buffer.concat([encodeLogRecordHeader(all), ...all])
        const index = at % record.byteLength
        record[index] = (record[index] ?? 0) ^ (1 << bit)
        const header = decodeLogRecordHeader(record.subarray(0, 20))
        const isWhole =
          header.kind === 'valid' && isLogRecordBody(record.subarray(20), header.value)
        expect(isWhole).toBe(false)
      }),
    )
  })

  it('is torn when it is cut off or of zeros', () => {
    const header = encodeLogRecordHeader([Buffer.from('x')])
    expect(decodeLogRecordHeader(header.subarray(0, 19)).kind).toBe('torn')
    expect(decodeLogRecordHeader(Buffer.alloc(20)).kind).toBe('torn')
    expect(decodeSegmentHeader(encodeSegmentHeader().subarray(0, 7)).kind).toBe('torn')
    expect(decodeSegmentHeader(Buffer.alloc(8)).kind).toBe('torn')
    for (let length = 0; length < 6; length += 1) {
      const torn = Buffer.alloc(8)
      torn.set(encodeSegmentHeader().subarray(0, length))
      expect(decodeSegmentHeader(torn).kind).toBe('torn')
    }
  })

  it('begins a segment that says its version', () => {
    const header = Buffer.from(encodeSegmentHeader())
    expect(decodeSegmentHeader(header).kind).toBe('valid')
    header.writeUInt16BE(2, 4)
    expect(decodeSegmentHeader(header)).toEqual({ kind: 'unknown-version', version: 2 })
  })
})
