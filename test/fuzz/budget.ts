// How long a fuzz suite runs: SLUICE_FUZZ_MS for each property, a second and a half unless given. What
// it finds, fast-check shrinks and prints with its seed.

import fc, { type Parameters } from 'fast-check'

const budgetMs = Number(process.env['SLUICE_FUZZ_MS'] ?? 1500)

/** A `share` of it, where there are several of a kind. */
export function fuzzBudget<T>(share = 1): Parameters<T> {
  return { numRuns: 1_000_000, plugins: [fc.interruptAfterTimeLimit(budgetMs * share)] }
}
