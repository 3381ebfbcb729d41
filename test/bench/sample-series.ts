// Results of a bench that never ran, for the tests of what is made of them.

import type { Sample, Series } from '../../bench/series.ts'

export function sample(seconds: number, changes: Partial<Sample> = {}): Sample {
  return {
    bytes: 1_000_000_000,
    seconds,
    cpuSeconds: { worker: 0.3, producers: 0.5, consumers: 0, manager: 0.01 },
    peakBytes: { worker: 100 * 1_048_576 },
    loopDelayP99Ms: 14,
    idleLoopDelayP99Ms: 11,
    worker: { readBytes: 0, writtenBytes: 1_010_000_000 },
    device: { readBytes: 5, writtenBytes: 1_020_000_000 },
    diskOperations: { write: 1000 },
    references: { append: 1000 },
    figures: {},
    ...changes,
  }
}

export function series(changes: Partial<Series> = {}): Series {
  return {
    workload: 'a',
    name: 'write',
    referenceShape: 'append to 16 files',
    samples: [sample(1), sample(2), sample(1.25)],
    ...changes,
  }
}
