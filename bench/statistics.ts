// Figures of several rounds, as the report shows them.

export interface Spread {
  readonly min: number
  readonly median: number
  readonly max: number
}

/** Of one round or more; the median of an even number is the mean of the two in the middle. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) throw new Error('a spread needs at least one value')
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? NaN
  const lower = sorted[Math.ceil(middle) - 1] ?? NaN
  return { min: sorted[0] ?? NaN, median: (lower + upper) / 2, max: sorted.at(-1) ?? NaN }
}

/** The value below which a share of all lies; `share` from 0 to 1. */
export function quantileOf(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const index = Math.min(sorted.length - 1, Math.floor(sorted.length * share))
  return sorted[index] ?? NaN
}
