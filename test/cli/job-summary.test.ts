import { expect, test } from 'vitest'

import type { JobRun } from '../../cli/job-run.ts'
import { summaryJson, summaryText } from '../../cli/job-summary.ts'
import { parseJobId } from '../../client/index.ts'

const counts = { taskCount: 8, waiting: 0, running: 0, finished: 8, attempts: 9, lost: 1 }
const committed = { recordCount: 1, uncompressedBytes: 2, storedBytes: 3 }
const run: JobRun = {
  summary: {
    jobId: parseJobId('sort-1'),
    durationMs: 2000,
    stages: [{ name: 'map', ...counts, progressBytes: 0, committed }],
    producerAttempts: 9,
    consumerAttempts: 8,
    processRestarts: 0,
    taskProcesses: [{ pid: 1, peakMemoryBytes: 3 * 1024 * 1024 }],
  },
  inputBytes: 4 * 1024 * 1024,
  output: { outputBytes: 1024, counts: { distinctWords: 7 } },
  counters: { takenBytes: 1024, takenUncompressedBytes: 2048, givenBytes: 1030 },
}

test('the summary says what was done, lost, taken and given', () => {
  const text = summaryText(run)
  expect(text).toMatch(/1\.0 KiB, 7 distinct words/)
  expect(text).toMatch(/2\.0 s, 2\.0 MiB\/s/)
  expect(text).toMatch(/9 of producers \(1 partitions were lost and produced again\)/)
  expect(text).toMatch(/shuffled +2\.0 KiB, compressed to 1\.0 KiB/)
  expect(text).toMatch(/3\.0 MiB at most/)
})

test('what the workers counted may be unknown', () => {
  const uncounted = { ...run, counters: undefined }
  expect(summaryText(uncounted)).toMatch(/shuffled +not known: .*\nmemory/)
  expect(JSON.parse(summaryJson(uncounted))).not.toHaveProperty('workers')
})

test('as JSON it has the same for programs', () => {
  expect(JSON.parse(summaryJson(run))).toMatchObject({
    jobId: 'sort-1',
    producerAttempts: 9,
    inputBytes: 4 * 1024 * 1024,
    outputBytes: 1024,
    workers: run.counters,
    taskProcesses: [{ peakMemoryBytes: 3 * 1024 * 1024 }],
  })
})
