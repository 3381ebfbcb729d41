import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'

import {
  lineSeparators,
  readBlocks,
  unitEnd,
  wordSeparators,
} from '../../../runtime/input/block-reader.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})
const file = path.join(directory, 'input')

interface Settings {
  readonly separators?: Uint8Array
  readonly unitBytesMax?: number
  readonly blockBytes?: number
}

async function unitsOf(start: number, end: number, settings: Settings = {}): Promise<string[]> {
  const separators = settings.separators ?? lineSeparators
  const units: string[] = []
  const options = {
    range: { path: file, start, end },
    separators,
    unitName: 'line',
    unitBytesMax: settings.unitBytesMax ?? 1000,
    blockBytes: settings.blockBytes ?? 4,
  }
  for await (const block of readBlocks(options)) {
    for (let at = block.start; at < block.end;) {
      const to = unitEnd(block, separators, at)
      units.push(Buffer.from(block.bytes.subarray(at, to)).toString('latin1'))
      at = to + 1
    }
  }
  return units
}

function linesOf(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

describe('the parts of a file', () => {
  test('together read every line once, however it is divided and however much is read at a time', async () => {
    const text = fc.array(fc.constantFrom('\n', '\n', 'a', 'b'), { maxLength: 40 })
    const bounds = fc.array(fc.nat({ max: 40 }), { maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(
        text,
        bounds,
        fc.integer({ min: 1, max: 9 }),
        async (bytes, cuts, blockBytes) => {
          const content = bytes.join('')
          writeFileSync(file, content)
          const inside = cuts.filter((cut) => cut < content.length)
          const ends = [0, ...inside, content.length].sort((a, b) => a - b)
          const units: string[] = []
          for (const [index, end] of ends.entries()) {
            units.push(...(await unitsOf(ends[index - 1] ?? 0, end, { blockBytes })))
          }
          expect(units).toEqual(linesOf(content))
        },
      ),
      { numRuns: 300 },
    )
  })

  test('read words by any white space', async () => {
    writeFileSync(file, 'one two\tthree\nfour\vfive\fsix\rseven')
    const units = await unitsOf(0, 35, { separators: wordSeparators })
    expect(units).toEqual(['one', 'two', 'three', 'four', 'five', 'six', 'seven'])
  })

  test('a line belongs to the part in which it begins', async () => {
    writeFileSync(file, 'aaaa\nbbbb\ncccc\n')
    expect(await unitsOf(0, 5)).toEqual(['aaaa'])
    expect(await unitsOf(0, 6)).toEqual(['aaaa', 'bbbb'])
    expect(await unitsOf(5, 6)).toEqual(['bbbb'])
    expect(await unitsOf(6, 10)).toEqual([])
    expect(await unitsOf(6, 15)).toEqual(['cccc'])
    expect(await unitsOf(0, 0)).toEqual([])
  })

  test('a file that shrank meanwhile ends where it ends', async () => {
    writeFileSync(file, 'a\nb')
    expect(await unitsOf(0, 1000)).toEqual(['a', 'b'])
    expect(await unitsOf(500, 1000)).toEqual([])
  })
})

describe('a line that is too long', () => {
  test('is named by file and number, the longest allowed one is read', async () => {
    writeFileSync(file, `a\n\n${'x'.repeat(50)}\nb\n`)
    expect(await unitsOf(0, 56, { unitBytesMax: 50 })).toEqual(['a', '', 'x'.repeat(50), 'b'])
    await expect(unitsOf(0, 56, { unitBytesMax: 49 })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(
        `${file}: the line at line 3 is longer than 49 bytes`,
      ) as string,
      fields: { path: file, line: 3, byteOffset: 3, bytesMax: 49 },
    })
  })

  test('is found also at the end of a file without newline, and when blocks are larger than it', async () => {
    writeFileSync(file, `a\n${'x'.repeat(50)}`)
    expect(await unitsOf(0, 52, { unitBytesMax: 50, blockBytes: 4096 })).toHaveLength(2)
    const tooShort = unitsOf(0, 52, { unitBytesMax: 49, blockBytes: 4096 })
    await expect(tooShort).rejects.toThrow('line 2')
  })

  test('does not disturb a part that only skips it', async () => {
    writeFileSync(file, `${'x'.repeat(500)}\nb\n`)
    expect(await unitsOf(100, 503, { unitBytesMax: 10 })).toEqual(['b'])
  })
})
