import { expect, test } from 'vitest'
import type { ShuffleError } from '../../../client/common/errors.ts'
import {
  ClusterState,
  healthyDirectory,
  jobId,
  key,
  reported,
} from '../../support/cluster-state.ts'

async function ready(
  workers: readonly string[],
  options: ConstructorParameters<typeof ClusterState>[0] = {},
): Promise<ClusterState> {
  const state = new ClusterState(options)
  for (const name of workers) state.register(name)
  await state.clock.advance(6000)
  state.registerJob()
  return state
}

const keys = (count: number, from = 0) => Array.from({ length: count }, (_, i) => key(from + i))

function codeOf(call: () => unknown): string {
  try {
    call()
    return 'none'
  } catch (error) {
    return (error as ShuffleError).code
  }
}

test('the same key gets the same answer while it lives', async () => {
  const state = await ready(['w1', 'w2', 'w3'])
  const first = state.allocate(keys(9))
  expect(state.allocate(keys(9))).toEqual(first)
  expect(state.allocate(keys(9).reverse())).toEqual([...first].reverse())
  expect(state.cluster.job(jobId).partitionCount).toBe(9)
})

test('an allocation of an earlier epoch is answered with that epoch', async () => {
  const state = await ready(['w1'])
  state.list([{ key: key(0), worker: 'w1' }])
  const job = state.cluster.job(jobId)
  const answer = state.cluster.allocator.allocate(job, {
    jobEpoch: job.jobEpoch,
    dataSet: { dataSetId: 'd', totalPartitions: 5, subpartitionCount: 1, isBroadcast: false },
    attemptPrefix: 'a_',
    partitionIndices: [1, 0],
    attempts: ['1', '0'],
  })
  expect(answer.managerEpoch).toBe(1000)
  expect(answer.older).toEqual([{ position: 1, managerEpoch: 999, jobEpoch: 1 }])
})

test('a key that was released or lost is not given out again', async () => {
  const state = await ready(['w1'])
  state.allocate(keys(1))
  state.drop(keys(1))
  expect(codeOf(() => state.allocate(keys(1)))).toBe('STALE_ALLOCATION')
})

test('a key that was never opened moves when its worker is lost', async () => {
  const state = await ready(['w1'])
  expect(state.allocate(keys(1))).toEqual(['w1'])
  const lost = state.cluster.workers.at(0)
  state.cluster.workerLists.workerLost(lost, 'test')
  state.register('w2')
  expect(state.allocate(keys(1))).toEqual(['w2'])
})

test('an attempt after one that came to nothing goes to another worker', async () => {
  const state = await ready(['full', 'other'])
  const full = state.cluster.workers.at(0)
  const attempt = (number: number) => key(0, `a_${String(number)}`)
  expect(state.allocate([attempt(1)])).toEqual(['full'])
  state.drop([attempt(1)])
  state.tell(full, [reported([attempt(1)], 'released')])
  expect(state.cluster.job(jobId).tables.size).toBe(0)
  expect(state.allocate([attempt(2)])).toEqual(['other'])
  state.drop([attempt(2)])
  expect(state.allocate([attempt(3)])).toHaveLength(1)
})

test('where a partition was committed it may be produced again', async () => {
  const state = await ready(['first', 'other'])
  const first = state.cluster.workers.at(0)
  const attempt = (number: number) => key(0, `a_${String(number)}`)
  expect(state.allocate([attempt(1)])).toEqual(['first'])
  state.drop([attempt(1)])
  state.tell(first, [reported([attempt(1)], 'released')])
  expect(state.allocate([attempt(2)])).toEqual(['other'])
  state.tell(state.cluster.workers.at(1), [reported([attempt(2)], 'committed')])
  expect(state.cluster.job(jobId).failedPlaces.of(key(0).dataSetId, 0)).toEqual([])
})

test('a job past its limit of partitions is refused by name, others go on', async () => {
  const state = await ready(['w1'], { jobPartitionsMax: 10 })
  state.allocate(keys(10))
  expect(() => state.allocate(keys(1, 10))).toThrow(/job job has 10 partitions.*limit is 10/)
  expect(codeOf(() => state.allocate(keys(1, 10)))).toBe('LIMIT_EXCEEDED')
  expect(state.allocate(keys(10))).toHaveLength(10)
  state.drop(keys(1))
  expect(state.allocate(keys(1, 10))).toEqual(['w1'])
  expect(state.eventTypes()).toContain('allocation-refused')
})

test('a partition that is moved from a lost worker counts once against the limits', () => {
  const state = new ClusterState({ jobPartitionsMax: 2, jobMaxBytes: 1000 })
  const worker = state.register('w1')
  state.registerJob()
  state.allocate(keys(2), { expectedBytes: 500 })
  state.register('w2')
  state.cluster.workerLists.workerLost(worker, 'the worker is silent')
  expect(state.allocate(keys(2), { expectedBytes: 500 })).toEqual(['w2', 'w2'])
  expect(codeOf(() => state.allocate(keys(3)))).toBe('LIMIT_EXCEEDED')
})

test('a job past its limit of bytes is refused, expected ones counted', async () => {
  const state = await ready(['w1'], { jobMaxBytes: 1000 })
  state.allocate(keys(2), { expectedBytes: 400 })
  expect(codeOf(() => state.allocate(keys(1, 2), { expectedBytes: 400 }))).toBe('LIMIT_EXCEEDED')
  state.tell(state.cluster.workers.at(0), [reported(keys(2), 'committed')])
  expect(state.allocate(keys(1, 2), { expectedBytes: 400 })).toEqual(['w1'])
})

test('without a worker that fits it says what is short, and allocates nothing', async () => {
  const state = await ready([])
  expect(() => state.allocate(keys(3))).toThrow(/0 of 0 workers are alive/)
  expect(codeOf(() => state.allocate(keys(3)))).toBe('NO_WORKER')
  expect(state.cluster.job(jobId).partitionCount).toBe(0)
})

test('workers that drain, are silent, full or broken are not chosen', async () => {
  const state = await ready(['w1'])
  state.register('w2', [], { isDraining: true })
  state.register('w3', [], { directories: [{ ...healthyDirectory, health: 'suspect' }] })
  state.register('w4', [], { directories: [{ ...healthyDirectory, isFull: true }] })
  state.register('w5', [], { directories: [{ ...healthyDirectory, freeBytes: 1000 }] })
  state.register('w6').state = 'suspect'
  expect(new Set(state.allocate(keys(20)))).toEqual(new Set(['w1']))
})

test('an index that is not of the data set is refused', async () => {
  const state = await ready(['w1'])
  expect(codeOf(() => state.allocate([key(7)], { totalPartitions: 7 }))).toBe('INVALID_ARGUMENT')
})
