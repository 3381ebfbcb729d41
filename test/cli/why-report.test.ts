import { expect, test } from 'vitest'
import { describeWhy, whyReport } from '../../cli/why-report.ts'
import type { EventRecord, JobSummary } from '../../client/manager/api-workers.ts'

let number = 0
function event(type: string, fields: Readonly<Record<string, unknown>>): EventRecord {
  number++
  return { number, wallMs: Date.UTC(2026, 0, 1, 12, 0, number), type, ...fields }
}

const job: JobSummary = {
  jobId: 'j',
  clientId: 'client-1',
  jobEpoch: 1,
  state: 'registered',
  dataSetCount: 1,
  partitionCount: 10,
  committedCount: 8,
  lostCount: 2,
  releasingCount: 0,
  byteCount: 2048,
  silentMs: 1000,
  releaseInMs: 1,
  timeInStateMs: { 'read.disk': 750, 'write.credit': 250 },
}

const lost = (fields: Readonly<Record<string, unknown>> = {}) =>
  event('partitions-lost', {
    jobId: 'j',
    dataSetId: 'd',
    workerId: 'w1',
    detector: 'liveness',
    cause: 'the worker is silent',
    count: 2,
    partitionIndices: [3, 4],
    ...fields,
  })

test('each loss has its worker, time, cause, who noticed and who heard of it first', () => {
  const events = [
    event('job-registered', { jobId: 'j', clientId: 'client-1' }),
    event('worker-lost', { workerId: 'w1', cause: 'the worker is silent' }),
    event('worker-lost', { workerId: 'w2', cause: 'of another job' }),
    lost(),
    lost({ jobId: 'other' }),
    event('loss-told', { jobId: 'j', clientId: 'client-1', count: 2 }),
    event('client-report', {
      jobId: 'j',
      dataSetId: 'd',
      partitionIndex: 5,
      attemptId: 'a_5',
      workerId: 'w3',
      code: 'DATA_CORRUPT',
    }),
    event('disk-health', { workerId: 'w3', directory: '/d', health: 'suspect', isFull: false }),
    lost({ workerId: 'w4', count: 20 }),
  ]
  const report = whyReport('j', { job, events, forgotten: 7 })
  expect(report.losses).toMatchObject([
    { workerId: 'w1', detector: 'liveness', told: { clientId: 'client-1' } },
    { workerId: 'w4', told: undefined },
  ])
  expect(report.failures).toMatchObject([
    { partitionIndex: 5, workerId: 'w3', code: 'DATA_CORRUPT' },
  ])
  expect(report.workerEvents.map((one) => one['workerId'])).toEqual(['w1', 'w3'])
  const text = describeWhy(report)
  expect(text).toMatch(/j is registered, held by client-1.*10 partitions, 8 committed/)
  expect(text).toMatch(
    /2026-01-01 12:00:04 +d +3, 4 +w1 +the worker is silent +the manager, by its silence +client-1 2026-01-01 12:00:06/,
  )
  expect(text).toMatch(/20: 3, 4, … +w4 .*nobody yet/)
  expect(text).toMatch(/a_5 +w3 +DATA_CORRUPT: A checksum, a length/)
  expect(text).toMatch(/read\.disk +0\.8 s +75\.0 %/)
  expect(text).toContain('7 older events are forgotten')
})

test('a job that went well says so; one that is gone says what its events say', () => {
  const well = whyReport('j', { job, events: [], forgotten: 0 })
  expect(describeWhy(well)).toContain('Nothing of it was lost, failed or refused.')
  const gone = whyReport('j', { job: undefined, events: [lost()], forgotten: 0 })
  expect(describeWhy(gone)).toMatch(/is not known any more.*\n.*\n.*\n.*w1/s)
})

test('a long table shows its last rows and how many there are before', () => {
  const events = Array.from({ length: 70 }, () => lost())
  expect(describeWhy(whyReport('j', { job, events, forgotten: 0 }))).toContain(
    'and 20 before these',
  )
})
