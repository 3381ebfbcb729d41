import { expect, test } from 'vitest'
import { assert, AssertionFailure, unreachable } from '../../../client/common/assert.ts'

test('what holds passes, what does not throws with the rule that is broken', () => {
  assert(true, 'never said')
  expect(() => {
    assert(false, 'credit is never negative')
  }).toThrow(new AssertionFailure('credit is never negative'))
})

test('a value outside its closed union is told', () => {
  expect(() => unreachable({ kind: 'new' } as never)).toThrow('unexpected value {"kind":"new"}')
})
