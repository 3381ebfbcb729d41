import { expect, test } from 'vitest'
import { chooseRoundRobin } from '../../../shuffle-manager/placement/round-robin.ts'
import { roundOf } from '../../support/placement-round.ts'

test('among equals the next one after the last choice, round and round', () => {
  const round = roundOf([{ number: 0 }, { number: 3 }, { number: 7 }])
  const chosen = Array.from({ length: 5 }, () => chooseRoundRobin(round, undefined).worker.number)
  expect(chosen).toEqual([0, 3, 7, 0, 3])
})

test('the fewest partitions of the data set come before the turn', () => {
  const round = roundOf([
    { number: 0, dataSetCount: 2 },
    { number: 1, dataSetCount: 1 },
  ])
  expect(chooseRoundRobin(round, undefined).worker.number).toBe(1)
  expect(chooseRoundRobin(round, undefined).worker.number).toBe(1)
})
