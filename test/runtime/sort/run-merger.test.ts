import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'

import { countBytes, readCount, writeCount } from '../../../runtime/sort/record-count.ts'
import { RunCursor, windowBytesMin } from '../../../runtime/sort/run-cursor.ts'
import { RunMerger } from '../../../runtime/sort/run-merger.ts'
import { SpillFile } from '../../../runtime/sort/spill-file.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

type Entry = readonly [key: string, count: number]

function merge(runs: readonly (readonly Entry[])[], hasCounts: boolean): Entry[] {
  const file = new SpillFile(directory, 'merge')
  try {
    const trailerBytes = hasCounts ? countBytes : 0
    const cursors = runs.map((entries) => {
      const run = file.writeRun((writer) => {
        for (const [key, count] of entries) {
          const bytes = Buffer.alloc(key.length + trailerBytes)
          bytes.write(key, 'latin1')
          if (hasCounts) writeCount(bytes, key.length, count)
          writer.begin(bytes.length)
          writer.put(bytes, 0, bytes.length)
        }
      })
      return new RunCursor({ file, run, window: new Uint8Array(windowBytesMin), trailerBytes })
    })
    const merger = new RunMerger(cursors, hasCounts)
    const merged: Entry[] = []
    let key = ''
    while (!merger.isAtEnd) {
      const { keyLength } = merger
      merger.next({
        key: (bytes, from, to) => {
          key += Buffer.from(bytes.subarray(from, to)).toString('latin1')
        },
        end: (count) => {
          merged.push([key, count === undefined ? 0 : readCount(count, 0)])
        },
      })
      expect(key).toHaveLength(keyLength)
      key = ''
    }
    return merged
  } finally {
    file.close()
  }
}

const keys = fc.array(
  fc.oneof(
    fc.constantFrom('', 'a', 'ab', 'x'.repeat(2000)),
    fc.string({ unit: 'binary-ascii', maxLength: 4 }),
  ),
  {
    maxLength: 20,
  },
)

describe('a merger', () => {
  test('merges any sorted runs into one order', () => {
    fc.assert(
      fc.property(fc.array(keys, { maxLength: 6 }), (runs) => {
        const sorted = runs.map((run) => [...run].sort().map((key): Entry => [key, 0]))
        const merged = merge(sorted, false).map(([key]) => key)
        expect(merged).toEqual(runs.flat().sort())
      }),
      { numRuns: 100 },
    )
  })

  test('adds the counts of a key that several runs have', () => {
    fc.assert(
      fc.property(fc.array(keys, { maxLength: 6 }), (runs) => {
        const distinct = runs.map((run) =>
          [...new Set(run)].sort().map((key, index): Entry => [key, index + 1]),
        )
        const expected = new Map<string, number>()
        for (const [key, count] of distinct.flat())
          expected.set(key, (expected.get(key) ?? 0) + count)
        expect(merge(distinct, true)).toEqual([...expected].sort(([a], [b]) => (a < b ? -1 : 1)))
      }),
      { numRuns: 100 },
    )
  })

  test('of nothing is at its end', () => {
    expect(new RunMerger([], false).isAtEnd).toBe(true)
    expect(merge([[], []], true)).toEqual([])
  })
})
