import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'

import { ExternalSorter } from '../../../runtime/sort/external-sorter.ts'
import { readCount, writeCount } from '../../../runtime/sort/record-count.ts'
import type { SortedSink } from '../../../runtime/sort/run-merger.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

let made = 0

interface Settings {
  readonly memoryBytes: number
  readonly mergedRunsMax?: number
  readonly hasCounts?: boolean
}

function sorted(records: readonly Uint8Array[], settings: Settings): Buffer[] {
  const sorter = new ExternalSorter({
    directory,
    name: String(made++),
    hasCounts: false,
    ...settings,
  })
  try {
    for (const record of records) sorter.add(record, 0, record.length)
    const all = sorter.finish()
    const result: Buffer[] = []
    let parts: Buffer[] = []
    const sink: SortedSink = {
      key: (bytes, from, to) => {
        parts.push(Buffer.from(bytes.slice(from, to)))
      },
      end: (count) => {
        result.push(Buffer.concat(count === undefined ? parts : [...parts, Buffer.from(count)]))
        parts = []
      },
    }
    while (!all.isAtEnd) all.next(sink)
    return result
  } finally {
    sorter.close()
  }
}

function reference(records: readonly Uint8Array[]): Buffer[] {
  return records.map((record) => Buffer.from(record)).sort((a, b) => Buffer.compare(a, b))
}

/** Few byte values and shared beginnings, so that keys tie deep, and zeros, which pad keys. */
const record = fc.oneof(
  fc.uint8Array({ maxLength: 12 }),
  fc
    .array(fc.constantFrom(0, 1, 97, 255), { maxLength: 40 })
    .map((bytes) => Uint8Array.from(bytes)),
  fc
    .tuple(fc.constantFrom(3, 4, 5, 8, 64), fc.uint8Array({ maxLength: 3 }))
    .map(([length, end]) => Uint8Array.from([...new Uint8Array(length), ...end])),
)

describe('an external sorter', () => {
  test('sorts any records as a plain sort by bytes does, in memory', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 400 }), (records) => {
        expect(sorted(records, { memoryBytes: 256 * 1024 })).toEqual(reference(records))
      }),
      { numRuns: 200 },
    )
  })

  test('sorts any records as a plain sort by bytes does, through spills and several merges', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 600 }), (records) => {
        const settings = { memoryBytes: 3 * 1024, mergedRunsMax: 2 }
        expect(sorted(records, settings)).toEqual(reference(records))
      }),
      { numRuns: 100 },
    )
  })

  test('sorts records that are larger than its memory, also when they differ at their last byte', () => {
    const long = (last: number) => Uint8Array.from([...new Uint8Array(200_000).fill(7), last])
    const records = [long(3), long(1), Uint8Array.of(7, 7), long(2), long(1).subarray(0, 200_000)]
    const settings = { memoryBytes: 8 * 1024, mergedRunsMax: 3 }
    expect(sorted(records, settings)).toEqual(reference(records))
  })

  test('sorts many records that are all the same', () => {
    const records = Array.from({ length: 5000 }, () => Buffer.from('the same line in every record'))
    expect(sorted(records, { memoryBytes: 1024 * 1024 })).toEqual(records)
  })

  test('gives nothing when it was given nothing', () => {
    expect(sorted([], { memoryBytes: 4096, mergedRunsMax: 2 })).toEqual([])
  })

  test('adds the counts of equal keys, in memory and across runs', () => {
    const word = fc.constantFrom('', 'a', 'aa', 'ab', 'b', '@', '@A', 'a'.repeat(3000))
    fc.assert(
      fc.property(fc.array(fc.tuple(word, fc.nat(1000)), { maxLength: 300 }), (pairs) => {
        const expected = new Map<string, number>()
        for (const [key, count] of pairs) expected.set(key, (expected.get(key) ?? 0) + count)
        const records = pairs.map(([key, count]) => withCount(key, count))
        for (const memoryBytes of [4 * 1024, 1024 * 1024]) {
          const result = sorted(records, { memoryBytes, mergedRunsMax: 3, hasCounts: true })
          const keys = result.map((bytes) => bytes.subarray(0, -8).toString('latin1'))
          expect(keys).toEqual([...expected.keys()].sort())
          for (const [index, bytes] of result.entries()) {
            expect(readCount(bytes, bytes.length - 8)).toBe(expected.get(keys[index] ?? ''))
          }
        }
      }),
      { numRuns: 50 },
    )
  })

  test('leaves no file in its directory, while it runs and afterwards', () => {
    const sorter = new ExternalSorter({
      memoryBytes: 4096,
      mergedRunsMax: 2,
      directory,
      name: 'visible',
      hasCounts: false,
    })
    for (let index = 0; index < 1000; index++) sorter.add(Buffer.from(String(index)), 0, 1)
    expect(sorter.spilledBytes).toBeGreaterThan(0)
    expect(readdirSync(directory)).toEqual([])
    sorter.close()
    sorter.close()
  })
})

function withCount(word: string, count: number): Uint8Array {
  const bytes = Buffer.alloc(word.length + 8)
  bytes.write(word, 'latin1')
  writeCount(bytes, word.length, count)
  return bytes
}
