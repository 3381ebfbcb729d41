import { expect, test } from 'vitest'
import { encodeAttempts, encodeKeys } from '../../../client/manager/key-columns.ts'
import { facts, key, reported } from '../../support/cluster-state.ts'
import { managerApp, type ManagerApp } from '../../support/manager-app.ts'

async function ready(): Promise<ManagerApp & { readonly jobEpoch: number }> {
  const app = await managerApp()
  app.state.register('w1')
  app.state.register('w2')
  await app.state.clock.advance(6000)
  const { jobEpoch } = app.state.registerJob()
  return { ...app, jobEpoch }
}

const keys = (count: number) => Array.from({ length: count }, (_, index) => key(index))
const allocation = (jobEpoch: number, count: number) => ({
  jobEpoch,
  dataSet: facts(),
  ...encodeAttempts(keys(count)),
})

test('allocation waits for the manager to settle', async () => {
  const { call, state } = await managerApp()
  state.register('w1')
  const { jobEpoch } = state.registerJob()
  expect(
    await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 1)),
  ).toMatchObject({ status: 503, body: { error: { code: 'NO_MANAGER' } } })
})

test('allocation answers each worker once and columns in the order of the keys', async () => {
  const { call, jobEpoch } = await ready()
  const answer = await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 4))
  expect(answer.body).toMatchObject({
    managerEpoch: 1000,
    jobEpoch,
    workers: [
      { workerId: 'w1', host: 'w1.host', port: 9710 },
      { workerId: 'w2', host: 'w2.host', port: 9710 },
    ],
    holders: [0, 1, 0, 1],
  })
  const again = await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 4))
  expect(again.body).toEqual(answer.body)
})

test('columns of different lengths are refused', async () => {
  const { call, jobEpoch } = await ready()
  const body = { ...allocation(jobEpoch, 4), attempts: ['x'] }
  expect(await call('POST', '/v1/jobs/job/partitions/allocate', body)).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringMatching(/equally long/) as string } },
  })
})

test('calls about a job that is not held say what to do', async () => {
  const { call, jobEpoch } = await ready()
  for (const [epoch, code] of [
    [jobEpoch - 1, 'SUPERSEDED'],
    [jobEpoch + 1, 'JOB_UNKNOWN'],
  ] as const) {
    const body = { jobEpoch: epoch, keys: [] }
    const answer = await call('POST', '/v1/jobs/job/partitions/release', body)
    expect(answer.body).toMatchObject({ error: { code } })
  }
})

test('locating tells where partitions are now, in the order of the keys', async () => {
  const { call, jobEpoch, state } = await ready()
  await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 2))
  state.register('w2', [], { registration: 'moved', workerEpoch: 2 }).moveTo('elsewhere', 7)
  const dataSets = encodeKeys([key(1), key(5), key(0)])
  const answer = await call('POST', '/v1/jobs/job/partitions/locate', { dataSets })
  expect(answer.body).toEqual({
    workers: [
      { workerId: 'w2', host: 'elsewhere', port: 7 },
      { workerId: 'w1', host: 'w1.host', port: 9710 },
    ],
    holders: [0, -1, 1],
  })
})

test('what is lost, released or at a lost worker is nowhere', async () => {
  const { call, jobEpoch, state } = await ready()
  await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 3))
  state.drop([key(0)])
  state.cluster.workerLists.workerLost(state.cluster.workers.at(1), 'test')
  const answer = await call('POST', '/v1/jobs/job/partitions/locate', {
    dataSets: encodeKeys(keys(3)),
  })
  expect(answer.body).toMatchObject({ holders: [-1, -1, 0] })
})

test('a release without an epoch is for tools, and counts what it released', async () => {
  const { call, jobEpoch } = await ready()
  await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 3))
  const release = { keys: encodeKeys(keys(2)) }
  const path = '/v1/jobs/job/partitions/release'
  expect((await call('POST', path, release)).body).toEqual({ releasedCount: 2 })
  expect((await call('POST', path, release)).body).toEqual({ releasedCount: 0 })
  expect((await call('POST', path, { filter: { allBut: [] } })).body).toEqual({ releasedCount: 1 })
})

test('a filter that says nothing, or what this manager does not know, releases nothing', async () => {
  const { call, jobEpoch, state } = await ready()
  await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 1))
  for (const filter of [{}, { ofWorker: 'w1' }, { belowJobEpoch: jobEpoch + 1, ofWorker: 'w1' }]) {
    const answer = await call('POST', '/v1/jobs/job/partitions/release', { filter })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'INVALID_ARGUMENT' } } })
  }
  expect(state.state(key(0))).toBe('allocated')
})

test('partitions are listed in pages', async () => {
  const { call, jobEpoch, state } = await ready()
  await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 5))
  state.tell(state.cluster.workers.at(0), [reported([key(0)], 'committed')])
  const seen: string[] = []
  let next: string | undefined = '0'
  while (next !== undefined) {
    const answer = await call('GET', `/v1/jobs/job/partitions?limit=2&after=${next}`)
    const page = answer.body as {
      partitions: { attemptId: string; state: string; byteCount: number }[]
      next?: string
    }
    seen.push(
      ...page.partitions.map((one) => `${one.attemptId} ${one.state} ${String(one.byteCount)}`),
    )
    next = page.next
  }
  expect(seen).toEqual([
    'a_0 committed 100',
    ...[1, 2, 3, 4].map((index) => `a_${String(index)} allocated 0`),
  ])
})

test('a description is answered without content to one who has it', async () => {
  const { call, jobEpoch } = await ready()
  await call('POST', '/v1/jobs/job/partitions/allocate', allocation(jobEpoch, 5))
  const first = await call('GET', '/v1/jobs/job/data-sets/d')
  const { version, facts: told } = first.body as { version: string; facts: object }
  expect(told).toMatchObject({ totalPartitions: 1000, subpartitionCount: 10 })
  const second = await call('GET', `/v1/jobs/job/data-sets/d?knownVersion=${version}`)
  expect(second.body).toEqual({ version, workers: [], groups: [] })
})

test('a list that comes in pages counts with the last', async () => {
  const { call, jobEpoch, state } = await ready()
  state.tell(state.cluster.workers.at(0), [reported(keys(2), 'committed')])
  const page = (number: number, last: boolean, index: number) => ({
    jobEpoch,
    report: 'again',
    page: number,
    last,
    dataSets: [facts()],
    workers: [],
    groups: [
      {
        ...encodeAttempts([key(index)]),
        dataSetId: 'd',
        workerId: 'w1',
        managerEpoch: 900,
        jobEpoch: 1,
        isCommitted: true,
        sequences: [1],
      },
    ],
  })
  const path = '/v1/jobs/job/partitions/report'
  expect((await call('POST', path, page(0, false, 0))).status).toBe(200)
  expect((await call('POST', path, page(2, true, 1))).body).toMatchObject({
    error: { code: 'RESYNC' },
  })
  expect((await call('POST', path, page(1, true, 1))).status).toBe(200)
  const description = await call('GET', '/v1/jobs/job/data-sets/d')
  expect(description.body).toMatchObject({
    groups: [{ state: 'committed', partitionIndices: [0, 1] }],
  })
})
