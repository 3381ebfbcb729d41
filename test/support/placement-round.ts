// A round of placement with workers as a test describes them.

import type { Candidate, PlacementRound } from '../../shuffle-manager/placement/candidate.ts'
import { facts } from './cluster-state.ts'
import { VirtualRandom } from './virtual-random.ts'

export function roundOf(
  workers: readonly {
    readonly number: number
    readonly host?: string
    readonly dataSetCount?: number
    readonly partitionCount?: number
  }[],
  change: Partial<PlacementRound> = {},
): PlacementRound {
  const candidates = workers.map((one): Candidate => {
    const { number, host = `h${String(number)}`, dataSetCount = 0, partitionCount = 0 } = one
    const worker = { number, host, directories: [], partitionCount, pendingBytes: 0 }
    return { worker, dataSetCount, partitionCount, freeBytes: 1 }
  })
  return { candidates, facts: facts(), random: new VirtualRandom(1), cursor: 0, ...change }
}
