import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { SpillFile } from '../../../runtime/sort/spill-file.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

describe('a spill file', () => {
  test('holds runs one after another, each record with its length', () => {
    const file = new SpillFile(directory, 'runs')
    const write = (...records: string[]) =>
      file.writeRun((writer) => {
        for (const record of records) {
          writer.begin(record.length)
          const bytes = Buffer.from(record)
          writer.put(bytes, 0, Math.floor(bytes.length / 2))
          writer.put(bytes, Math.floor(bytes.length / 2), bytes.length)
        }
      })
    expect(write('ab', '')).toEqual({ start: 0, end: 10 })
    const large = 'x'.repeat(600_000)
    expect(write(large, 'c')).toEqual({ start: 10, end: 10 + 4 + 600_000 + 5 })
    expect(write()).toEqual({ start: 600_019, end: 600_019 })
    const bytes = Buffer.alloc(10)
    file.read(bytes, 0, 10, 0)
    expect(bytes.toString('latin1')).toBe('\0\0\0\u0002ab\0\0\0\0')
    file.read(bytes, 2, 5, 600_014)
    expect(bytes.subarray(2, 7).toString('latin1')).toBe('\0\0\0\u0001c')
    file.close()
  })

  test('has no name, and can be closed twice', () => {
    const file = new SpillFile(directory, 'nameless')
    expect(readdirSync(directory)).toEqual([])
    file.close()
    file.close()
  })

  test('says when it ends early', () => {
    const file = new SpillFile(directory, 'short')
    expect(() => {
      file.read(Buffer.alloc(1), 0, 1, 0)
    }).toThrow('ends early')
    file.close()
  })

  test('names the directory that it can not be made in', () => {
    expect(() => new SpillFile(path.join(directory, 'missing'), 'x')).toThrow('ENOENT')
  })
})
