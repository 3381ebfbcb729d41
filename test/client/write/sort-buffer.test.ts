import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BufferPool } from '../../../client/common/buffer-pool.ts'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import { SortBuffer, type SortedRegion } from '../../../client/write/sort-buffer.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

function setUp(
  options: { subpartitionCount?: number; bufferCount?: number; bufferSizeBytes?: number } = {},
) {
  const { subpartitionCount = 4, bufferCount = 4, bufferSizeBytes = 1024 } = options
  const pool = new BufferPool({
    bufferSizeBytes,
    bufferCount,
    waiters: new WaiterRegister({ clock: new VirtualClock() }),
  })
  const sortBuffer = new SortBuffer({ pool, bufferCountMax: bufferCount, subpartitionCount })
  return { pool, sortBuffer }
}

/** Everything of a region, in pieces of `step` bytes: subpartition → its chain. */
function take(region: SortedRegion, step = 7): Map<number, Buffer> {
  const found = new Map<number, Buffer>()
  for (const run of region.runs()) {
    const chain = Buffer.alloc(run.byteCount)
    for (let done = 0; done < run.byteCount; done += step) {
      const length = Math.min(step, run.byteCount - done)
      region.copy(run, chain.subarray(done), length)
    }
    found.set(run.subpartition, chain)
  }
  return found
}

function framed(...records: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    records.flatMap((record) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(record.length)
      return [length, record]
    }),
  )
}

