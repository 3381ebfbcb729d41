import { expect, test } from 'vitest'
import { chooseRandom } from '../../../shuffle-manager/placement/random.ts'
import { roundOf } from '../../support/placement-round.ts'

test('any of those with the fewest partitions of the data set', () => {
  const round = roundOf([{ number: 0 }, { number: 1, dataSetCount: 1 }, { number: 2 }])
  const chosen = Array.from({ length: 50 }, () => chooseRandom(round, undefined).worker.number)
  expect([...new Set(chosen)].sort()).toEqual([0, 2])
})
