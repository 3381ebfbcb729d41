import { expect, test } from 'vitest'
import { parseAttemptId, parseDataSetId, parseJobId } from '../../../client/common/ids.ts'
import type { JobCommand } from '../../../client/manager/api-jobs.ts'
import { encodeKeys } from '../../../client/manager/key-columns.ts'
import { bodyBytesMax } from '../../../client/manager/schemas.ts'
import { beatsOf } from '../../../client/master/job-beats.ts'
import { MasterJob } from '../../../client/master/master-job.ts'

const keysEach = 4000

/** As long as they may be, with nothing in common. */
const longAttempt = (index: number) => parseAttemptId(`${String(index)}-`.padEnd(200, 'a'))
const dataSetId = parseDataSetId('d'.repeat(200))

function jobs(count: number): MasterJob[] {
  return Array.from({ length: count }, (_, index) => {
    const jobId = parseJobId(`${String(index)}-`.padEnd(200, 'j'))
    return new MasterJob({ jobId, onPartitionsLost: () => undefined, onJobFailed: () => undefined })
  })
}

const keys = Array.from({ length: keysEach }, (_, index) => ({
  dataSetId,
  partitionIndex: index,
  attemptId: longAttempt(index),
}))
const lost: JobCommand = {
  type: 'lost',
  groups: encodeKeys(keys).map((group) => ({ ...group, workerId: 'w1', cause: 'gone' })),
}

test('changes of more jobs than a body takes are told one heartbeat after another, each once', () => {
  const many = jobs(8)
  for (const job of many) job.take([lost])
  const told = many.map(() => 0)
  let heartbeats = 0
  while (many.some((job) => job.hasChanges)) {
    const beats = beatsOf(many)
    expect(JSON.stringify(beats).length).toBeLessThan(bodyBytesMax)
    beats.forEach((beat, index) => {
      // A sequence without its change would be a gap.
      expect(beat.sequence).toBe((told[index] ?? 0) + (beat.dropped === undefined ? 0 : 1))
      told[index] = beat.sequence
      many[index]?.beatTaken(beat)
    })
    heartbeats++
  }
  expect(told).toEqual(many.map(() => 1))
  expect(heartbeats).toBe(2)
})

test('the answer to a question waits with what it claims', () => {
  const [second] = jobs(1) as [MasterJob]
  for (const key of keys) second.beginAllocating({ jobId: second.jobId, ...key })
  second.take([lost])
  second.beatTaken(second.beat())
  const others = jobs(4)
  for (const job of others) job.take([lost])
  second.take([{ type: 'asked', question: 7, dataSets: encodeKeys(keys) }])
  const late = beatsOf([...others, second]).at(-1)
  expect(late).toEqual({ jobId: second.jobId, jobEpoch: 0, sequence: 1, newsSeen: 0 })
  second.beatTaken(late!)
  expect(beatsOf([second])[0]).toMatchObject({ sequence: 2, answered: 7, claimed: [{}] })
})

test('jobs without changes all speak, however many they are', () => {
  const beats = beatsOf(jobs(10_000))
  expect(beats).toHaveLength(10_000)
  expect(JSON.stringify(beats).length).toBeLessThan(bodyBytesMax)
})
