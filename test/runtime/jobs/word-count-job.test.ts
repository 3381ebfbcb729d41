import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'

import { prepareWordCount } from '../../../runtime/jobs/word-count-job.ts'
import { runLocally } from '../../support/local-job.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

const input = path.join(directory, 'input')
const output = path.join(directory, 'output')

/** One character a byte, so that the order of texts is that of bytes. */
function reference(content: Buffer): string {
  const counts = new Map<string, number>()
  for (const word of content.toString('latin1').split(/[ \t\n\v\f\r]+/)) {
    if (word !== '') counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([word, count]) => `${word}\t${count}\n`)
    .join('')
}

async function count(
  content: Uint8Array,
  settings: Partial<Parameters<typeof prepareWordCount>[0]> = {},
) {
  writeFileSync(input, content)
  const job = await prepareWordCount({
    inputs: [input],
    output,
    maps: 3,
    reduces: 4,
    taskMemoryBytes: 512 * 1024,
    ...settings,
  })
  return await runLocally(job, directory)
}

describe('the word count job', () => {
  test('counts the words of any bytes as a plain count does', async () => {
    const bytes = fc.array(fc.constantFrom(10, 32, 9, 11, 12, 13, 0, 97, 98, 0xa0, 255), {
      maxLength: 300,
    })
    const tasks = fc.integer({ min: 1, max: 6 })
    await fc.assert(
      fc.asyncProperty(bytes, tasks, tasks, async (content, maps, reduces) => {
        await count(Uint8Array.from(content), { maps, reduces })
        expect(readFileSync(output, 'latin1')).toBe(reference(Buffer.from(content)))
      }),
      { numRuns: 40 },
    )
  })

  test.each([
    ['an empty file', ''],
    ['white space alone', ' \n\t '],
    ['one word', 'word'],
  ])('counts %s', async (_what, content) => {
    await count(Buffer.from(content))
    expect(readFileSync(output, 'latin1')).toBe(reference(Buffer.from(content)))
  })

  test('counts more distinct words than the memory of a task holds', async () => {
    const words = Array.from({ length: 60_000 }, (_, index) => `w${(index * 7919) % 20_011}`)
    const content = Buffer.from(words.join(' '))
    const run = await count(content, { maps: 2, reduces: 2, taskMemoryBytes: 256 * 1024 })
    expect(readFileSync(output, 'latin1')).toBe(reference(content))
    expect(run.output.counts).toEqual({ words: 60_000, distinctWords: 20_011 })
  })

  test('counts a word longer than the table of a map, twice', async () => {
    const word = 'z'.repeat(200_000)
    const content = Buffer.from(`${word} a ${word} b`)
    await count(content, { taskMemoryBytes: 256 * 1024 })
    expect(readFileSync(output, 'latin1')).toBe(reference(content))
  })

  test('sends a frequent word once from each map, not once for each time it is read', async () => {
    const content = Buffer.from('again '.repeat(10_000))
    const { result } = await count(content, { maps: 3 })
    expect(result.summary.stages[0]?.committed.recordCount).toBe(3)
  })

  test('leaves nothing but the output', async () => {
    await count(Buffer.from('a b a'))
    expect(readdirSync(directory).sort()).toEqual(['input', 'output'])
  })

  test('does not join the last word of a file with the first of the next', async () => {
    const second = path.join(directory, 'second')
    writeFileSync(second, 'b a')
    await count(Buffer.from('a b'), { inputs: [input, second], maps: 1 })
    expect(readFileSync(output, 'utf8')).toBe('a\t2\nb\t2\n')
    rmSync(second)
  })
})
