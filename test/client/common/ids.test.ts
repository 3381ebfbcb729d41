import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  compareAllocations,
  idLengthMax,
  parseAttemptId,
  parseClientId,
  parseClusterId,
  parseDataSetId,
  parseJobId,
  parsePartitionKeyText,
  parseWorkerId,
  partitionKeyText,
} from '../../../client/common/ids.ts'
import { isShuffleError } from '../../../client/common/errors.ts'

const parsers = {
  'cluster id': parseClusterId,
  'worker id': parseWorkerId,
  'client id': parseClientId,
  'job id': parseJobId,
  'data set id': parseDataSetId,
  'attempt id': parseAttemptId,
}

function refusal(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (isShuffleError(error, 'INVALID_ARGUMENT')) return error.message
    throw error
  }
  return 'accepted'
}

test.each(Object.entries(parsers))('a %s is printable ASCII without spaces', (what, parse) => {
  for (const good of ['a', '!~', 'x'.repeat(idLengthMax)]) expect(parse(good)).toBe(good)
  for (const bad of ['', ' ', 'a b', 'a\n', 'ä', '\u0000', 'x'.repeat(idLengthMax + 1)]) {
    expect(refusal(() => parse(bad))).toMatch(new RegExp(`^${what} must be`))
  }
})

const anyId = fc.stringMatching(/^[\x21-\x7e]{1,40}$/)
const anyKey = fc.record({
  jobId: anyId.map(parseJobId),
  dataSetId: anyId.map(parseDataSetId),
  partitionIndex: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  attemptId: anyId.map(parseAttemptId),
})

test('a key and its text lead to each other', () => {
  fc.assert(
    fc.property(anyKey, (key) => {
      expect(parsePartitionKeyText(partitionKeyText(key))).toEqual(key)
    }),
  )
})

test('two keys have the same text only when they are equal', () => {
  fc.assert(
    fc.property(anyKey, anyKey, (a, b) => {
      const isEqual = JSON.stringify(a) === JSON.stringify(b)
      expect(partitionKeyText(a) === partitionKeyText(b)).toBe(isEqual)
    }),
  )
})

test.each([
  '',
  'a b 1',
  'a b 1 c d',
  'a b x c',
  'a b -1 c',
  'a b 1.5 c',
  'a b 4294967296 c',
  'a  1 c',
])('%j is not the text of a key', (text) => {
  expect(refusal(() => parsePartitionKeyText(text))).not.toBe('accepted')
})

test('allocations compare by manager epoch, then job epoch, then sequence', () => {
  const of = (managerEpoch: number, jobEpoch: number, sequence: number) => ({
    managerEpoch,
    jobEpoch,
    sequence,
  })
  const ascending = [of(1, 9, 9), of(2, 1, 9), of(2, 2, 1), of(2, 2, 2)]
  for (const [index, a] of ascending.entries()) {
    for (const [other, b] of ascending.entries()) {
      expect(Math.sign(compareAllocations(a, b))).toBe(Math.sign(index - other))
    }
  }
  const largest = Number.MAX_SAFE_INTEGER
  expect(compareAllocations(of(largest, 0, 0), of(largest - 1, largest, largest))).toBe(1)
})
