import { expect, test } from 'vitest'
import { AssertionFailure } from '../../../client/common/assert.ts'
import { ShuffleError } from '../../../client/common/errors.ts'
import { withFields } from '../../../client/transport/error-fields.ts'

test('adds ids and keeps code, text and the error’s own fields', () => {
  const error = new ShuffleError('NO_SPACE', 'full', { fields: { workerId: 'w', disk: 1 } })
  const made = withFields(error, { workerId: 'other', jobId: 'j' })
  expect(made).toMatchObject({
    code: 'NO_SPACE',
    message: 'full',
    fields: { workerId: 'w', disk: 1, jobId: 'j' },
  })
  expect(made.cause).toBe(error)
})

test('a broken invariant is a PROTOCOL error that nobody retries', () => {
  expect(withFields(new AssertionFailure('x'), {})).toMatchObject({
    code: 'PROTOCOL',
    isRetryable: false,
  })
})

test('anything else is the reason of an abort', () => {
  expect(withFields(new Error('stop'), {})).toMatchObject({ code: 'CANCELLED', message: 'stop' })
  expect(withFields('stop', {})).toMatchObject({ code: 'CANCELLED', message: 'stop' })
})
