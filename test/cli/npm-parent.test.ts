import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { watchNpm } from '../../cli/npm-parent.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('a process under npm notices once that npm is gone', () => {
  let parent = 100
  let gone = 0
  watchNpm(
    { npm_lifecycle_event: 'start' },
    () => (gone += 1),
    () => parent,
  )
  vi.advanceTimersByTime(5000)
  expect(gone).toBe(0)
  parent = 1
  vi.advanceTimersByTime(5000)
  expect(gone).toBe(1)
})

test('a process that npm did not start may lose its parent', () => {
  let parent = 100
  let gone = 0
  const stop = watchNpm(
    {},
    () => (gone += 1),
    () => parent,
  )
  parent = 1
  vi.advanceTimersByTime(5000)
  expect(gone).toBe(0)
  stop()
})

test('watching can be stopped', () => {
  let parent = 100
  let gone = 0
  watchNpm(
    { npm_lifecycle_event: 'start' },
    () => (gone += 1),
    () => parent,
  )()
  parent = 1
  vi.advanceTimersByTime(5000)
  expect(gone).toBe(0)
})
