import { expect, test } from 'vitest'
import { key, reported } from '../../support/cluster-state.ts'
import { managerApp } from '../../support/manager-app.ts'

test('jobs say how long they have been silent and when they will be released', async () => {
  const { call, state } = await managerApp()
  state.register('w1', [reported([key(0)], 'committed')])
  state.registerJob()
  await state.clock.advance(60_000)
  expect((await call('GET', '/v1/jobs')).body).toMatchObject({
    jobs: [
      {
        jobId: 'job',
        clientId: 'client',
        state: 'registered',
        committedCount: 1,
        byteCount: 100,
        silentMs: 60_000,
        releaseInMs: 540_000,
      },
    ],
  })
})

test('workers say state, place and directories', async () => {
  const { call, state } = await managerApp()
  state.register('w1', [reported([key(0)], 'committed')])
  await state.clock.advance(2000)
  expect((await call('GET', '/v1/workers')).body).toMatchObject({
    workers: [
      {
        workerId: 'w1',
        host: 'w1.host',
        port: 9710,
        state: 'alive',
        partitionCount: 1,
        byteCount: 100,
        silentMs: 2000,
        directories: [{ health: 'healthy' }],
      },
    ],
  })
})

test('the cluster in figures', async () => {
  const { call, state } = await managerApp()
  state.register('w1', [reported([key(0)], 'committed')])
  state.register('w2')
  expect((await call('GET', '/v1/cluster')).body).toMatchObject({
    clusterId: 'test',
    managerEpoch: 1000,
    isReady: false,
    workerCounts: { alive: 2 },
    jobCount: 1,
    partitionCount: 1,
    byteCount: 100,
    freeBytes: 200e9,
  })
})

test('the disks of a lost worker are no free space of the cluster', async () => {
  const { call, state } = await managerApp()
  state.register('w1')
  state.cluster.workerLists.workerLost(state.register('w2'), 'the worker is silent')
  expect((await call('GET', '/v1/cluster')).body).toMatchObject({
    workerCounts: { alive: 1, lost: 1 },
    freeBytes: 100e9,
  })
})

test('a manager that stops refuses calls: who polls would poll without pause', async () => {
  const { call, state } = await managerApp()
  state.register('w1')
  await state.clock.advance(6000)
  expect((await call('GET', '/readyz')).status).toBe(200)
  state.cluster.close()
  expect(await call('GET', '/v1/jobs')).toMatchObject({
    status: 503,
    body: { error: { code: 'NO_MANAGER', message: 'the shuffle manager is stopping' } },
  })
  expect(await call('GET', '/readyz')).toMatchObject({
    status: 503,
    body: { reason: 'it is stopping' },
  })
  expect((await call('GET', '/healthz')).status).toBe(200)
})

test('a page without entries can not be asked for: it would have no end', async () => {
  const { call, state } = await managerApp()
  state.registerJob()
  expect((await call('GET', '/v1/events?limit=0')).status).toBe(400)
  expect((await call('GET', '/v1/jobs/job/partitions?limit=0')).status).toBe(400)
  expect((await call('GET', '/v1/jobs/job/partitions?limit=1')).status).toBe(200)
})

test('events are told from where one has read', async () => {
  const { call, state } = await managerApp()
  for (const name of ['w1', 'w2', 'w3']) state.register(name)
  const first = await call('GET', '/v1/events?limit=2')
  expect(first.body).toMatchObject({ events: [{ number: 1 }, { number: 2 }], forgotten: 0 })
  const second = await call('GET', '/v1/events?after=2')
  expect(second.body).toMatchObject({ events: [{ number: 3, workerId: 'w3' }] })
  expect((await call('GET', '/v1/events?after=x')).status).toBe(400)
})
