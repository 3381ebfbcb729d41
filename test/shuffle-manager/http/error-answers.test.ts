import { expect, test } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { answerOf } from '../../../shuffle-manager/http/error-answers.ts'

test('an error is told by its code, with its status and fields', () => {
  const error = new ShuffleError('NO_WORKER', 'none fits', { fields: { jobId: 'j', x: undefined } })
  expect(answerOf(error)).toEqual({
    status: 503,
    body: { error: { code: 'NO_WORKER', message: 'none fits', fields: { jobId: 'j' } } },
    isOurs: false,
  })
})

test('a failure of our own says nothing of its insides, and is to be logged', () => {
  const answer = answerOf(new Error('secret path'))
  expect(answer).toMatchObject({ status: 500, isOurs: true })
  expect(JSON.stringify(answer.body)).not.toContain('secret path')
})

test('what the HTTP library refuses has a code too', () => {
  const tooLarge = { code: 'FST_ERR_CTP_BODY_TOO_LARGE', statusCode: 413, message: 'x' }
  expect(answerOf(tooLarge).body.error.code).toBe('LIMIT_EXCEEDED')
  const invalid = { validation: [{}], statusCode: 400, message: 'body/x must be y' }
  expect(answerOf(invalid)).toMatchObject({
    status: 400,
    body: { error: { code: 'INVALID_ARGUMENT', message: 'body/x must be y' } },
  })
})
