import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { encodeSplitters, mapInput } from '../../../runtime/jobs/task-input.ts'
import { wordCountTasks } from '../../../runtime/jobs/word-count-tasks.ts'
import { countBytes, readCount, writeCount } from '../../../runtime/sort/record-count.ts'
import { taskBench } from '../../support/task-context.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})
const file = path.join(directory, 'file')

function record(word: string, count: number): Buffer {
  const bytes = Buffer.alloc(word.length + countBytes)
  bytes.write(word, 'latin1')
  writeCount(bytes, word.length, count)
  return bytes
}

function parse(text: string): [string, number] {
  const bytes = Buffer.from(text, 'latin1')
  const at = bytes.length - countBytes
  return [bytes.toString('latin1', 0, at), readCount(bytes, at)]
}

test('a map sends each word once, with its count, to its range', async () => {
  writeFileSync(file, 'b a\tb\n\nz  b')
  const bench = await taskBench(2)
  const ranges = [{ path: file, start: 0, end: 11 }]
  const splitters = encodeSplitters([Buffer.from('m')])
  const context = bench.context({ input: mapInput({ ranges, splitters, unitBytesMax: 100 }) })
  expect(await wordCountTasks['word-count-map'](context)).toEqual({ words: 5 })
  const emitted = (await bench.emitted(context)).map((texts) => texts.map(parse))
  expect(emitted).toEqual([
    [
      ['b', 3],
      ['a', 1],
    ],
    [['z', 1]],
  ])
})

test('a reducer adds the counts of a word and writes the words in order', async () => {
  const bench = await taskBench(1)
  const context = bench.context({
    input: { path: file },
    gate: bench.gateOf([record('b', 2), record('a', 1), record('b', 40), record('ab', 1)]),
    output: undefined,
  })
  const result = await wordCountTasks['word-count-reduce'](context)
  expect(result).toEqual({ distinctWords: 3, words: 44, bytes: 14 })
  expect(readFileSync(file, 'utf8')).toBe('a\t1\nab\t1\nb\t42\n')
})
