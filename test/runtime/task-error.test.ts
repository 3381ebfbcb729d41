import { expect, test } from 'vitest'

import { errorTable, ShuffleError, type ErrorCode } from '../../client/index.ts'
import { describeTaskError, errorOfTask, kindOfTaskError } from '../../runtime/task-error.ts'

const partition = { dataSetId: 'd', partitionIndex: 1, attemptId: 'a' }

test('code and fields survive a message, also from within a cause', () => {
  const inner = new ShuffleError('DATA_CORRUPT', 'bad bytes', { fields: partition })
  const outer = new Error('the task failed', { cause: new Error('between', { cause: inner }) })
  for (const error of [inner, outer]) {
    const described = JSON.parse(JSON.stringify(describeTaskError(error))) as ReturnType<
      typeof describeTaskError
    >
    const again = errorOfTask(described, { jobId: 'j' })
    expect(again).toMatchObject({
      code: 'DATA_CORRUPT',
      message: 'bad bytes',
      fields: { ...partition, jobId: 'j' },
    })
  }
})

test('any other error keeps its message and stack', () => {
  const described = describeTaskError(new TypeError('oops'))
  expect(described.code).toBeUndefined()
  const again = errorOfTask(described)
  expect(again.message).toBe('oops')
  expect(again.stack).toMatch(/TypeError: oops/)
  expect(describeTaskError('a text').message).toBe('a text')
})

test('a circle of causes ends', () => {
  const error = new Error('round')
  error.cause = error
  expect(describeTaskError(error).message).toBe('round')
})

test.each<[ErrorCode, object, string]>([
  ['PARTITION_NOT_FOUND', partition, 'produce-again'],
  ['PARTITION_NOT_READY', partition, 'produce-again'],
  ['WORKER_UNREACHABLE', partition, 'produce-again'],
  ['DISK_FAILED', {}, 'try-again'],
  ['WRITE_INTERRUPTED', {}, 'try-again'],
  ['NO_SPACE', {}, 'try-again'],
  ['BUSY', {}, 'try-again'],
  ['INVALID_ARGUMENT', {}, 'fail'],
  ['SUPERSEDED', {}, 'fail'],
])('%s with %j means %s', (code, fields, kind) => {
  expect(kindOfTaskError({ code, message: '', fields: { ...fields }, stack: '' })).toBe(kind)
})

test('every code means something, and so does an error without one', () => {
  for (const code of Object.keys(errorTable) as ErrorCode[]) {
    const kind = kindOfTaskError({ code, message: '', fields: {}, stack: '' })
    expect(['produce-again', 'try-again', 'fail']).toContain(kind)
  }
  expect(kindOfTaskError({ message: 'own', fields: {}, stack: '' })).toBe('try-again')
})
