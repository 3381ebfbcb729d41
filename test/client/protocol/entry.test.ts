import { crc32 as zlibCrc32 } from 'node:zlib'
import { uncompressSync } from 'lz4-napi'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { parseAttemptId, parseDataSetId, parseJobId } from '../../../client/common/ids.ts'
import {
  broadcastSubpartition,
  entryFlags,
  EntryChecksum,
  entryHeaderLength,
  entryPayloadMax,
  EntryReader,
  writeEntryHeader,
} from '../../../client/protocol/entry.ts'
import { segmentHeaderLength } from '../../../client/protocol/read-segment.ts'
import { wireJsonFile } from './support/wire-json.ts'

function keyOf(vector: Pick<(typeof wireJsonFile.entries)[number], 'key'>) {
  return {
    jobId: parseJobId(vector.key.jobId),
    dataSetId: parseDataSetId(vector.key.dataSetId),
    partitionIndex: vector.key.partitionIndex,
    attemptId: parseAttemptId(vector.key.attemptId),
  }
}

const key = keyOf(wireJsonFile.entries[0]!)
const identity = { regionIndex: 1, subpartition: 2, position: 3, flags: 2, type: 0 }

function entryOf(payload: Uint8Array, change: Partial<typeof identity> = {}): Buffer {
  const facts = { ...identity, ...change }
  const bytes = Buffer.alloc(entryHeaderLength + payload.length)
  const checksum = new EntryChecksum(key).of(facts, payload)
  const end = writeEntryHeader(bytes, 0, { ...facts, length: payload.length, checksum })
  bytes.set(payload, end)
  return bytes
}

describe('EntryChecksum', () => {
  it('makes the golden vectors, as WIRE.md says them', () => {
    for (const vector of wireJsonFile.entries) {
      const payload = Buffer.from(vector.payload, 'hex')
      expect(new EntryChecksum(keyOf(vector)).of(vector, payload)).toBe(vector.checksum)
      const { jobId, dataSetId, partitionIndex, attemptId } = vector.key
      const text = `${jobId} ${dataSetId} ${String(partitionIndex)} ${attemptId}`
      const block = Buffer.alloc(24)
      for (const [index, number] of [
        zlibCrc32(text),
        vector.regionIndex,
        vector.subpartition,
        vector.position,
        payload.length,
      ].entries()) {
        block.writeUInt32BE(number, index * 4)
      }
      block[20] = vector.flags
      block[21] = vector.type
      expect(zlibCrc32(Buffer.concat([block, payload]))).toBe(vector.checksum)
      expect(vector.bytes.slice(32)).toBe(vector.payload)
    }
  })

  it('differs when any part of the identity or a bit of the payload does', () => {
    const payload = Buffer.from('payload')
    const checksum = new EntryChecksum(key)
    const right = checksum.of(identity, payload)
    for (const name of ['regionIndex', 'subpartition', 'position', 'flags', 'type'] as const) {
      expect(checksum.of({ ...identity, [name]: identity[name] + 1 }, payload)).not.toBe(right)
    }
    expect(checksum.of(identity, Buffer.from('payloae'))).not.toBe(right)
    expect(checksum.of(identity, Buffer.from('payloa'))).not.toBe(right)
    for (const change of [
      { jobId: parseJobId('b') },
      { dataSetId: parseDataSetId('b') },
      { partitionIndex: 1 },
      { attemptId: parseAttemptId('b') },
    ]) {
      expect(new EntryChecksum({ ...key, ...change }).of(identity, payload)).not.toBe(right)
    }
    expect(checksum.of(identity, payload)).toBe(right)
  })
})

/** Checks the one entry in `bytes` as a consumer does. */
function check(vector: (typeof wireJsonFile.refusedEntries)[number]): void {
  const bytes = Buffer.from(vector.bytes, 'hex')
  const reader = new EntryReader('DATA_CORRUPT').reset(bytes, 0, bytes.length)
  reader.next()
  const { subpartition, flags, type } = reader
  const { regionIndex, position } = vector
  const facts = { regionIndex, position, subpartition, flags, type }
  if (new EntryChecksum(keyOf(vector)).of(facts, reader.payload()) === reader.checksum) return
  throw new ShuffleError('DATA_CORRUPT', 'wrong checksum')
}

