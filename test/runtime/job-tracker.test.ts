import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { JobTracker, type AttemptRef } from '../../runtime/job-tracker.ts'

function startAll(tracker: JobTracker): AttemptRef[] {
  const started: AttemptRef[] = []
  for (let next = tracker.nextRunnable(); next !== undefined; next = tracker.nextRunnable()) {
    started.push(tracker.start(next))
  }
  return started
}

describe('a tracker', () => {
  test('lets a stage start when all tasks before it have finished', () => {
    const tracker = new JobTracker([2, 1])
    const maps = startAll(tracker)
    expect(maps).toEqual([
      { stage: 0, index: 0, attempt: 1 },
      { stage: 0, index: 1, attempt: 1 },
    ])
    tracker.finish(maps[1] as AttemptRef)
    expect(tracker.nextRunnable()).toBeUndefined()
    tracker.finish(maps[0] as AttemptRef)
    expect(startAll(tracker)).toEqual([{ stage: 1, index: 0, attempt: 1 }])
    expect(tracker.isFinished).toBe(false)
    tracker.finish({ stage: 1, index: 0, attempt: 1 })
    expect(tracker.isFinished).toBe(true)
  })

  test('counts what waits, runs, has finished and was lost', () => {
    const tracker = new JobTracker([3, 1])
    const [first, second] = startAll(tracker)
    tracker.finish(first as AttemptRef)
    tracker.giveUp(second as AttemptRef)
    tracker.lose(first as AttemptRef)
    expect(tracker.counts(0)).toEqual({
      taskCount: 3,
      waiting: 2,
      running: 1,
      finished: 0,
      attempts: 3,
      lost: 1,
    })
  })

  test('starts a lost task again with the next attempt, and holds the consumers back', () => {
    const tracker = new JobTracker([1, 2])
    const [map] = startAll(tracker)
    tracker.finish(map as AttemptRef)
    const [consumer] = startAll(tracker)
    expect(tracker.lose(map as AttemptRef)).toBe(true)
    expect(tracker.giveUp(consumer as AttemptRef)).toBe(true)
    expect(startAll(tracker)).toEqual([{ stage: 0, index: 0, attempt: 2 }])
    tracker.finish({ stage: 0, index: 0, attempt: 2 })
    expect(startAll(tracker)).toEqual([{ stage: 1, index: 0, attempt: 2 }])
  })

  test('ignores what old attempts say', () => {
    const tracker = new JobTracker([1, 1])
    const [old] = startAll(tracker) as [AttemptRef]
    tracker.giveUp(old)
    const [present] = startAll(tracker) as [AttemptRef]
    expect(tracker.finish(old)).toBe(false)
    expect(tracker.giveUp(old)).toBe(false)
    expect(tracker.lose(present)).toBe(false)
    expect(tracker.finish(present)).toBe(true)
    expect(tracker.lose(old)).toBe(false)
    expect(tracker.lose({ stage: 9, index: 0, attempt: 1 })).toBe(false)
  })

  test('does not run again what nobody needs, until somebody does', () => {
    const tracker = new JobTracker([1, 1, 1])
    for (let stage = 0; stage < 2; stage++)
      for (const task of startAll(tracker)) tracker.finish(task)
    expect(tracker.lose({ stage: 0, index: 0, attempt: 1 })).toBe(true)
    const [last] = startAll(tracker) as [AttemptRef]
    expect(last.stage).toBe(2)
    tracker.lose({ stage: 1, index: 0, attempt: 1 })
    tracker.giveUp(last)
    expect(startAll(tracker)).toEqual([{ stage: 0, index: 0, attempt: 2 }])
  })

  test('a stage without tasks has finished', () => {
    const tracker = new JobTracker([0, 1])
    for (const task of startAll(tracker)) tracker.finish(task)
    expect(tracker.isFinished).toBe(true)
  })

  test('comes to an end whatever is lost and fails in between', () => {
    const events = fc.array(fc.tuple(fc.constantFrom('finish', 'fail', 'lose'), fc.nat()), {
      maxLength: 60,
    })
    fc.assert(
      fc.property(events, (steps) => {
        const tracker = new JobTracker([3, 2, 2])
        const running: AttemptRef[] = []
        const finished: AttemptRef[] = []
        for (const [what, pick] of steps) {
          running.push(...startAll(tracker))
          const from = what === 'lose' ? finished : running
          const [attempt] = from.splice(pick % Math.max(1, from.length), 1)
          if (attempt === undefined) continue
          if (what === 'finish' && tracker.finish(attempt)) finished.push(attempt)
          if (what === 'fail') tracker.giveUp(attempt)
          if (what === 'lose') tracker.lose(attempt)
        }
        for (let round = 0; round < 100 && !tracker.isFinished; round++) {
          running.push(...startAll(tracker))
          for (const attempt of running.splice(0)) tracker.finish(attempt)
        }
        expect(tracker.isFinished).toBe(true)
      }),
    )
  })
})
