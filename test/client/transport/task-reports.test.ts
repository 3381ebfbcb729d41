import { expect, test } from 'vitest'
import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  parseWorkerId,
} from '../../../client/common/ids.ts'
import { TaskReports, type ReportTarget } from '../../../client/transport/task-reports.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const jobId = parseJobId('job')
const failure = {
  key: {
    jobId,
    dataSetId: parseDataSetId('set'),
    partitionIndex: 0,
    attemptId: parseAttemptId('a'),
  },
  workerId: parseWorkerId('w'),
  code: 'DISK_FAILED' as const,
}

function setUp() {
  const clock = new VirtualClock()
  const sent: Parameters<ReportTarget['reportFailures']>[] = []
  const reports = new TaskReports({
    clock,
    target: {
      reportFailures: (...call) => {
        sent.push(call)
        return Promise.resolve()
      },
    },
  })
  return { clock, sent, reports }
}

test('what came within a moment goes out in one report for each job', async () => {
  const { clock, sent, reports } = setUp()
  const other = parseJobId('other')
  reports.addFailure(failure)
  reports.addTimes(jobId, 'write', { credit: 10.4, idle: 1 })
  reports.addTimes(jobId, 'write', { credit: 5, idle: 0 })
  reports.addTimes(other, 'read', { data: 2000 })
  await clock.advance(5000)
  expect(sent).toEqual([
    [jobId, [failure], { 'write-credit': 15, 'write-idle': 1 }],
    [other, [], { 'read-data': 2000 }],
  ])
  expect(clock.timerCount).toBe(0)
})

test('times alone wait until they are worth a call', async () => {
  const { clock, sent, reports } = setUp()
  reports.addTimes(jobId, 'write', { credit: 1000 })
  await clock.advance(60_000)
  expect(sent).toEqual([])
  expect(clock.timerCount).toBe(0)
  reports.addTimes(jobId, 'read', { data: 900, consumer: 100 })
  reports.addTimes(jobId, 'read', { data: 1, consumer: 0 })
  await clock.advance(5000)
  expect(sent).toEqual([
    [jobId, [], { 'write-credit': 1000, 'read-data': 901, 'read-consumer': 100 }],
  ])
})

test('a failure takes the times of its job along', async () => {
  const { clock, sent, reports } = setUp()
  reports.addTimes(jobId, 'write', { credit: 10 })
  reports.addFailure(failure)
  await clock.advance(5000)
  expect(sent).toEqual([[jobId, [failure], { 'write-credit': 10 }]])
})

test('closed it sends small times too, of the jobs that ended a task last', async () => {
  const { sent, reports } = setUp()
  for (let job = 0; job < 1000; job += 1) {
    reports.addTimes(parseJobId(`job-${String(job)}`), 'read', { data: 1 })
  }
  await reports.close()
  expect(sent).toHaveLength(128)
  expect(sent.at(-1)).toEqual(['job-999', [], { 'read-data': 1 }])
})

test('failures of one report are bounded', async () => {
  const { clock, sent, reports } = setUp()
  for (let time = 0; time < 1000; time += 1) reports.addFailure(failure)
  await clock.advance(5000)
  expect(sent[0]?.[1]).toHaveLength(256)
})

test('closed it sends the rest at once and takes nothing more', async () => {
  const { clock, sent, reports } = setUp()
  reports.addFailure(failure)
  await reports.close()
  reports.addFailure(failure)
  await reports.close()
  expect(sent).toHaveLength(1)
  expect(clock.timerCount).toBe(0)
})