describe('entries', () => {
  it.each(wireJsonFile.refusedEntries)('with $about do not get through', (vector) => {
    expect(() => {
      check(vector)
    }).toThrow(expect.objectContaining({ code: vector.code }) as Error)
  })

  it('of the largest payload fit a body with the headers of both', () => {
    const bufferSize = 32_768
    expect(
      segmentHeaderLength + entryHeaderLength + entryPayloadMax(bufferSize),
    ).toBeLessThanOrEqual(bufferSize)
  })

  it('hold a raw LZ4 block behind its uncompressed length when compressed', () => {
    const vector = wireJsonFile.entries.find(({ flags }) => (flags & entryFlags.compressed) !== 0)!
    const payload = Buffer.from(vector.payload, 'hex')
    const size = Buffer.alloc(4)
    size.writeUInt32LE(payload.readUInt32BE(0), 0)
    const text = uncompressSync(Buffer.concat([size, payload.subarray(4)])).toString()
    expect(text).toBe('The quick brown fox jumps over the lazy dog'.repeat(2))
  })
})

describe('EntryReader', () => {
  it('walks over whole entries anywhere in memory', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 8 }),
        fc.nat(20),
        (payloads, before) => {
          const entries = payloads.map((payload, position) => entryOf(payload, { position }))
          const bytes = new Uint8Array(
            Buffer.concat([Buffer.alloc(before), ...entries, Buffer.alloc(9)]),
          )
          const reader = new EntryReader('PROTOCOL').reset(bytes, before, bytes.length - 9)
          const checksum = new EntryChecksum(key)
          for (const [position, payload] of payloads.entries()) {
            expect(reader.next()).toBe(true)
            expect(new Uint8Array(reader.payload())).toEqual(payload)
            expect(reader.length).toBe(payload.length)
            expect(reader.end - reader.start).toBe(entryHeaderLength + payload.length)
            expect(reader.checksum).toBe(checksum.of({ ...identity, position }, payload))
          }
          expect(reader.next()).toBe(false)
          expect(reader.next()).toBe(false)
        },
      ),
    )
  })

  it('tells broadcast, compressed and last of run', () => {
    const bytes = Buffer.concat([
      entryOf(Buffer.alloc(1), { subpartition: broadcastSubpartition, flags: 0 }),
      entryOf(Buffer.alloc(1), { flags: entryFlags.compressed | entryFlags.lastOfRun }),
    ])
    const reader = new EntryReader('PROTOCOL').reset(bytes, 0, bytes.length)
    reader.next()
    expect([reader.isBroadcast, reader.isCompressed, reader.isLastOfRun]).toEqual([
      true,
      false,
      false,
    ])
    reader.next()
    expect([reader.isBroadcast, reader.isCompressed, reader.isLastOfRun]).toEqual([
      false,
      true,
      true,
    ])
  })

  it.each(['PROTOCOL', 'DATA_CORRUPT'] as const)('refuses what is malformed with %s', (code) => {
    const right = entryOf(Buffer.from('payload'))
    const changed = (offset: number, value: number) => {
      const bytes = Buffer.from(right)
      bytes[offset] = value
      return bytes
    }
    const malformed = [
      ...Array.from({ length: right.length - 1 }, (_, index) => right.subarray(0, index + 1)),
      changed(3, 8),
      changed(0, 0xff),
      changed(8, 4),
      changed(8, 0x80),
      changed(10, 1),
      changed(11, 1),
      Buffer.concat([right, Buffer.alloc(15)]),
    ]
    for (const bytes of malformed) {
      const reader = new EntryReader(code).reset(bytes, 0, bytes.length)
      expect(() => {
        while (reader.next());
      }).toThrow(expect.objectContaining({ code }) as Error)
    }
  })
})
