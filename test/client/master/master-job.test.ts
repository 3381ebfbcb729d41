import { expect, test } from 'vitest'
import { parseWorkerId } from '../../../client/common/ids.ts'
import type { JobCommand } from '../../../client/manager/api-jobs.ts'
import { encodeAttempts, encodeKeys } from '../../../client/manager/key-columns.ts'
import { MasterJob } from '../../../client/master/master-job.ts'
import { facts, jobId, key } from '../../support/cluster-state.ts'

function job(): MasterJob {
  return new MasterJob({ jobId, onPartitionsLost: () => undefined, onJobFailed: () => undefined })
}

const fullKey = (index: number) => ({ jobId, ...key(index) })

function add(to: MasterJob, index: number, workerId = 'w1'): void {
  const holder = { host: `${workerId}.host`, port: 1, firstSubpartition: 0, lastSubpartition: 9 }
  to.add(
    {
      key: fullKey(index),
      holders: [{ workerId: parseWorkerId(workerId), ...holder }],
      allocation: { managerEpoch: 1, jobEpoch: 2, sequence: index },
      bufferSizeBytes: 1,
      codec: 'none',
      subpartitionCount: 10,
      isBroadcast: false,
      totalPartitions: 5,
    },
    facts(),
  )
}

const lost = (index: number): JobCommand => ({
  type: 'lost',
  groups: [{ dataSetId: 'd', ...encodeAttempts([key(index)]), workerId: 'w1', cause: 'gone' }],
})

test('a loss is told once, and dropped from the list until the manager has heard', () => {
  const one = job()
  add(one, 0)
  expect(one.take([lost(0)])).toEqual([{ key: fullKey(0), workerId: 'w1', cause: 'gone' }])
  expect(one.size).toBe(0)
  const beat = one.beat()
  expect(beat).toMatchObject({ sequence: 1, dropped: [{ partitionIndices: [0] }] })
  expect(one.beat()).toEqual(beat)
  one.beatTaken(beat)
  expect(one.hasChanges).toBe(false)
  expect(one.take([lost(0)])).toEqual([])
  expect(one.beat()).toMatchObject({ sequence: 2, dropped: [{ partitionIndices: [0] }] })
})

test('what is released while the list is under way is dropped after it too (simulation, seed 500351)', () => {
  const one = job()
  for (const index of [0, 1, 2]) add(one, index)
  one.beginReport()
  one.release(fullKey(0))
  one.reportTaken(1)
  const beat = one.beat()
  expect(beat).toMatchObject({ sequence: 1, dropped: [{ partitionIndices: [0] }] })
  one.beatTaken(beat)
  // By the call alone: the manager has no list that is older.
  one.release(fullKey(1))
  expect(one.hasChanges).toBe(false)
  // A list that did not arrive is made anew, without what was released meanwhile.
  one.beginReport()
  one.release(fullKey(2))
  expect(one.beginReport().groups).toEqual([])
  expect(one.hasChanges).toBe(false)
})

test('of what it is asked about it claims what is in its list or on its way there', () => {
  const one = job()
  add(one, 0)
  one.beginAllocating(fullKey(1))
  one.beginAllocating(fullKey(2))
  one.endAllocating(fullKey(2))
  one.take([{ type: 'asked', question: 4, dataSets: encodeKeys([key(0), key(1), key(2)]) }])
  const beat = one.beat()
  expect(beat).toMatchObject({ sequence: 1, answered: 4, claimed: [{ partitionIndices: [0, 1] }] })
  one.beatTaken(beat)
  expect(one.beat().answered).toBeUndefined()
})

test('a question with nothing to claim is answered all the same', () => {
  const one = job()
  one.take([{ type: 'asked', question: 4, dataSets: encodeKeys([key(0)]) }])
  expect(one.hasChanges).toBe(true)
  expect(one.beat()).toMatchObject({ answered: 4, sequence: 0 })
})

test('the list groups what is alike, and says of whose commit it knows', () => {
  const one = job()
  for (let index = 0; index < 3; index++) add(one, index)
  add(one, 3, 'w2')
  one.take([{ type: 'committed', news: 7, dataSets: encodeKeys([key(1), key(9)]) }])
  expect(one.beat().newsSeen).toBe(7)
  const { groups, dataSets, workers } = one.beginReport()
  expect(
    groups.map((group) => [
      group.workerId,
      group.isCommitted,
      group.partitionIndices,
      group.sequences,
    ]),
  ).toEqual([
    ['w1', false, [0, 2], [0, 2]],
    ['w1', true, [1], [1]],
    ['w2', false, [3], [3]],
  ])
  expect(dataSets).toEqual([facts()])
  expect(workers.map((worker) => worker.workerId)).toEqual(['w1', 'w2'])
})

test('a report tells what changes were to tell', () => {
  const one = job()
  add(one, 0)
  one.take([lost(0)])
  one.beat()
  one.beginReport()
  expect(one.hasChanges).toBe(false)
  expect(one.beat()).toEqual({ jobId, jobEpoch: 0, sequence: 0, newsSeen: 0 })
})

test('releases are taken in pieces, and come back when they failed', () => {
  const one = job()
  for (let index = 0; index < 3; index++) {
    add(one, index)
    one.release(fullKey(index))
  }
  expect(one.size).toBe(0)
  const first = one.takeReleases(2)
  expect(first).toEqual([fullKey(0), fullKey(1)])
  one.releaseFailed(first)
  expect(one.takeReleases(10)).toHaveLength(3)
  expect(one.hasReleases).toBe(false)
})

test('commands that it does not know are skipped, and reported once', () => {
  const one = job()
  one.take([{ type: 'from-the-future' } as unknown as JobCommand])
  expect(one.takeUnknownCommands()).toEqual(['from-the-future'])
  expect(one.takeUnknownCommands()).toEqual([])
})
