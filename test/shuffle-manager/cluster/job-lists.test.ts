import { describe, expect, test } from 'vitest'
import { encodeKeys } from '../../../client/manager/key-columns.ts'
import type { WorkerRecord } from '../../../shuffle-manager/cluster/worker-registry.ts'
import { ClusterState, jobId, key, managerEpoch, reported } from '../../support/cluster-state.ts'

const at = (nowMs: number) => ({ nowMs, wallMs: 1000 + nowMs })

test('a new client gets an epoch above all that were seen, and keeps it', () => {
  const { cluster } = new ClusterState()
  const { jobLists } = cluster
  expect(jobLists.register(jobId, { clientId: 'a' }, at(0))).toBe(1000)
  expect(jobLists.register(jobId, { clientId: 'a' }, at(1))).toBe(1000)
  expect(jobLists.register(jobId, { clientId: 'a', jobEpoch: 1000 }, at(1))).toBe(1000)
  expect(jobLists.register(jobId, { clientId: 'b', takeOver: true }, at(2))).toBe(1002)
})

test('epochs of allocations that workers report count as seen', () => {
  const state = new ClusterState()
  state.register('w1', [reported([key(0)], 'committed', { jobEpoch: 50_000 })])
  expect(state.cluster.jobLists.register(jobId, { clientId: 'a' }, at(0))).toBe(50_001)
})

test('another living client holds the job, a silent or detached one does not', () => {
  const { cluster } = new ClusterState()
  const { jobLists } = cluster
  jobLists.register(jobId, { clientId: 'a' }, at(0))
  expect(() => jobLists.register(jobId, { clientId: 'b' }, at(100))).toThrow(/living client a/)
  expect(jobLists.register(jobId, { clientId: 'b' }, at(20_000))).toBe(21_000)
  cluster.job(jobId).state = 'detached'
  expect(jobLists.register(jobId, { clientId: 'c' }, at(20_001))).toBe(21_001)
})

test('the client that was taken over from is told so, also after the manager restarted', () => {
  const { jobLists } = new ClusterState().cluster
  jobLists.register(jobId, { clientId: 'a', jobEpoch: 5 }, at(0))
  jobLists.register(jobId, { clientId: 'b', jobEpoch: 6 }, at(0))
  expect(() => jobLists.held(jobId, 5)).toThrow(/took job job over/)
  expect(() => jobLists.register(jobId, { clientId: 'a', jobEpoch: 5 }, at(0))).toThrow(/took job/)
  expect(jobLists.held(jobId, 6).clientId).toBe('b')
})

test('a client with a higher epoch of an earlier manager, whose clock was ahead, was followed too', () => {
  const { cluster } = new ClusterState()
  const { jobLists } = cluster
  expect(jobLists.register(jobId, { clientId: 'later' }, at(0))).toBe(1000)
  const early = { clientId: 'early', jobEpoch: 50_000 }
  expect(() => jobLists.register(jobId, early, at(0))).toThrow(/took job job over/)
  expect(jobLists.held(jobId, 1000).clientId).toBe('later')
  expect(jobLists.register(jobId, { clientId: 'last', takeOver: true }, at(0))).toBe(1001)
})

test('a job that is not known asks to be registered', () => {
  const { jobLists } = new ClusterState().cluster
  expect(() => jobLists.held(jobId, 5)).toThrow(/register it again/)
})

test('before the list has come nothing is lost and nothing is asked about', () => {
  const state = new ClusterState()
  const worker = state.register('w1', [reported([key(0)], 'committed')])
  state.cluster.jobLists.register(jobId, { clientId: 'a' }, at(0))
  state.register('w1', [], { registration: 'again' })
  const job = state.cluster.job(jobId)
  expect([job.lost.size, job.unclaimed.size, worker.commands.isEmpty]).toEqual([0, 0, true])
})

