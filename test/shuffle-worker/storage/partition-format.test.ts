import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isShuffleError } from '../../../client/common/errors.ts'
import {
  decodeFooter,
  decodeIndexRow,
  decodeTable,
  encodeTail,
  footerLength,
  indexRowLengthMax,
  IndexRowWriter,
  regionLineLengthMax,
  tableLengthMax,
  type PartitionTable,
  type RegionPlace,
} from '../../../shuffle-worker/storage/partition-format.ts'
import { keyOf } from './support/store-fixture.ts'

interface TestRun {
  readonly subpartition: number
  readonly byteLength: number
  readonly entryCount: number
}

const subpartitionCount = 50

const anyRuns = fc
  .uniqueArray(
    fc.record({
      subpartition: fc.integer({ min: 0, max: subpartitionCount - 1 }),
      byteLength: fc.integer({ min: 16, max: 2 ** 40 }),
      entryCount: fc.integer({ min: 1, max: 2 ** 31 }),
    }),
    { selector: (run) => run.subpartition, maxLength: subpartitionCount },
  )
  .map((runs) => runs.sort((a, b) => a.subpartition - b.subpartition))

function encodeRow(
  runs: readonly TestRun[],
  isBroadcast = false,
): {
  readonly bytes: Uint8Array
  readonly expected: Parameters<typeof decodeIndexRow>[1]
} {
  const writer = new IndexRowWriter(isBroadcast)
  for (const run of runs) writer.add(run)
  const bytes = writer.finish(keyOf(3), 7)
  const region: RegionPlace = {
    position: 0,
    byteLength: runs.reduce((sum, run) => sum + run.byteLength, 0),
    rowLength: bytes.byteLength,
    entryCount: runs.reduce((sum, run) => sum + run.entryCount, 0),
    isBroadcast,
  }
  return { bytes, expected: { key: keyOf(3), regionIndex: 7, region, subpartitionCount } }
}

describe('an index row', () => {
  it('comes back as it was written, within its bound', () => {
    fc.assert(
      fc.property(anyRuns, (runs) => {
        const { bytes, expected } = encodeRow(runs)
        expect(bytes.byteLength).toBeLessThanOrEqual(indexRowLengthMax(runs.length))
        const row = decodeIndexRow(bytes, expected)
        const decoded = [...row.subpartitions].map((subpartition, index) => ({
          subpartition,
          byteLength: row.byteLengths[index],
          entryCount: row.entryCounts[index],
        }))
        expect(decoded).toEqual(runs)
      }),
    )
  })

  it('of a broadcast region is one run', () => {
    const { bytes, expected } = encodeRow(
      [{ subpartition: 0xffff_ffff, byteLength: 100, entryCount: 2 }],
      true,
    )
    expect(decodeIndexRow(bytes, expected)).toMatchObject({ isBroadcast: true })
  })

  it('is DATA_CORRUPT when a bit is flipped or it is cut anywhere', () => {
    fc.assert(
      fc.property(anyRuns, fc.nat(), fc.nat(7), (runs, at, bit) => {
        const { bytes, expected } = encodeRow(runs)
        const flipped = Buffer.from(bytes)
        const index = at % flipped.byteLength
        flipped[index] = (flipped[index] ?? 0) ^ (1 << bit)
        expect(() => decodeIndexRow(flipped, expected)).toThrow(/damaged/)
        expect(() => decodeIndexRow(bytes.subarray(0, index), expected)).toThrow(/damaged/)
      }),
    )
  })

  it('of another partition or region does not pass', () => {
    const { bytes, expected } = encodeRow([{ subpartition: 1, byteLength: 20, entryCount: 1 }])
    expect(() => decodeIndexRow(bytes, { ...expected, key: keyOf(4) })).toThrow(/checksum/)
    expect(() => decodeIndexRow(bytes, { ...expected, regionIndex: 8 })).toThrow(/checksum/)
    const region = { ...expected.region, entryCount: 2 }
    expect(() => decodeIndexRow(bytes, { ...expected, region })).toThrow(/not what the table says/)
  })
})

