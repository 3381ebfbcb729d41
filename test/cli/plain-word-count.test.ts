import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'

import {
  differences,
  parseWordCounts,
  plainWordCount,
  topWords,
} from '../../cli/plain-word-count.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

test('words are counted over files, any bytes being words', async () => {
  const [first, second] = [path.join(directory, '1'), path.join(directory, '2')]
  writeFileSync(first, Buffer.from('a b\ta\n\u00e9 a', 'latin1'))
  writeFileSync(second, ' b\r\n')
  const counts = await plainWordCount([first, second], new AbortController().signal)
  expect([...counts]).toEqual([
    ['a', 3],
    ['b', 2],
    ['\u00e9', 1],
  ])
  await expect(plainWordCount([first], AbortSignal.abort(new Error('stop')))).rejects.toThrow(
    'stop',
  )
})

test('an output is read back, and whether it is in order', () => {
  expect(parseWordCounts('a\t1\nb\tc\t2\n')).toEqual({
    counts: new Map([
      ['a', 1],
      ['b\tc', 2],
    ]),
    isSorted: true,
  })
  expect(parseWordCounts('b\t1\na\t2\n').isSorted).toBe(false)
  expect(parseWordCounts('a\t1\na\t2\n').isSorted).toBe(false)
})

test('differences are named, a few of them', () => {
  const [a, b] = [
    new Map([
      ['x', 1],
      ['y', 2],
    ]),
    new Map([
      ['x', 1],
      ['z', 3],
    ]),
  ]
  expect(differences(a, a)).toEqual([])
  expect(differences(a, b)).toEqual(['"y": 2 expected, 0 counted', '"z": 0 expected, 3 counted'])
  expect(differences(a, b, 1)).toHaveLength(1)
})

test('the top words are the most frequent, by name where they are as frequent', () => {
  expect(
    topWords(
      new Map([
        ['b', 2],
        ['c', 9],
        ['a', 2],
      ]),
      2,
    ),
  ).toEqual([
    ['c', 9],
    ['a', 2],
  ])
})
