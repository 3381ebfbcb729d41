import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import {
  commitPartial,
  createPartial,
  partialPath,
  PartWriter,
  removePartial,
} from '../../../runtime/jobs/output-file.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})
const output = path.join(directory, 'output')

describe('an output', () => {
  test('appears only when it is committed', async () => {
    writeFileSync(output, 'old')
    writeFileSync(partialPath(output), 'of an earlier run')
    await createPartial(output)
    expect(readFileSync(partialPath(output), 'utf8')).toBe('')
    expect(readFileSync(output, 'utf8')).toBe('old')
    await commitPartial(output)
    expect(readFileSync(output, 'utf8')).toBe('')
    expect(existsSync(partialPath(output))).toBe(false)
  })

  test('can be given up, twice', async () => {
    await createPartial(output)
    await removePartial(output)
    await removePartial(output)
    expect(existsSync(partialPath(output))).toBe(false)
  })
})

describe('a part', () => {
  test('is written at its place, with short and long pieces in order', async () => {
    const file = path.join(directory, 'part')
    writeFileSync(file, 'x'.repeat(10))
    const writer = await PartWriter.open(file, 4)
    const long = Buffer.alloc(700_000, 'l')
    writer.put(Buffer.from('..ab..'), 2, 4)
    expect(writer.isFull).toBe(false)
    writer.put(long, 0, long.length)
    expect(writer.isFull).toBe(true)
    writer.putByte(10)
    writer.put(Buffer.from('end'), 0, 3)
    expect(writer.position).toBe(4 + 2 + 700_000 + 1 + 3)
    await writer.drain()
    expect(writer.isFull).toBe(false)
    writer.putByte(33)
    await writer.drain()
    await writer.close()
    expect(readFileSync(file, 'utf8')).toBe(`xxxxab${long.toString()}\nend!`)
  })

  test('of its own file replaces what was there', async () => {
    const file = path.join(directory, 'own')
    writeFileSync(file, 'much longer than the new one')
    const writer = await PartWriter.create(file)
    writer.put(Buffer.from('new'), 0, 3)
    await writer.drain()
    await writer.close()
    expect(readFileSync(file, 'utf8')).toBe('new')
  })
})
