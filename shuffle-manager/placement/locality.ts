// A worker on the producer's host, as long as it has less than its even share of the data set: local
// writes must not make a hot spot for the readers. Else as round-robin.

import { least, type ChooseWorker } from './candidate.ts'
import { chooseRoundRobin } from './round-robin.ts'

export const chooseByLocality: ChooseWorker = (round, producerHost) => {
  if (producerHost === undefined) return chooseRoundRobin(round, producerHost)
  const share = Math.ceil(round.facts.totalPartitions / round.candidates.length)
  const local = round.candidates.filter(
    (candidate) => candidate.worker.host === producerHost && candidate.dataSetCount < share,
  )
  const [chosen] = least(local, (candidate) => candidate.dataSetCount)
  return chosen ?? chooseRoundRobin(round, producerHost)
}