test('listed, once committed and not reported by its worker is lost', () => {
  const state = new ClusterState()
  state.register('w1')
  state.registerJob()
  state.list([
    { key: key(0), worker: 'w1', isCommitted: true },
    { key: key(1), worker: 'w1', isCommitted: false },
    { key: key(2), worker: 'w2', isCommitted: true },
  ])
  expect([key(0), key(1), key(2)].map((one) => state.state(one))).toEqual([
    'lost',
    'allocated',
    'committed',
  ])
  state.register('w2', [reported([key(2)], 'committed')])
  expect(state.state(key(2))).toBe('committed')
})

test('what this manager allocated and has let go with its job is lost to a client that comes back with it', () => {
  const state = new ClusterState()
  const worker = state.register('w1')
  const job = state.registerJob()
  state.allocate([key(0), key(1)])
  state.tell(worker, [reported([key(0)], 'committed')])
  state.cluster.jobLists.end(job)
  state.tell(worker, [reported([key(0)], 'released')])
  state.cluster.jobLists.register(jobId, { clientId: 'client' }, at(0))
  state.list([key(0), key(1)].map((one) => ({ key: one, worker: 'w1', managerEpoch })))
  expect([state.state(key(0)), state.state(key(1))]).toEqual(['lost', 'lost'])
  expect(state.beat()).toMatchObject([{ groups: [{ cause: 'it was released' }] }])
})

test('reported and not listed is asked about', () => {
  const state = new ClusterState()
  state.register('w1', [reported([key(0), key(1)], 'committed')])
  state.registerJob()
  state.list([{ key: key(0), worker: 'w1' }])
  const commands = state.beat()
  expect(commands).toMatchObject([
    { type: 'asked', question: 1, dataSets: [{ partitionIndices: [1] }] },
    { type: 'committed', dataSets: [{ partitionIndices: [0] }] },
  ])
})

test('a page of the list out of order begins anew', () => {
  const state = new ClusterState()
  const job = state.registerJob()
  const page = (number: number, last = false) => {
    const body = {
      jobEpoch: 1,
      report: 'r',
      page: number,
      last,
      dataSets: [],
      workers: [],
      groups: [],
    }
    state.cluster.jobLists.report(job, body, 0)
  }
  page(0)
  page(1)
  page(1)
  expect(() => {
    page(3)
  }).toThrow(/begin again/)
  page(2, true)
  expect(() => {
    page(3)
  }).toThrow(/begin again/)
})

test('releases by filter take what is below the epoch, and spare what is named', async () => {
  const state = new ClusterState()
  state.register('w1', [
    reported([key(0), key(1)], 'committed', { jobEpoch: 5 }),
    reported([key(2)], 'committed', { jobEpoch: 9 }),
  ])
  const job = state.registerJob()
  const filter = { belowJobEpoch: 9, allBut: encodeKeys([key(1)]) }
  expect(state.cluster.jobLists.release(job, { filter })).toBe(1)
  expect(state.cluster.jobLists.release(job, { filter })).toBe(0)
  expect([key(0), key(1), key(2)].map((one) => state.state(one))).toEqual([
    'releasing',
    'committed',
    'committed',
  ])
  await state.clock.settle()
})

test('the end of a job releases everything and takes the record with the last partition', () => {
  const state = new ClusterState()
  const worker = state.register('w1', [reported([key(0), key(1)], 'committed')])
  const job = state.registerJob()
  expect(state.cluster.jobLists.end(job)).toBe(2)
  expect(() => state.cluster.jobLists.held(jobId, job.jobEpoch)).toThrow(/not registered/)
  state.tell(worker, [reported([key(2)], 'committed')])
  expect(state.commandsFor(worker)).toEqual(['release a_0', 'release a_1', 'release a_2'])
  state.tell(worker, [reported([key(0), key(1), key(2)], 'released')])
  expect(state.cluster.jobs.size).toBe(0)
})

