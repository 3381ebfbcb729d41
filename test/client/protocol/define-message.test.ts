import { describe, expect, it } from 'vitest'
import { defineMessage, field } from '../../../client/protocol/define-message.ts'
import { bytes, text, uint32 } from '../../../client/protocol/field-types.ts'
import { HeaderReader } from '../../../client/protocol/header-reader.ts'

const facts = {
  name: 'Made',
  id: 99,
  direction: 'both',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'Made up.',
} as const

const Made = defineMessage({
  ...facts,
  fields: {
    first: field(uint32, 'Of version 1.'),
    second: field(text(10), 'Of version 2.', { since: 2, absent: 'none' }),
    third: field(uint32, 'Of version 3.', { since: 3, absent: 3 }),
  },
})

function read(header: Buffer) {
  const reader = new HeaderReader()
  reader.reset(header, { start: 0, end: header.length }, 'Made')
  return { values: Made.read(reader), isAtEnd: reader.isAtEnd }
}

describe('defineMessage', () => {
  const values = { first: 7, second: 'two', third: 9 }

  it('writes and reads the fields in the order of their declaration', () => {
    const header = Buffer.alloc(Made.sizeOf(values) + 2)
    expect(Made.write(values, header, 1)).toBe(header.length - 1)
    expect(header.toString('hex')).toBe('00' + '00000007' + '000374776f' + '00000009' + '00')
    expect(read(header.subarray(1, -1))).toEqual({ values, isAtEnd: true })
  })

  it('gives fields that an older header ends before their declared values', () => {
    const header = Buffer.from('00000007' + '000374776f', 'hex')
    expect(read(header).values).toEqual({ ...values, third: 3 })
    expect(read(header.subarray(0, 4)).values).toEqual({ first: 7, second: 'none', third: 3 })
  })

  it('leaves unread what a newer header appends', () => {
    const header = Buffer.from('00000007' + '000374776f' + '00000009' + 'ff', 'hex')
    expect(read(header)).toEqual({ values, isAtEnd: false })
  })

  it.each([0, 3, 5, 8, 10])('refuses a header of %i bytes, which ends inside a field', (length) => {
    const header = Buffer.from('00000007' + '000374776f' + '00000009', 'hex')
    expect(() => read(header.subarray(0, length))).toThrow('cut off')
  })

  it('refuses fields that are inserted, or added without a value for older peers', () => {
    const later = field(uint32, 'Later.', { since: 2, absent: 0 })
    const first = field(uint32, 'First.')
    expect(() => defineMessage({ ...facts, fields: { later, first } })).toThrow('appended')
    expect(() => defineMessage({ ...facts, fields: { later: { ...first, since: 2 } } })).toThrow(
      'has a default',
    )
  })

  it('refuses a body that is not told, and a header past its limit', () => {
    expect(() => defineMessage({ ...facts, body: 'data', fields: {} })).toThrow('the body is told')
    const Wide = defineMessage({ ...facts, fields: { wide: field(bytes(60_000), 'Wide.') } })
    expect(() => Wide.write({ wide: new Uint8Array(20_000) }, Buffer.alloc(30_000), 0)).toThrow(
      'within its limit',
    )
  })
})
