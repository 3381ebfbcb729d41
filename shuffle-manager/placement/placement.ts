// Choosing workers for the partitions of one data set. A round is made for a batch: it holds what the
// strategies compare, and counts along as it chooses, so that a batch spreads as single calls would.

import type { Random } from '../../client/common/random.ts'
import type { DataSetFacts } from '../../client/manager/schemas.ts'
import type { Candidate, ChooseWorker, PlacementWorker } from './candidate.ts'
import { chooseByLocality } from './locality.ts'
import { chooseMinNumber } from './min-number.ts'
import { chooseRandom } from './random.ts'
import { chooseRoundRobin } from './round-robin.ts'

export const placementNames = ['round-robin', 'min-number', 'locality', 'random'] as const
export type PlacementName = (typeof placementNames)[number]

const strategies: Readonly<Record<PlacementName, ChooseWorker>> = {
  'round-robin': chooseRoundRobin,
  'min-number': chooseMinNumber,
  locality: chooseByLocality,
  random: chooseRandom,
}

export interface PlacementRequest {
  readonly workers: readonly PlacementWorker[]
  readonly facts: DataSetFacts
  readonly countsByWorker: ReadonlyMap<number, number>
  readonly cursor: number
  /** One entry a partition: where its producer runs, if known. */
  readonly producerHosts: readonly (string | undefined)[]
  /** Workers where earlier attempts failed, for each: chosen only if there is no other. */
  readonly avoided?: readonly (readonly number[])[]
  readonly minFreeBytes: number
  readonly random: Random
}

export interface Placement {
  /** As many as there are producer hosts; fewer when space ran out. */
  readonly workerNumbers: number[]
  readonly cursor: number
}

/** Places as many of the partitions as there is space for, in order. */
export function place(name: PlacementName, request: PlacementRequest): Placement {
  const { facts, countsByWorker, random } = request
  const expectedBytes = facts.expectedBytes ?? 0
  const neededBytes = Math.max(request.minFreeBytes, expectedBytes)
  const everyone = request.workers.map((worker) => candidateOf(worker, facts, countsByWorker))
  const round = { facts, random, cursor: request.cursor }
  let candidates = everyone.filter((candidate) => candidate.freeBytes >= neededBytes)
  const workerNumbers: number[] = []
  for (const [position, producerHost] of request.producerHosts.entries()) {
    if (candidates.length === 0) break
    const withCandidates = {
      ...round,
      candidates: without(candidates, request.avoided?.[position]),
    }
    const chosen = strategies[name](withCandidates, producerHost)
    round.cursor = withCandidates.cursor
    workerNumbers.push(chosen.worker.number)
    chosen.dataSetCount++
    chosen.partitionCount++
    chosen.freeBytes -= expectedBytes
    if (chosen.freeBytes < neededBytes) {
      candidates = candidates.filter((candidate) => candidate !== chosen)
    }
  }
  return { workerNumbers, cursor: round.cursor }
}

/** All of them where none would be left. */
function without(
  candidates: readonly Candidate[],
  avoided: readonly number[] = [],
): readonly Candidate[] {
  if (avoided.length === 0) return candidates
  const others = candidates.filter(({ worker }) => !avoided.includes(worker.number))
  return others.length > 0 ? others : candidates
}

function candidateOf(
  worker: PlacementWorker,
  facts: DataSetFacts,
  countsByWorker: ReadonlyMap<number, number>,
): Candidate {
  const freeBytes = worker.directories
    .filter((directory) => directory.health === 'healthy' && !directory.isFull)
    .filter((directory) => facts.diskKind === undefined || directory.kind === facts.diskKind)
    .reduce((sum, directory) => sum + directory.freeBytes, 0)
  return {
    worker,
    dataSetCount: countsByWorker.get(worker.number) ?? 0,
    partitionCount: worker.partitionCount,
    // Without one usable directory there is no room for anything, however little is asked for.
    freeBytes: freeBytes === 0 ? -1 : freeBytes - worker.pendingBytes,
  }
}
