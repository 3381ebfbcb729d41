import { expect, test } from 'vitest'

import { readToken } from '../../cli/token-file.ts'

test('a token is the text of its file without the space around it', () => {
  expect(readToken('/t', { readFile: () => ' secret\n' })).toBe('secret')
  expect(readToken(undefined, { readFile: () => 'never read' })).toBeUndefined()
})

test('a file that is empty or can not be read is named', () => {
  expect(() => readToken('/t', { readFile: () => '\n' })).toThrow('--token-file /t is empty')
  const readFile = () => {
    throw new Error('EACCES')
  }
  expect(() => readToken('/t', { readFile })).toThrow("--token-file /t can't be read: EACCES")
})
