// A word count by the plainest means there are, to check the shuffled one against: one process, one
// map, nothing shared with the other.

import { readFile } from 'node:fs/promises'

/** Counts by word; one character stands for one byte, so that any bytes are a word. */
export async function plainWordCount(
  files: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  for (const file of files) {
    signal.throwIfAborted()
    for (const word of (await readFile(file, 'latin1')).split(/[ \t\n\v\f\r]+/)) {
      if (word !== '') counts.set(word, (counts.get(word) ?? 0) + 1)
    }
  }
  return counts
}

export interface WordCountOutput {
  /** By word, one character for one byte. */
  readonly counts: ReadonlyMap<string, number>
  /** Whether each word sorts after the one before it. */
  readonly isSorted: boolean
}

/** Reads the lines `word<TAB>count` of an output. */
export function parseWordCounts(text: string): WordCountOutput {
  const counts = new Map<string, number>()
  let [isSorted, last] = [true, '']
  for (const line of text.split('\n')) {
    if (line === '') continue
    const tab = line.lastIndexOf('\t')
    const word = line.slice(0, tab)
    if (word <= last) isSorted = false
    last = word
    counts.set(word, Number(line.slice(tab + 1)))
  }
  return { counts, isSorted }
}

/** The first differences, in words; none when both are the same. */
export function differences(
  expected: ReadonlyMap<string, number>,
  actual: ReadonlyMap<string, number>,
  countMax = 5,
): string[] {
  const found: string[] = []
  for (const word of new Set([...expected.keys(), ...actual.keys()])) {
    const [wanted, got] = [expected.get(word) ?? 0, actual.get(word) ?? 0]
    if (wanted !== got) found.push(`${JSON.stringify(word)}: ${wanted} expected, ${got} counted`)
    if (found.length >= countMax) break
  }
  return found
}

/** The most frequent words, the smaller one first where two are as frequent. */
export function topWords(
  counts: ReadonlyMap<string, number>,
  countMax: number,
): readonly (readonly [string, number])[] {
  return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).slice(0, countMax)
}
