import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'

import { partOf, prepareSort } from '../../../runtime/jobs/sort-job.ts'
import { runLocally } from '../../support/local-job.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

const input = path.join(directory, 'input')
const output = path.join(directory, 'output')

/** Lines as `LC_ALL=C sort` puts them, by the plainest means there are. */
function reference(content: Buffer): Buffer {
  const lines: Buffer[] = []
  for (let start = 0; start < content.length;) {
    const found = content.indexOf(10, start)
    const end = found === -1 ? content.length : found
    lines.push(content.subarray(start, end))
    start = end + 1
  }
  lines.sort((a, b) => Buffer.compare(a, b))
  return Buffer.concat(lines.flatMap((line) => [line, Buffer.of(10)]))
}

async function sort(
  content: Uint8Array,
  settings: Partial<Parameters<typeof prepareSort>[0]> = {},
) {
  writeFileSync(input, content)
  const job = await prepareSort({
    inputs: [input],
    output,
    maps: 3,
    reduces: 4,
    taskMemoryBytes: 512 * 1024,
    ...settings,
  })
  return await runLocally(job, directory)
}

describe('the sort job', () => {
  test('sorts any bytes as a plain sort does, with any number of tasks', async () => {
    const bytes = fc.array(fc.constantFrom(10, 10, 0, 32, 97, 98, 255), { maxLength: 300 })
    const tasks = fc.integer({ min: 1, max: 7 })
    await fc.assert(
      fc.asyncProperty(bytes, tasks, tasks, async (content, maps, reduces) => {
        const { output: result } = await sort(Uint8Array.from(content), { maps, reduces })
        expect(readFileSync(output)).toEqual(reference(Buffer.from(content)))
        expect(result.outputBytes).toBe(readFileSync(output).length)
      }),
      { numRuns: 40 },
    )
  })

  test.each([
    ['an empty file', ''],
    ['one line without newline', 'only'],
    ['one newline', '\n'],
    ['empty lines', '\n\n\n'],
    ['a last line without newline', 'b\na\nc'],
    ['carriage returns', 'b\r\na\r\n\r\n'],
  ])('sorts %s', async (_what, content) => {
    await sort(Buffer.from(content))
    expect(readFileSync(output)).toEqual(reference(Buffer.from(content)))
  })

  test('spreads a key that most records have over several reducers', async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) =>
      index % 10 === 0 ? `rare ${index}` : 'the same key in nine of ten records',
    )
    const content = Buffer.from(`${lines.join('\n')}\n`)
    const { result } = await sort(content, { reduces: 8 })
    expect(readFileSync(output)).toEqual(reference(content))
    const shares = result.results.map((part) => (part as { bytes: number }).bytes)
    expect(Math.max(...shares)).toBeLessThan(content.length / 3)
  })

  test('spills when the records are more than the memory of a task', async () => {
    const lines = Array.from({ length: 30_000 }, (_, index) => String((index * 7919) % 30_011))
    const content = Buffer.from(lines.join('\n'))
    await sort(content, { maps: 2, reduces: 1, taskMemoryBytes: 256 * 1024 })
    expect(readFileSync(output)).toEqual(reference(content))
  })

  test('sorts a line as long as the memory of a task, and names the line that is longer', async () => {
    const taskMemoryBytes = 256 * 1024
    const longest = 'x'.repeat(taskMemoryBytes)
    const content = Buffer.from(`b\n${longest}\na\n`)
    await sort(content, { taskMemoryBytes })
    expect(readFileSync(output)).toEqual(reference(content))
    const tooLong = Buffer.from(`b\n\n${longest}y\na\n`)
    await expect(sort(tooLong, { taskMemoryBytes })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`${input}: the line at line 3 is longer`) as string,
      fields: { line: 3, path: input },
    })
  })

  test('leaves no partial file and the old output when it fails', async () => {
    writeFileSync(output, 'old')
    const content = Buffer.from('y'.repeat(300_000))
    await expect(sort(content, { taskMemoryBytes: 256 * 1024 })).rejects.toThrow()
    expect(readFileSync(output, 'utf8')).toBe('old')
    expect(readdirSync(directory).sort()).toEqual(['input', 'output'])
  })

  test('gives the same output when partitions are lost and produced again', async () => {
    const lines = Array.from({ length: 5000 }, (_, index) =>
      index % 3 === 0 ? 'same' : `${index}`,
    )
    const content = Buffer.from(lines.join('\n'))
    writeFileSync(input, content)
    const settings = { inputs: [input], output, maps: 4, reduces: 3, taskMemoryBytes: 1 << 20 }
    const job = await prepareSort(settings)
    let losses = 0
    const { result } = await runLocally(job, directory, (shuffle) => {
      shuffle.onRead = ({ inputs }) => {
        const key = inputs[losses]?.descriptor.key
        if (losses < 2 && key !== undefined) shuffle.lose(key, losses++ === 0)
      }
    })
    expect(readFileSync(output)).toEqual(reference(content))
    expect(result.summary.producerAttempts).toBe(6)
  })

  test('sorts the lines of several files together', async () => {
    const second = path.join(directory, 'second')
    writeFileSync(second, 'd\na')
    await sort(Buffer.from('c\nb'), { inputs: [input, second] })
    expect(readFileSync(output, 'utf8')).toBe('a\nb\nc\nd\n')
    rmSync(second)
  })

  test('names an input that is not there or is no file, and an output that can not be made', async () => {
    const settings = { inputs: [input], output, maps: 1, reduces: 1, taskMemoryBytes: 1 << 20 }
    const missing = path.join(directory, 'missing')
    await expect(prepareSort({ ...settings, inputs: [missing] })).rejects.toThrow(missing)
    await expect(prepareSort({ ...settings, inputs: [directory] })).rejects.toThrow('regular file')
    await expect(prepareSort({ ...settings, output: directory })).rejects.toThrow('is a directory')
    const nowhere = path.join(missing, 'output')
    await expect(prepareSort({ ...settings, output: nowhere })).rejects.toThrow(missing)
  })
})

test('a reducer begins where those before it end', () => {
  const results = [{ bytes: [1, 2, 3] }, { bytes: [10, 20, 30] }]
  expect([0, 1, 2].map((reducer) => partOf(reducer, results))).toEqual([
    { start: 0, bytes: 11 },
    { start: 11, bytes: 22 },
    { start: 33, bytes: 33 },
  ])
})
