// The default: the worker with the fewest partitions of the data set; among equals the next one
// after the last choice of the job, so that many small data sets spread too.

import { assert } from '../../client/common/assert.ts'
import { least, type ChooseWorker } from './candidate.ts'

export const chooseRoundRobin: ChooseWorker = (round) => {
  const equals = least(round.candidates, (candidate) => candidate.dataSetCount)
  const next = equals.find((candidate) => candidate.worker.number >= round.cursor) ?? equals[0]
  assert(next !== undefined, 'there is a candidate')
  round.cursor = next.worker.number + 1
  return next
}
