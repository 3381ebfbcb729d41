import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'

import { RunCursor, windowBytesMin } from '../../../runtime/sort/run-cursor.ts'
import { SpillFile } from '../../../runtime/sort/spill-file.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
const files: SpillFile[] = []
afterEach(() => {
  for (const file of files.splice(0)) file.close()
})
afterAll(() => {
  rmSync(directory, { recursive: true })
})

function cursorOf(records: readonly Uint8Array[], trailerBytes = 0): RunCursor {
  const file = new SpillFile(directory, String(files.length))
  files.push(file)
  const run = file.writeRun((writer) => {
    for (const record of records) {
      writer.begin(record.length)
      writer.put(record, 0, record.length)
    }
  })
  return new RunCursor({ file, run, window: new Uint8Array(windowBytesMin), trailerBytes })
}

function keyOf(cursor: RunCursor): Buffer {
  const parts: Buffer[] = []
  cursor.copyKey({
    key: (bytes, from, to) => {
      parts.push(Buffer.from(bytes.slice(from, to)))
    },
  })
  return Buffer.concat(parts)
}

describe('a cursor', () => {
  test('gives record after record, of any length about that of its window', () => {
    const lengths = [0, 1, windowBytesMin - 5, windowBytesMin - 4, windowBytesMin, 3, 100_000, 0, 2]
    const records = lengths.map((length, index) => Buffer.alloc(length, index + 1))
    const cursor = cursorOf(records)
    for (const record of records) {
      expect(cursor.isAtEnd).toBe(false)
      expect(cursor.keyLength).toBe(record.length)
      expect(keyOf(cursor).equals(record)).toBe(true)
      cursor.advance()
    }
    expect(cursor.isAtEnd).toBe(true)
  })

  test('tells a trailer from the key, in the window and beyond it', () => {
    const trailer = Buffer.from('trailer!')
    const keys = [Buffer.from('key'), Buffer.alloc(5000, 3), Buffer.alloc(windowBytesMin - 8, 1)]
    const cursor = cursorOf(
      keys.map((key) => Buffer.concat([key, trailer])),
      8,
    )
    for (const key of keys) {
      const found = new Uint8Array(8)
      cursor.readTrailer(found)
      expect(Buffer.from(found)).toEqual(trailer)
      expect(keyOf(cursor).equals(key)).toBe(true)
      cursor.advance()
    }
  })

  test.each<[string, Uint8Array, Uint8Array, number]>([
    ['short keys', Buffer.from('ab'), Buffer.from('ac'), -1],
    ['a key and one that begins with it', Buffer.from('ab'), Buffer.from('ab\0'), -1],
    ['equal keys', Buffer.from('same key'), Buffer.from('same key'), 0],
    [
      'long keys that differ at their ends',
      Buffer.concat([Buffer.alloc(200_000), Buffer.of(2)]),
      Buffer.concat([Buffer.alloc(200_000), Buffer.of(1)]),
      1,
    ],
    ['long keys of which one begins the other', Buffer.alloc(200_000), Buffer.alloc(200_001), -1],
    ['long keys that are equal', Buffer.alloc(150_000, 1), Buffer.alloc(150_000, 1), 0],
    ['a short key and a long one', Buffer.from('b'), Buffer.alloc(150_000, 97), 1],
  ])('compares %s', (_what, a, b, expected) => {
    const [left, right] = [cursorOf([a]), cursorOf([b])]
    expect(Math.sign(left.compare(right))).toBe(expected)
    expect(Math.sign(right.compare(left))).toBe(expected === 0 ? 0 : -expected)
  })

  test('over an empty run is at its end', () => {
    expect(cursorOf([]).isAtEnd).toBe(true)
  })
})
