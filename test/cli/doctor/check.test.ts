import { expect, test } from 'vitest'
import { describeChecks, failure, messageOf, ok, warning } from '../../../cli/doctor/check.ts'

test('what is wrong comes last, with what to do, and all is counted', () => {
  const text = describeChecks([
    failure('a', 'broken', 'mend it'),
    ok('b', 'well'),
    warning('c', 'nearly', 'look at it'),
  ])
  expect(text).toBe(
    'ok    b: well\nWARN  c: nearly\n        look at it\nFAIL  a: broken\n        mend it\n\n3 things looked at, 1 warnings, 1 failures\n',
  )
})

test('an error is its message', () => {
  expect(messageOf(new Error('x'))).toBe('x')
  expect(messageOf('y')).toBe('y')
})