describe('a client that a later one has followed, of which this manager has not heard', () => {
  const stored = [reported([key(0)], 'committed', { jobEpoch: 9 })]

  test('is told so when a worker has named an allocation of the later one', () => {
    const state = new ClusterState()
    state.register('w1', stored)
    const register = (clientId: string, jobEpoch: number) =>
      state.cluster.jobLists.register(jobId, { clientId, jobEpoch }, at(0))
    expect(() => register('old', 5)).toThrow(/took job/)
    expect(register('new', 9)).toBe(9)
  })

  test('holds the job until a worker does, and nothing of the later one is released', () => {
    const state = new ClusterState()
    const { jobLists } = state.cluster
    jobLists.register(jobId, { clientId: 'old', jobEpoch: 5 }, at(0))
    state.list([])
    const worker = state.register('w1', stored)
    expect(() => jobLists.held(jobId, 5)).toThrow(/register it again/)
    expect(() => jobLists.register(jobId, { clientId: 'old', jobEpoch: 5 }, at(0))).toThrow(
      /took job/,
    )
    jobLists.register(jobId, { clientId: 'new', jobEpoch: 9 }, at(0))
    state.list([{ key: key(0), worker: 'w1', isCommitted: true }])
    expect([state.state(key(0)), state.commandsFor(worker)]).toEqual(['committed', []])
    expect(state.beat()).toEqual([])
  })

  test('can not end the job either', async () => {
    const state = new ClusterState()
    const { jobLists } = state.cluster
    jobLists.register(jobId, { clientId: 'old', jobEpoch: 5 }, at(0))
    const early = state.register('w1', [reported([key(1)], 'committed', { jobEpoch: 5 })])
    jobLists.end(state.cluster.job(jobId))
    await state.clock.advance(100_000)
    const late = state.register('w2', stored)
    expect(state.cluster.job(jobId).heardMs).toBe(state.clock.nowMs())
    expect(state.commandsFor(early)).toEqual(['release a_1'])
    expect([state.state(key(0)), state.commandsFor(late)]).toEqual(['committed', []])
  })

  test('is not taken for one where the clock went back: an epoch given here is the latest', () => {
    const state = new ClusterState()
    state.registerJob()
    state.register('w1', [reported([key(0)], 'committed', { jobEpoch: 50_000 })])
    expect(state.beat()).toMatchObject([{ type: 'asked', dataSets: [{ partitionIndices: [0] }] }])
  })
})

describe('released by one client of the job and listed by the next', () => {
  function releasedAndListed(): { state: ClusterState; worker: WorkerRecord } {
    const state = new ClusterState()
    const worker = state.register('w1', [reported([key(0)], 'committed')])
    const { jobLists } = state.cluster
    jobLists.register(jobId, { clientId: 'a', jobEpoch: 5 }, at(0))
    state.list([{ key: key(0), worker: 'w1', isCommitted: true }])
    state.drop([key(0)])
    jobLists.register(jobId, { clientId: 'b', jobEpoch: 6 }, at(0))
    state.list([{ key: key(0), worker: 'w1', isCommitted: true }])
    return { state, worker }
  }

  test('is told as lost, before and after the worker has deleted it', () => {
    const { state, worker } = releasedAndListed()
    const lost = { type: 'lost', groups: [{ partitionIndices: [0], cause: 'it was released' }] }
    expect(state.beat()).toMatchObject([lost])
    expect(state.commandsFor(worker)).toEqual(['release a_0'])
    state.tell(worker, [reported([key(0)], 'released')])
    expect(state.beat()).toMatchObject([lost])
    state.drop([key(0)])
    expect(state.state(key(0))).toBe('gone')
  })

  test('is deleted all the same when the next client gives it up first', () => {
    const { state, worker } = releasedAndListed()
    state.drop([key(0)])
    expect([state.state(key(0)), state.commandsFor(worker)]).toEqual(['releasing', ['release a_0']])
    state.tell(worker, [reported([key(0)], 'released')])
    expect(state.state(key(0))).toBe('gone')
  })
})

test('a loss that the former client was told is told to the next one at once', () => {
  const state = new ClusterState()
  state.register('w1')
  state.registerJob()
  const listed = [{ key: key(0), worker: 'w1', isCommitted: true }]
  state.list(listed)
  expect(state.beat()).toMatchObject([{ type: 'lost' }])
  state.cluster.jobLists.register(jobId, { clientId: 'b', takeOver: true }, at(0))
  expect(state.cluster.job(jobId).hasSomethingToSay).toBe(false)
  state.list(listed)
  expect(state.cluster.job(jobId).hasSomethingToSay).toBe(true)
})
