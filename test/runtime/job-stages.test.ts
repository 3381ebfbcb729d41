import { expect, test } from 'vitest'

import { attemptIdOf, fieldsOfAttempt, JobStage } from '../../runtime/job-stages.ts'

const plan = { name: 'map', task: 'map', taskCount: 2, inputOf: () => null }

test('a stage remembers its finished tasks, and forgets lost ones', () => {
  const stage = new JobStage(plan, 0)
  const committed = { recordCount: 1, uncompressedBytes: 20, storedBytes: 10 }
  const task = { attempt: 1, result: 'r', descriptor: undefined, committed, progress: 7 }
  expect([stage.results, stage.version]).toEqual([[null, null], 0])
  stage.setFinished(1, task)
  expect(stage.results).toEqual([null, 'r'])
  expect(stage.committed).toEqual(committed)
  expect(stage.progressBytes).toBe(7)
  expect(stage.finishedTask(1)).toBe(task)
  stage.setFinished(1, undefined)
  expect(stage.committed.recordCount).toBe(0)
  expect(stage.version).toBe(2)
})

test('a stage keeps the last error of a task', () => {
  const stage = new JobStage(plan, 0)
  expect(stage.lastError(0)).toBeUndefined()
  stage.noteError(0, { message: 'first', fields: {}, stack: '' })
  stage.noteError(0, { message: 'second', fields: {}, stack: '' })
  expect(stage.lastError(0)?.message).toBe('second')
})

test('a stage counts the attempts of each task that were cancelled', () => {
  const stage = new JobStage(plan, 0)
  stage.noteCancelled(1)
  stage.noteCancelled(1)
  expect([stage.cancelledAttempts(0), stage.cancelledAttempts(1)]).toEqual([0, 2])
})

test('data sets and attempts have names of their own', () => {
  expect(new JobStage(plan, 3).dataSetId).toBe('3-map')
  expect(attemptIdOf(2)).toBe('attempt-2')
  const fields = fieldsOfAttempt(new JobStage(plan, 0), { stage: 0, index: 1, attempt: 2 })
  expect(fields).toEqual({ stage: 'map', taskIndex: 1, attempt: 2 })
})
