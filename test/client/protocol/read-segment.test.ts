import { describe, expect, it } from 'vitest'
import { EntryReader } from '../../../client/protocol/entry.ts'
import { SegmentReader, writeSegmentHeader } from '../../../client/protocol/read-segment.ts'
import { wireJsonFile } from './support/wire-json.ts'

const { segments, body } = wireJsonFile.readData
const bytes = Buffer.from(body, 'hex')

describe('SegmentReader', () => {
  it('walks over the golden vector, segment by segment, entry by entry', () => {
    const memory = new Uint8Array(bytes.length + 100)
    memory.set(bytes)
    const reader = new SegmentReader().reset(memory, bytes.length)
    const entries = new EntryReader('PROTOCOL')
    for (const segment of segments) {
      expect(reader.next()).toBe(true)
      expect({
        partition: reader.partition,
        regionIndex: reader.regionIndex,
        subpartition: reader.subpartition,
        byteLength: reader.entriesEnd - reader.entriesStart,
      }).toEqual(segment)
      entries.reset(memory, reader.entriesStart, reader.entriesEnd)
      expect(entries.next()).toBe(true)
      expect(entries.subpartition).toBe(segment['subpartition'])
      expect(entries.next()).toBe(false)
    }
    expect(reader.next()).toBe(false)
    reader.reset(memory, bytes.length)
    expect(reader.next()).toBe(true)
  })

  it('refuses a body that is cut off at any byte inside a segment', () => {
    const firstEnd = 16 + segments[0]!['byteLength']!
    for (let length = 1; length < bytes.length; length += 1) {
      if (length === firstEnd) continue
      const reader = new SegmentReader().reset(bytes, length)
      expect(() => {
        while (reader.next());
      }).toThrow(expect.objectContaining({ code: 'PROTOCOL' }) as Error)
    }
  })

  it('refuses a segment that holds no entry', () => {
    const target = new Uint8Array(16)
    writeSegmentHeader(target, 0, { partition: 0, regionIndex: 0, subpartition: 0, byteLength: 0 })
    expect(() => new SegmentReader().reset(target, 16).next()).toThrow('it holds no entry')
  })
})
