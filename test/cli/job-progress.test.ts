import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { ShuffleError } from '../../client/index.ts'
import { describeStages, describeWait, showProgress } from '../../cli/job-progress.ts'
import { commandContext } from '../support/command-context.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('on a terminal one line is written over, and only when it changed', () => {
  let line = 'one'
  const context = commandContext({ isTerminal: true })
  const stop = showProgress(() => line, context)
  vi.advanceTimersByTime(1000)
  line = 'two'
  vi.advanceTimersByTime(200)
  stop()
  expect(context.noted).toEqual(['\r\u001b[2Kone', '\r\u001b[2Ktwo', '\n'])
})

test('elsewhere lines follow each other, now and then', () => {
  let count = 0
  const context = commandContext()
  const stop = showProgress(() => `line ${(count += 1)}`, context)
  vi.advanceTimersByTime(10_000)
  stop()
  vi.advanceTimersByTime(10_000)
  expect(context.noted).toEqual(['line 1\n', 'line 2\n', 'line 3\n'])
})

test('stages are told by what has been done, and what was lost', () => {
  const committed = { recordCount: 0, uncompressedBytes: 0, storedBytes: 0 }
  const map = {
    name: 'map',
    taskCount: 8,
    waiting: 2,
    running: 2,
    finished: 4,
    attempts: 7,
    lost: 1,
    progressBytes: 2048,
    committed,
  }
  const reduce = { ...map, name: 'reduce', attempts: 0 }
  expect(describeStages([map, reduce])).toBe(
    'map 4 of 8, 2.0 KiB, 1 lost and produced again; reduce waits',
  )
})

test('a job that waits for a manager says so, in one line that does not change', () => {
  expect(describeWait(undefined)).toBe('')
  const [one, other] = ['try 1', 'try 2'].map((text) => new ShuffleError('NO_MANAGER', text))
  expect(describeWait(one)).toMatch(/waits for a place.*no shuffle manager answers/)
  expect(describeWait(one)).toBe(describeWait(other))
  expect(describeWait(new ShuffleError('NO_WORKER', 'none fits'))).toMatch(/none fits/)
})
