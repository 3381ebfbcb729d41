import { expect, test } from 'vitest'

import {
  decodeSplitters,
  encodeSplitters,
  listOf,
  mapInput,
  numberOf,
  objectOf,
  parseMapInput,
  stringOf,
} from '../../../runtime/jobs/task-input.ts'

test('the input of a map survives a message', () => {
  const input = {
    ranges: [{ path: '/a', start: 1, end: 2 }],
    splitters: encodeSplitters([Buffer.of(0, 255, 10), Buffer.alloc(0)]),
    unitBytesMax: 5,
  }
  const parsed = parseMapInput(
    JSON.parse(JSON.stringify(mapInput(input))) as ReturnType<typeof mapInput>,
  )
  expect(parsed).toEqual(input)
  expect(decodeSplitters(parsed.splitters)).toEqual([Buffer.of(0, 255, 10), Buffer.alloc(0)])
})

test('what is of another kind is refused', () => {
  for (const read of [objectOf, listOf, numberOf, stringOf]) {
    for (const value of [undefined, null, true]) expect(() => read(value)).toThrow('should have')
  }
  expect(() => objectOf([])).toThrow('an object')
  expect(() => listOf({})).toThrow('a list')
  expect(() => parseMapInput({ ranges: [{}] })).toThrow('a text')
})
