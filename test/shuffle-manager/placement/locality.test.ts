import { expect, test } from 'vitest'
import { chooseByLocality } from '../../../shuffle-manager/placement/locality.ts'
import { facts } from '../../support/cluster-state.ts'
import { roundOf } from '../../support/placement-round.ts'

test("the producer's host is chosen while it has less than its share", () => {
  const round = (dataSetCount: number) =>
    roundOf([{ number: 0 }, { number: 1, host: 'here', dataSetCount }], {
      facts: facts({ totalPartitions: 10 }),
    })
  expect(chooseByLocality(round(4), 'here').worker.number).toBe(1)
  expect(chooseByLocality(round(5), 'here').worker.number).toBe(0)
})

test('without a worker there, or without a host, it is round-robin', () => {
  const round = roundOf([{ number: 0 }, { number: 1 }])
  expect(chooseByLocality(round, 'elsewhere').worker.number).toBe(0)
  expect(chooseByLocality(round, undefined).worker.number).toBe(1)
})
