// What the placement strategies compare and share.

import { assert } from '../../client/common/assert.ts'
import { randomInteger, type Random } from '../../client/common/random.ts'
import type { DataSetFacts, DirectoryStatus } from '../../client/manager/schemas.ts'

/** What placement needs to know of a worker. */
export interface PlacementWorker {
  readonly number: number
  readonly host: string
  readonly directories: readonly DirectoryStatus[]
  readonly partitionCount: number
  /** Promised to partitions that are not committed yet. */
  readonly pendingBytes: number
}

export interface Candidate {
  readonly worker: PlacementWorker
  /** Partitions of this data set there. */
  dataSetCount: number
  /** Partitions of all jobs there. */
  partitionCount: number
  /** Free, less what is promised. */
  freeBytes: number
}

export interface PlacementRound {
  /** Never empty. In the order of the workers' numbers. */
  readonly candidates: readonly Candidate[]
  readonly facts: DataSetFacts
  readonly random: Random
  /** Where round-robin goes on; kept by the job. */
  cursor: number
}

export type ChooseWorker = (round: PlacementRound, producerHost: string | undefined) => Candidate

/** The candidates for which `measure` is least. */
export function least(
  candidates: readonly Candidate[],
  measure: (candidate: Candidate) => number,
): Candidate[] {
  let lowest = Infinity
  let found: Candidate[] = []
  for (const candidate of candidates) {
    const value = measure(candidate)
    if (value > lowest) continue
    if (value < lowest) found = []
    lowest = value
    found.push(candidate)
  }
  return found
}

export function anyOf(candidates: readonly Candidate[], random: Random): Candidate {
  const chosen = candidates[randomInteger(random, candidates.length)]
  assert(chosen !== undefined, 'there is a candidate')
  return chosen
}
