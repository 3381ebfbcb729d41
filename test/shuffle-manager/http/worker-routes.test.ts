import { expect, test } from 'vitest'
import { parseJobId } from '../../../client/common/ids.ts'
import { healthyDirectory, key, reported } from '../../support/cluster-state.ts'
import { managerApp, type ManagerApp } from '../../support/manager-app.ts'

const registration = (change = {}) => ({
  workerEpoch: 1,
  registration: 'r1',
  page: 0,
  last: true,
  host: 'h',
  port: 9710,
  version: 'v',
  isDraining: false,
  directories: [healthyDirectory],
  groups: [],
  ...change,
})
const beat = (change = {}) => ({
  workerEpoch: 1,
  registration: 'r1',
  waitMs: 0,
  sequence: 0,
  commandsSeen: 0,
  ...change,
})
const path = '/v1/workers/w1/heartbeat'

async function registered(): Promise<ManagerApp> {
  const app = await managerApp()
  await app.call('PUT', '/v1/workers/w1', registration())
  return app
}

test('a worker that is not known is asked for its list', async () => {
  const { call } = await managerApp()
  expect((await call('POST', path, beat())).body).toMatchObject({ resync: true })
})

test('a registration answers how often to be heard of', async () => {
  const { call } = await managerApp()
  const answer = await call('PUT', '/v1/workers/w1', registration())
  expect(answer.body).toEqual({ heartbeatIntervalMs: 5000 })
  expect((await call('POST', path, beat())).body).toMatchObject({ resync: false, commands: [] })
})

test('a poll waits for a command and is answered with it at once', async () => {
  const { call, state } = await registered()
  state.registerJob()
  await call('POST', path, beat({ sequence: 1, delta: [reported([key(0)], 'committed')] }))
  state.beat()
  const poll = call('POST', path, beat({ waitMs: 5000, sequence: 1 }))
  await state.clock.advance(1000)
  state.beat({ answered: 1 })
  expect((await poll).body).toMatchObject({
    commandsNumber: 1,
    commands: [{ type: 'release', jobs: [{ jobId: 'job' }] }],
  })
})

test('a delta ends the poll of the same worker', async () => {
  const { call, state } = await registered()
  const poll = call('POST', path, beat({ waitMs: 5000 }))
  await state.clock.advance(10)
  await call('POST', path, beat({ sequence: 1, delta: [] }))
  expect((await poll).body).toMatchObject({ resync: false, commands: [] })
  expect(state.cluster.polls.waitingCount).toBe(0)
})

test('a poll that a new registration overtakes is told to begin anew', async () => {
  const { call, state } = await registered()
  const poll = call('POST', path, beat({ waitMs: 5000 }))
  await state.clock.advance(10)
  await call('PUT', '/v1/workers/w1', registration({ registration: 'r2' }))
  await state.clock.advance(5000)
  expect((await poll).body).toMatchObject({ resync: true })
})

test('a gap in the deltas asks for the list', async () => {
  const { call } = await registered()
  expect((await call('POST', path, beat({ sequence: 2, delta: [] }))).body).toMatchObject({
    resync: true,
  })
})

test('time-in-state sums of a worker are added to the jobs that are known', async () => {
  const { call, state } = await registered()
  const job = state.registerJob()
  await call('POST', path, beat({ timeInStateMs: { job: { disk: 5 }, other: { disk: 9 } } }))
  expect([...job.timeInStateMs]).toEqual([['disk', 5]])
})

test('a job may have a name that objects give a meaning', async () => {
  const { app, state, call } = await managerApp()
  const worker = state.register('w1')
  for (const jobId of ['__proto__', 'constructor']) {
    await call('PUT', `/v1/jobs/${jobId}`, { clientId: 'a' })
    const beat = { workerEpoch: 1, registration: worker.registration, sequence: 0, waitMs: 0 }
    const timeInStateMs = { [jobId]: { ['__proto__']: 5, prototype: 1 } }
    const { statusCode } = await app.inject({
      method: 'POST',
      url: '/v1/workers/w1/heartbeat',
      payload: { ...beat, commandsSeen: 0, timeInStateMs },
    })
    expect(statusCode).toBe(200)
    const job = state.cluster.job(parseJobId(jobId))
    expect([...job.timeInStateMs]).toEqual([
      ['__proto__', 5],
      ['prototype', 1],
    ])
  }
})
