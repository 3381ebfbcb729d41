// Any of the workers with the fewest partitions of the data set: random, and yet even.

import { anyOf, least, type ChooseWorker } from './candidate.ts'

export const chooseRandom: ChooseWorker = (round) =>
  anyOf(
    least(round.candidates, (candidate) => candidate.dataSetCount),
    round.random,
  )
