import { expect, test } from 'vitest'
import { chooseMinNumber } from '../../../shuffle-manager/placement/min-number.ts'
import { roundOf } from '../../support/placement-round.ts'

test('the fewest partitions of all jobs, then of the data set', () => {
  const round = roundOf([
    { number: 0, partitionCount: 9, dataSetCount: 0 },
    { number: 1, partitionCount: 5, dataSetCount: 3 },
    { number: 2, partitionCount: 5, dataSetCount: 2 },
  ])
  expect(chooseMinNumber(round, undefined).worker.number).toBe(2)
})
