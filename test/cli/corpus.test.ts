import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { findNodeModules, gatherCorpus } from '../../cli/corpus.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

function write(name: string, size: number): string {
  const file = path.join(directory, name)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, 'x'.repeat(size))
  return file
}

test('text files are gathered in order of their names until there is enough', async () => {
  const [b, a, c] = [write('b/x.md', 10), write('a.js', 10), write('c.ts', 10)]
  write('a.png', 10)
  write('.cache/y.js', 10)
  write('0-large.js', 3 * 1024 * 1024)
  const all = { bytesWanted: 1000, filesMax: 100 }
  expect(await gatherCorpus(directory, all)).toEqual([a, b, c])
  expect(await gatherCorpus(directory, { ...all, bytesWanted: 15 })).toEqual([a, b])
  expect(await gatherCorpus(directory, { ...all, filesMax: 1 })).toEqual([a])
})

test('the dependencies are found from within the project, and named when they are not there', () => {
  const root = path.resolve(import.meta.dirname, '../..')
  expect(findNodeModules(path.join(root, 'dist/cli'))).toBe(path.join(root, 'node_modules'))
  expect(findNodeModules(path.join(root, 'node_modules/x/dist'))).toBe(
    path.join(root, 'node_modules'),
  )
  expect(() => findNodeModules('/')).toThrow('no node_modules')
})
