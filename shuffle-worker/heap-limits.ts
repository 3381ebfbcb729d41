// How the heap of a worker grows. Its payload lies in the pool, outside the heap; what lies inside is
// mostly short-lived, and Node on a large machine lets that grow to several times what is alive before
// it collects. Measured with thousands of small shuffles on a pool of 64 MiB (docs/performance.md): 246
// MiB resident at most as Node has it, 135 MiB so, for half a millisecond more of collections in each.

import { setFlagsFromString } from 'node:v8'

/**
 * Of the heap at the last collection: the next comes when it has grown by so much. V8 reads its flags
 * before each; a V8 that no longer knows one prints a line and goes on.
 */
const heapGrowingPercent = 40

/** For a worker that starts itself, or is started by a command: settled when the heap is made. */
export const workerNodeFlags: readonly string[] = ['--max-semi-space-size=4']

export function limitHeapGrowth(setFlags: (flags: string) => void = setFlagsFromString): void {
  setFlags(`--heap-growing-percent=${String(heapGrowingPercent)}`)
  // A young part so small is collected by one thread: with helpers it takes more of the processor.
  setFlags('--no-parallel-scavenge')
}
