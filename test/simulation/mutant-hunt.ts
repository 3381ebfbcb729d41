// Whether the simulation notices planted faults, and within how many seeds.

import type { Mutant } from './mutants.ts'
import { simulate } from './simulation.ts'

/** Those that show within a few seeds, for every run of the tests. */
export const quickMutants: readonly string[] = [
  'credit-off-by-one',
  'wrong-range-by-one',
  'order-broken-inside-range',
  'lost-release',
  'rename-before-data',
  'reader-served-partial',
  'released-partition-adopted',
  'leaked-buffer-on-close-while-opening',
]

export interface Hunt {
  readonly first: number
  /** Most seeds for one mutant. */
  readonly count: number
  readonly print: (line: string) => void
}

/** True when each is caught. */
export async function huntAll(mutants: readonly Mutant[], hunt: Hunt): Promise<boolean> {
  let caughtCount = 0
  for (const mutant of mutants) if (await huntOne(mutant, hunt)) caughtCount += 1
  hunt.print(`${String(caughtCount)} of ${String(mutants.length)} mutants are caught`)
  return caughtCount === mutants.length
}

export async function huntOne(mutant: Mutant, hunt: Hunt): Promise<boolean> {
  const remove = mutant.install()
  try {
    for (let seed = hunt.first; seed < hunt.first + hunt.count; seed += 1) {
      const { findings } = await simulate(seed)
      const [finding] = findings
      if (finding === undefined) continue
      const seedCount = seed - hunt.first + 1
      hunt.print(
        `${mutant.name}: caught within ${String(seedCount)} seeds: ${finding.slice(0, 200)}`,
      )
      return true
    }
  } finally {
    remove()
  }
  hunt.print(`${mutant.name}: NOT CAUGHT within ${String(hunt.count)} seeds: ${mutant.about}`)
  return false
}
