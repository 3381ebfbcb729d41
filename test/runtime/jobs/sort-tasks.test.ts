import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { sortTasks } from '../../../runtime/jobs/sort-tasks.ts'
import { encodeSplitters, mapInput } from '../../../runtime/jobs/task-input.ts'
import { taskBench } from '../../support/task-context.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})
const file = path.join(directory, 'file')

test('a map sends each line to its range and says how many bytes each reducer gets', async () => {
  writeFileSync(file, 'm\na\n\nz\nk')
  const bench = await taskBench(2)
  const ranges = [{ path: file, start: 0, end: 8 }]
  const splitters = encodeSplitters([Buffer.from('l')])
  const context = bench.context({ input: mapInput({ ranges, splitters, unitBytesMax: 100 }) })
  expect(await sortTasks['sort-map'](context)).toEqual({ bytes: [5, 4] })
  expect(await bench.emitted(context)).toEqual([
    ['a', '', 'k'],
    ['m', 'z'],
  ])
  expect(bench.progress.at(-1)).toBe(8)
})

test('a reducer writes its lines in order at its place, and leaves the rest of the file alone', async () => {
  writeFileSync(file, '0123456789')
  const bench = await taskBench(1)
  const records = ['c', '', 'b'].map((text) => Buffer.from(text))
  const context = bench.context({
    input: { path: file, start: 2, bytes: 5 },
    gate: bench.gateOf(records),
    output: undefined,
  })
  expect(await sortTasks['sort-reduce'](context)).toEqual({ lines: 3, bytes: 5 })
  expect(readFileSync(file, 'utf8')).toBe('01\nb\nc\n789')
})

test('a reducer that gets another number of bytes than the maps sent fails', async () => {
  writeFileSync(file, '')
  const bench = await taskBench(1)
  const context = bench.context({
    input: { path: file, start: 0, bytes: 99 },
    gate: bench.gateOf([Buffer.from('a')]),
    output: undefined,
  })
  await expect(sortTasks['sort-reduce'](context)).rejects.toMatchObject({ code: 'COUNT_MISMATCH' })
})

test('a map stops when its attempt is cancelled', async () => {
  writeFileSync(file, 'a\n')
  const bench = await taskBench(1)
  const ranges = [{ path: file, start: 0, end: 2 }]
  const context = bench.context({
    input: mapInput({ ranges, splitters: [], unitBytesMax: 100 }),
    signal: AbortSignal.abort(new Error('cancelled')),
  })
  await expect(sortTasks['sort-map'](context)).rejects.toThrow('cancelled')
})
