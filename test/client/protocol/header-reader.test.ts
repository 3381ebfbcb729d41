import { describe, expect, it } from 'vitest'
import { HeaderReader } from '../../../client/protocol/header-reader.ts'

function readerOf(hex: string, range?: { start: number; end: number }): HeaderReader {
  const source = Buffer.from(hex, 'hex')
  const reader = new HeaderReader()
  reader.reset(source, range ?? { start: 0, end: source.length }, 'Test')
  return reader
}

describe('HeaderReader', () => {
  it('reads numbers, text and bytes in order', () => {
    const reader = readerOf('01' + '0203' + '04050607' + '08090a0b0c0d0e0f' + '000161' + '0001ff')
    expect(reader.uint8()).toBe(1)
    expect(reader.uint16()).toBe(0x0203)
    expect(reader.uint32()).toBe(0x04050607)
    expect(reader.uint64()).toBe(0x08090a0b0c0d0e0fn)
    expect(reader.text(1)).toBe('a')
    expect(reader.isAtEnd).toBe(false)
    expect(reader.bytes(1)).toEqual(new Uint8Array([0xff]))
    expect(reader.isAtEnd).toBe(true)
  })

  it('never reads past its range, though the memory goes on', () => {
    const reader = readerOf('00010203', { start: 1, end: 3 })
    reader.enter('size')
    expect(reader.uint8()).toBe(1)
    expect(() => reader.uint16()).toThrow('Test: header field size is cut off')
    expect(reader.uint8()).toBe(2)
  })

  it('gives bytes as a copy', () => {
    const source = Buffer.from('000161', 'hex')
    const reader = new HeaderReader()
    reader.reset(source, { start: 0, end: 3 }, 'Test')
    const copy = reader.bytes(1)
    source.fill(0)
    expect(copy).toEqual(new Uint8Array([0x61]))
    expect(Buffer.isBuffer(copy)).toBe(false)
  })

  it('keeps a byte order mark in text', () => {
    expect(readerOf('0003efbbbf').text(3)).toBe('\ufeff')
  })
})
