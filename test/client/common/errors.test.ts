import { expect, test } from 'vitest'
import {
  errorCodeOfWire,
  errorTable,
  isErrorCode,
  isShuffleError,
  ShuffleError,
} from '../../../client/common/errors.ts'
import type { ErrorCode } from '../../../client/common/errors.ts'

const codes = Object.keys(errorTable) as ErrorCode[]

test('each wire code leads back to its one code, an unknown one to nothing', () => {
  for (const code of codes) expect(errorCodeOfWire(errorTable[code].wireCode)).toBe(code)
  expect(errorCodeOfWire(0)).toBeUndefined()
  expect(errorCodeOfWire(65_535)).toBeUndefined()
})

test('wire codes fit a u16 and HTTP statuses are errors', () => {
  for (const code of codes) {
    const { wireCode, httpStatus } = errorTable[code]
    expect(wireCode > 0 && wireCode < 2 ** 16 && httpStatus >= 400 && httpStatus < 600).toBe(true)
  }
})

test('an error tells its action, its fields and its cause', () => {
  const cause = new Error('EIO')
  const error = new ShuffleError('DISK_FAILED', 'reading a file', {
    cause,
    fields: { directory: '/data' },
  })
  expect(error).toBeInstanceOf(Error)
  expect(error.name).toBe('ShuffleError')
  expect(error.cause).toBe(cause)
  expect(error.fields).toEqual({ directory: '/data' })
  expect([error.action, error.isRetryable]).toEqual(['produce-again', false])
  expect(new ShuffleError('BUSY', 'full').isRetryable).toBe(true)
  expect('cause' in new ShuffleError('BUSY', 'full')).toBe(false)
})

test('exactly what asks for the same call again is retryable', () => {
  const retryable = codes.filter((code) => errorTable[code].isRetryable)
  const asking = codes.filter((code) => /^(retry|register)/.test(errorTable[code].action))
  expect(retryable).toEqual(asking)
})

test('a code is told from any other word', () => {
  expect(codes.every(isErrorCode)).toBe(true)
  expect(['NOVELTY', '', 'toString', '__proto__'].some(isErrorCode)).toBe(false)
})

test('an error is told from others by class and by code', () => {
  const error = new ShuffleError('BUSY', 'full')
  expect(isShuffleError(error)).toBe(true)
  expect(isShuffleError(error, 'NO_SPACE', 'BUSY')).toBe(true)
  expect(isShuffleError(error, 'NO_SPACE')).toBe(false)
  expect(isShuffleError(Object.assign(new Error('BUSY'), { code: 'BUSY' }))).toBe(false)
  expect(isShuffleError(undefined)).toBe(false)
})