describe('a sort buffer', () => {
  test('gives records back by subpartition, in order, framed', () => {
    const { pool, sortBuffer } = setUp()
    for (const [subpartition, text] of [
      [2, 'a'],
      [0, 'b'],
      [2, ''],
      [2, 'c'],
    ] as const) {
      expect(sortBuffer.append(subpartition, Buffer.from(text))).toBe(true)
    }
    const region = sortBuffer.takeRegion()
    expect(region.recordCount).toBe(4)
    expect(take(region)).toEqual(
      new Map([
        [0, framed(Buffer.from('b'))],
        [2, framed(Buffer.from('a'), Buffer.from(''), Buffer.from('c'))],
      ]),
    )
    region.release()
    sortBuffer.close()
    expect(pool.usedCount).toBe(0)
  })

  test('holds any records, region after region, within its memory', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(15), fc.uint8Array({ maxLength: 700 })), { maxLength: 200 }),
        fc.integer({ min: 1, max: 500 }),
        (records, step) => {
          const { pool, sortBuffer } = setUp({ subpartitionCount: 16 })
          const expected = new Map<number, Uint8Array[]>()
          const flush = () => {
            const region = sortBuffer.takeRegion()
            const wanted = [...expected].sort(([a], [b]) => a - b)
            expect([...take(region, step)]).toEqual(
              wanted.map(([subpartition, list]) => [subpartition, framed(...list)]),
            )
            region.release()
            expect(sortBuffer.freeBytes).toBe(sortBuffer.capacityBytes)
            expected.clear()
          }
          for (const [subpartition, record] of records) {
            if (!sortBuffer.append(subpartition, record)) {
              flush()
              expect(sortBuffer.append(subpartition, record)).toBe(true)
            }
            expected.set(subpartition, [...(expected.get(subpartition) ?? []), record])
            expect(pool.usedCount).toBeLessThanOrEqual(4)
          }
          if (!sortBuffer.isEmpty) flush()
          sortBuffer.close()
          expect(pool.usedCount).toBe(0)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('a record that does not fit leaves it unchanged', () => {
    const { sortBuffer } = setUp()
    sortBuffer.append(1, Buffer.from('x'))
    expect(sortBuffer.append(1, Buffer.alloc(sortBuffer.capacityBytes))).toBe(false)
    expect(take(sortBuffer.takeRegion())).toEqual(new Map([[1, framed(Buffer.from('x'))]]))
  })

  test('a record that fills it to the last byte fits', () => {
    const { sortBuffer } = setUp()
    const record = Buffer.alloc(sortBuffer.capacityBytes - 4, 7)
    expect(sortBuffer.append(3, record)).toBe(true)
    expect(sortBuffer.freeBytes).toBe(0)
    expect(sortBuffer.append(3, Buffer.alloc(0))).toBe(false)
    const region = sortBuffer.takeRegion()
    expect(take(region, 1024)).toEqual(new Map([[3, framed(record)]]))
  })

  test('what a leaving region has given out is free for the next one', () => {
    const { sortBuffer } = setUp()
    sortBuffer.append(0, Buffer.alloc(sortBuffer.capacityBytes - 4, 1))
    const region = sortBuffer.takeRegion()
    expect(sortBuffer.append(1, Buffer.from('next'))).toBe(false)
    const [run] = region.runs()
    if (run === undefined) throw new Error('one run')
    region.copy(run, Buffer.alloc(2048), 2048)
    expect(sortBuffer.append(1, Buffer.from('next'))).toBe(true)
    region.release()
    expect(take(sortBuffer.takeRegion())).toEqual(new Map([[1, framed(Buffer.from('next'))]]))
  })

  test('events keep their place between the records', () => {
    const { sortBuffer } = setUp()
    sortBuffer.append(0, Buffer.from('abc'))
    sortBuffer.appendEvent(0, 2, Buffer.from('E'))
    sortBuffer.append(0, Buffer.from('d'))
    sortBuffer.appendEvent(3, 4, Buffer.alloc(0))
    const region = sortBuffer.takeRegion()
    expect(
      [...region.runs()].map(({ subpartition, events }) => [
        subpartition,
        events.map(({ afterBytes, code }) => [afterBytes, code]),
      ]),
    ).toEqual([
      [0, [[7, 2]]],
      [3, [[0, 4]]],
    ])
  })

  test('keeps no reference to the memory of an event or a record', () => {
    const { sortBuffer } = setUp()
    const bytes = Buffer.from('x')
    sortBuffer.append(0, bytes)
    sortBuffer.appendEvent(0, 1, bytes)
    bytes.fill(0)
    const region = sortBuffer.takeRegion()
    expect([...region.runs()][0]?.events[0]?.bytes).toEqual(Uint8Array.of(120))
    expect(take(region)).toEqual(new Map([[0, framed(Buffer.from('x'))]]))
  })

  test('events are bounded: past it a region has to leave', () => {
    const { sortBuffer } = setUp()
    let count = 0
    while (sortBuffer.appendEvent(0, 1, Buffer.of(1))) count += 1
    expect(count).toBeGreaterThan(0)
    expect(count).toBeLessThan(10)
    sortBuffer.takeRegion().release()
    expect(sortBuffer.appendEvent(0, 1, Buffer.of(1))).toBe(true)
  })

  test('a region is broadcast or not as a whole, and the next begins as unicast', () => {
    const { sortBuffer } = setUp()
    sortBuffer.isBroadcast = true
    sortBuffer.append(0, Buffer.of(1))
    expect(() => {
      sortBuffer.isBroadcast = false
    }).toThrow(/as a whole/)
    const region = sortBuffer.takeRegion()
    expect(region.isBroadcast).toBe(true)
    expect(sortBuffer.isBroadcast).toBe(false)
    region.release()
  })

  test('one region leaves at a time, and never an empty one', () => {
    const { sortBuffer } = setUp()
    expect(() => sortBuffer.takeRegion()).toThrow(/empty/)
    sortBuffer.append(0, Buffer.of(1))
    sortBuffer.takeRegion()
    sortBuffer.append(0, Buffer.of(1))
    expect(() => sortBuffer.takeRegion()).toThrow(/at a time/)
  })

  test('closed while a region leaves it gives the memory back at the region’s end', () => {
    const { pool, sortBuffer } = setUp()
    sortBuffer.append(0, Buffer.alloc(3000))
    const region = sortBuffer.takeRegion()
    sortBuffer.append(1, Buffer.alloc(100))
    sortBuffer.close()
    expect(pool.usedCount).toBeGreaterThan(0)
    region.release()
    region.release()
    expect(pool.usedCount).toBe(0)
  })

  test('works with buffers of a size that is no power of two', () => {
    const { sortBuffer } = setUp({ bufferSizeBytes: 1000, subpartitionCount: 3 })
    const record = Buffer.from(Array.from({ length: 1500 }, (_, index) => index & 0xff))
    expect(sortBuffer.append(2, record)).toBe(true)
    expect(take(sortBuffer.takeRegion(), 333)).toEqual(new Map([[2, framed(record)]]))
  })
})
