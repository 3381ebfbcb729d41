// Finds what a person probably meant by a misspelt name.

/** Longer names are cut before they are compared, so that no input makes the comparison costly. */
const comparedLengthMax = 64

/** The candidate nearest to `name`, when it is near enough to be what was meant. */
export function nearMiss(name: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = Infinity
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  const distanceMax = Math.max(1, Math.floor(Math.min(name.length, best?.length ?? 0) / 3))
  return bestDistance <= distanceMax ? best : undefined
}

/** `; did you mean X?` or nothing, to stand at the end of an error text. */
export function didYouMean(name: string, candidates: readonly string[]): string {
  const found = nearMiss(name, candidates)
  return found === undefined ? '' : `; did you mean ${found}?`
}

/** Insertions, removals, replacements and swaps of neighbours that turn one name into the other. */
function editDistance(left: string, right: string): number {
  const a = left.slice(0, comparedLengthMax)
  const b = right.slice(0, comparedLengthMax)
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + cost)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) least = Math.min(least, at(beforeLast, j - 2) + 1)
      row.push(least)
    }
    beforeLast = last
    last = row
  }
  return at(last, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity
}