const anyTable: fc.Arbitrary<PartitionTable> = fc
  .record({
    regions: fc.array(
      fc.record({
        byteLength: fc.integer({ min: 0, max: 2 ** 40 }),
        rowLength: fc.integer({ min: 6, max: 2 ** 20 }),
        entryCount: fc.integer({ min: 0, max: 2 ** 31 }),
        isBroadcast: fc.boolean(),
      }),
      { maxLength: 20 },
    ),
    uncompressed: fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 ** 45 })), {
      minLength: 1,
      maxLength: 40,
    }),
    recordCount: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    isSynced: fc.boolean(),
  })
  .map(({ regions, uncompressed, recordCount, isSynced }) => {
    let position = 0
    const places = regions.map((region) => {
      const place = { position, ...region }
      position += region.byteLength + region.rowLength
      return place
    })
    return {
      facts: {
        key: keyOf(9),
        allocation: { managerEpoch: 2 ** 50, jobEpoch: 3, sequence: 4 },
        subpartitionCount: uncompressed.length,
        bufferSizeBytes: 32768,
        codec: 'lz4',
        durability: isSynced ? 'sync' : 'none',
        regionCount: places.length,
        entryCount: places.reduce((sum, each) => sum + each.entryCount, 0),
        byteCount: places.reduce((sum, each) => sum + each.byteLength, 0),
        recordCount,
      },
      regions: places,
      uncompressedBytes: Float64Array.from(uncompressed),
    }
  })

function lengthOf(table: PartitionTable): number {
  const last = table.regions.at(-1)
  return last === undefined ? 0 : last.position + last.byteLength + last.rowLength
}

function decodeTail(tail: Uint8Array, totalLength: number): PartitionTable {
  const footer = decodeFooter(tail.subarray(-footerLength), totalLength)
  const begin = tail.byteLength - footerLength - footer.tableLength
  if (begin !== 0) throw new Error('a table of another length')
  return decodeTable(tail.subarray(0, -footerLength), footer)
}

describe('table and footer', () => {
  it('come back as they were written, within their bound', () => {
    fc.assert(
      fc.property(anyTable, (table) => {
        const tail = encodeTail(table, lengthOf(table))
        const bound =
          tableLengthMax(table.facts.subpartitionCount) + table.regions.length * regionLineLengthMax
        expect(tail.byteLength).toBeLessThanOrEqual(bound)
        expect(decodeTail(tail, lengthOf(table) + tail.byteLength)).toEqual(table)
      }),
    )
  })

  it('never read as another partition when a bit is flipped or bytes are missing', () => {
    fc.assert(
      fc.property(anyTable, fc.nat(), fc.nat(7), (table, at, bit) => {
        const tail = encodeTail(table, lengthOf(table))
        const total = lengthOf(table) + tail.byteLength
        const index = at % tail.byteLength
        const flipped = Buffer.from(tail)
        flipped[index] = (flipped[index] ?? 0) ^ (1 << bit)
        expect(() => decodeTail(flipped, total)).toThrow()
        const cut = tail.subarray(0, index)
        expect(() => decodeTail(cut, total - tail.byteLength + index)).toThrow()
      }),
    )
  })

  it('of no version at all are damage: bytes that were never written', () => {
    const table = fc.sample(anyTable, { numRuns: 1, seed: 1 })[0]
    if (table === undefined) throw new Error('no sample')
    const tail = Buffer.from(encodeTail(table, lengthOf(table)))
    tail.writeUInt16BE(0, tail.byteLength - 8)
    expect(() => decodeTail(tail, lengthOf(table) + tail.byteLength)).toThrow(/torn/)
  })

  it('of another version are UNSUPPORTED_VERSION, not damage', () => {
    const table = fc.sample(anyTable, { numRuns: 1, seed: 1 })[0]
    if (table === undefined) throw new Error('no sample')
    const tail = Buffer.from(encodeTail(table, lengthOf(table)))
    tail.writeUInt16BE(2, tail.byteLength - 8)
    try {
      decodeTail(tail, lengthOf(table) + tail.byteLength)
      expect.unreachable()
    } catch (error) {
      expect(isShuffleError(error, 'UNSUPPORTED_VERSION')).toBe(true)
    }
  })

  it('do not fit a file of another length', () => {
    const table = fc.sample(anyTable, { numRuns: 1, seed: 2 })[0]
    if (table === undefined) throw new Error('no sample')
    const tail = encodeTail(table, lengthOf(table))
    expect(() => decodeTail(tail, lengthOf(table) + tail.byteLength + 1)).toThrow(/another length/)
  })
})
