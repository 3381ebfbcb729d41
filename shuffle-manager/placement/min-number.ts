// The worker with the fewest partitions of all jobs; among equals the one with the fewest of the data
// set. Evens out a cluster to which workers are added, at the price of less even data sets.

import { anyOf, least, type ChooseWorker } from './candidate.ts'

export const chooseMinNumber: ChooseWorker = (round) => {
  const equals = least(round.candidates, (candidate) => candidate.partitionCount)
  return anyOf(
    least(equals, (candidate) => candidate.dataSetCount),
    round.random,
  )
}
