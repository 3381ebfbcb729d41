import { describe, expect, it } from 'vitest'
import { PartitionBuilder } from '../../../shuffle-worker/storage/partition-builder.ts'
import type { TestRegion } from './support/store-fixture.ts'
import {
  allocationOf,
  bufferSizeBytes,
  encodeRegion,
  keyOf,
  regionOf,
  sumOfLengths,
} from './support/store-fixture.ts'

const key = keyOf(1)

function newBuilder(): PartitionBuilder {
  return new PartitionBuilder({
    key,
    allocation: allocationOf(1),
    subpartitionCount: 4,
    bufferSizeBytes,
    codec: 'lz4',
  })
}

function region(subpartitions: readonly number[], isBroadcast = false): TestRegion {
  return regionOf(key, 0, { isBroadcast, subpartitions, entriesPerRun: 2, payloadBytes: 50 })
}

function bytesOf(...regions: readonly TestRegion[]): Buffer {
  return Buffer.concat(regions.flatMap((each) => encodeRegion(key, 0, each)))
}

function start(builder: PartitionBuilder, isBroadcast = false, boundBytes = 10_000): void {
  builder.startRegion({ regionIndex: builder.regionCount, isBroadcast, boundBytes })
}

const totals = (count: number, byteCount: number) => ({
  regionCount: count,
  byteCount,
  recordCount: 5,
  uncompressedBytes: [1, 2, 3, 4],
})

describe('a partition builder', () => {
  it('takes regions whose subpartitions ascend, and counts them', () => {
    const builder = newBuilder()
    const bytes = bytesOf(region([0, 1, 3]))
    for (const isBroadcast of [false, true]) {
      start(builder, isBroadcast)
      const sent = isBroadcast ? bytesOf(region([0], true)) : bytes
      builder.add(sent, sent.byteLength)
      const entryCount = isBroadcast ? 2 : 6
      const row = builder.finishRegion({ entryCount, byteCount: sent.byteLength })
      expect(row.byteLength).toBeGreaterThan(5)
    }
    const tail = builder.finish(totals(2, builder.byteCount), 'none')
    expect(builder.length).toBeGreaterThan(builder.byteCount + tail.byteLength)
    expect(builder.entryCount).toBe(8)
  })

  it('takes a run in several bodies', () => {
    const builder = newBuilder()
    start(builder)
    const entries = encodeRegion(key, 0, region([1, 2]))
    for (const entry of entries) builder.add(entry, entry.byteLength)
    builder.finishRegion({ entryCount: 4, byteCount: sumOfLengths(entries) })
    expect(builder.entryCount).toBe(4)
  })

  it('takes an empty region and an empty partition', () => {
    const builder = newBuilder()
    start(builder)
    builder.finishRegion({ entryCount: 0, byteCount: 0 })
    expect(builder.finish(totals(1, 0), 'sync').byteLength).toBeGreaterThan(0)
    expect(newBuilder().finish(totals(0, 0), 'sync').byteLength).toBeGreaterThan(0)
  })

  it.each([
    ['subpartitions descend', bytesOf(region([2]), region([1])), /descend/],
    ['a subpartition comes a second time', bytesOf(region([1]), region([1])), /follows the last/],
    ['a subpartition is not there', bytesOf(region([4])), /no subpartition/],
    ['the broadcast mark stands in a plain region', bytesOf(region([0], true)), /broadcast mark/],
    ['a run has no last entry', withoutLastFlags(bytesOf(region([1, 2]))), /no last entry/],
    ['an entry is cut off', bytesOf(region([1])).subarray(0, -1), /passes the end/],
    ['a header is cut off', bytesOf(region([1])).subarray(0, 70), /cut off/],
  ])('refuses a region in which %s', (_, bytes, message) => {
    const builder = newBuilder()
    start(builder)
    expect(() => {
      builder.add(bytes, bytes.byteLength)
    }).toThrow(message)
  })

  it('refuses plain entries in a broadcast region', () => {
    const builder = newBuilder()
    start(builder, true)
    const bytes = bytesOf(region([0]))
    expect(() => {
      builder.add(bytes, bytes.byteLength)
    }).toThrow(/broadcast mark/)
  })

  it('refuses a region past its bound, and an entry past the buffer size', () => {
    const small = newBuilder()
    start(small, false, 100)
    const bytes = bytesOf(region([1]))
    expect(() => {
      small.add(bytes, bytes.byteLength)
    }).toThrow(/bound of 100 bytes/)
    const large = newBuilder()
    start(large)
    const payloadBytes = bufferSizeBytes - 63
    const entry = bytesOf(regionOf(key, 0, { subpartitions: [0], entriesPerRun: 1, payloadBytes }))
    expect(() => {
      large.add(entry, entry.byteLength)
    }).toThrow(/does not fit the buffer size/)
  })

  it('refuses regions out of order, within each other, or without a start', () => {
    const builder = newBuilder()
    expect(() => {
      builder.startRegion({ regionIndex: 1, isBroadcast: false, boundBytes: 1 })
    }).toThrow(/region 0 comes next/)
    expect(() => {
      builder.add(Buffer.alloc(0), 0)
    }).toThrow(/outside a region/)
    expect(() => builder.finishRegion({ entryCount: 0, byteCount: 0 })).toThrow(/not started/)
    start(builder)
    expect(() => {
      start(builder)
    }).toThrow(/within another/)
    expect(() => builder.finish(totals(1, 0), 'none')).toThrow(/within a region/)
  })

  it('refuses a region whose last run is open', () => {
    const builder = newBuilder()
    start(builder)
    const bytes = withoutLastFlags(bytesOf(region([1])))
    builder.add(bytes, bytes.byteLength)
    expect(() => builder.finishRegion({ entryCount: 2, byteCount: bytes.byteLength })).toThrow(
      /last run of the region has no end/,
    )
  })

  it.each([
    ['entries', { entryCount: 1, byteCount: 132 }],
    ['bytes', { entryCount: 2, byteCount: 131 }],
  ])('refuses a region whose %s were declared otherwise', (_, declared) => {
    const builder = newBuilder()
    start(builder)
    const bytes = bytesOf(region([1]))
    builder.add(bytes, bytes.byteLength)
    expect(() => builder.finishRegion(declared)).toThrow(/the producer declared/)
  })

  it.each([
    [totals(1, 0), /1 regions/],
    [totals(0, 1), /1 bytes/],
    [{ ...totals(0, 0), uncompressedBytes: [1] }, /1 subpartitions/],
  ])('refuses totals that are not what came', (declared, message) => {
    expect(() => newBuilder().finish(declared, 'none')).toThrow(message)
  })
})

function withoutLastFlags(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  for (let at = 0; at < copy.byteLength; at += 16 + copy.readUInt32BE(at)) copy[at + 8] = 0
  return copy
}
