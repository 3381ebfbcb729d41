import { expect, test } from 'vitest'

import { didYouMean, nearMiss } from '../../../client/common/near-miss.ts'

const names = ['status', 'jobs', 'workers', 'partitions', 'release']

test.each([
  ['stauts', 'status'],
  ['job', 'jobs'],
  ['Workers', 'workers'],
  ['partition', 'partitions'],
  ['relaese', 'release'],
  ['releasee', 'release'],
])('finds that %s was meant as %s', (written, meant) => {
  expect(nearMiss(written, names)).toBe(meant)
})

test.each(['', 'x', 'manager', 'completely-different', 'r'.repeat(1000)])(
  'suggests nothing for %j',
  (written) => {
    expect(nearMiss(written, names)).toBeUndefined()
  },
)

test('suggests nothing when there is nothing', () => {
  expect(nearMiss('jobs', [])).toBeUndefined()
})

test('words a suggestion for the end of an error text', () => {
  expect(didYouMean('jobz', names)).toBe('; did you mean jobs?')
  expect(didYouMean('elephant', names)).toBe('')
})
