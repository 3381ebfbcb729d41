import { expect, test } from 'vitest'
import { managerApp, type ManagerApp } from '../../support/manager-app.ts'
import { jobId, key, reported } from '../../support/cluster-state.ts'

async function withJob(): Promise<ManagerApp & { readonly jobEpoch: number }> {
  const app = await managerApp()
  const { body } = await app.call('PUT', '/v1/jobs/job', { clientId: 'a' })
  const { jobEpoch } = body as { jobEpoch: number }
  const page = { jobEpoch, report: 'r', page: 0, last: true, dataSets: [], workers: [], groups: [] }
  await app.call('POST', '/v1/jobs/job/partitions/report', page)
  return { ...app, jobEpoch }
}

const beat = (jobEpoch: number, change = {}) => ({
  clientId: 'a',
  waitMs: 0,
  jobs: [{ jobId: 'job', jobEpoch, sequence: 0, newsSeen: 0, ...change }],
})

test('a registration answers the numbers that its client needs', async () => {
  const { call } = await managerApp()
  const answer = await call('PUT', '/v1/jobs/job', { clientId: 'a', tenant: 't' })
  expect(answer.body).toMatchObject({ heartbeatIntervalMs: 5000, jobTimeoutMs: 600_000 })
  expect(await call('PUT', '/v1/jobs/job', { clientId: 'b' })).toMatchObject({
    status: 409,
    body: { error: { code: 'JOB_ID_IN_USE', fields: { clientId: 'a' } } },
  })
  expect(await call('PUT', '/v1/jobs/job', { clientId: 'b', takeOver: true })).toMatchObject({
    status: 200,
  })
})

test('a heartbeat says of each job how it stands', async () => {
  const { call, jobEpoch } = await withJob()
  expect((await call('POST', '/v1/jobs/heartbeat', beat(jobEpoch))).body).toEqual({
    jobs: [{ jobId: 'job', status: 'ok', commands: [] }],
  })
  const statusOf = async (body: object) => {
    const answer = await call('POST', '/v1/jobs/heartbeat', body)
    return (answer.body as { jobs: { status: string }[] }).jobs[0]?.status
  }
  expect(await statusOf(beat(jobEpoch - 1))).toBe('superseded')
  expect(await statusOf(beat(jobEpoch + 1))).toBe('unknown')
  expect(await statusOf(beat(jobEpoch, { sequence: 5, dropped: [] }))).toBe('resync')
})

test('a heartbeat waits for something to say, and then says it at once', async () => {
  const { call, jobEpoch, state } = await withJob()
  const worker = state.register('w1')
  const answer = call('POST', '/v1/jobs/heartbeat', { ...beat(jobEpoch), waitMs: 5000 })
  await state.clock.advance(2000)
  state.tell(worker, [reported([key(0)], 'committed')])
  expect((await answer).body).toMatchObject({ jobs: [{ commands: [{ type: 'asked' }] }] })
  expect(state.clock.nowMs()).toBe(2000)
})

test('a heartbeat with nothing to say ends after its wait, bounded by a minute', async () => {
  const { call, jobEpoch, state } = await withJob()
  const answer = call('POST', '/v1/jobs/heartbeat', { ...beat(jobEpoch), waitMs: 10 ** 9 })
  await state.clock.advance(60_000)
  expect((await answer).body).toMatchObject({ jobs: [{ status: 'ok', commands: [] }] })
})

test('a client that is taken over from while it waits is told so', async () => {
  const { call, jobEpoch, state } = await withJob()
  const answer = call('POST', '/v1/jobs/heartbeat', { ...beat(jobEpoch), waitMs: 5000 })
  await state.clock.advance(100)
  await call('PUT', '/v1/jobs/job', { clientId: 'b', takeOver: true })
  await state.clock.advance(5000)
  expect((await answer).body).toMatchObject({ jobs: [{ status: 'superseded' }] })
})

test('a detached job is kept for as long as was asked, and no longer', async () => {
  const { call, jobEpoch, state } = await withJob()
  state.register('w1', [reported([key(0)], 'committed')])
  state.cluster.start()
  const answer = await call('POST', '/v1/jobs/job/detach', { jobEpoch, keepMs: 3_600_000 })
  expect(answer.body).toEqual({ keepMs: 3_600_000 })
  await state.clock.advance(3_590_000)
  expect((await call('GET', '/v1/jobs')).body).toMatchObject({ jobs: [{ state: 'detached' }] })
  await state.clock.advance(20_000)
  expect((await call('GET', '/v1/jobs')).body).toEqual({ jobs: [] })
  state.cluster.close()
})

test('a heartbeat that was late does not take a detachment back, a registration does', async () => {
  const { call, jobEpoch, state } = await withJob()
  const poll = call('POST', '/v1/jobs/heartbeat', { ...beat(jobEpoch), waitMs: 5000 })
  await call('POST', '/v1/jobs/job/detach', { jobEpoch, keepMs: 3_600_000 })
  await state.clock.advance(5000)
  for (const answer of [await poll, await call('POST', '/v1/jobs/heartbeat', beat(jobEpoch))]) {
    expect(answer.body).toEqual({ jobs: [{ jobId: 'job', status: 'unknown', commands: [] }] })
  }
  const job = state.cluster.job(jobId)
  expect([job.state, job.keepMs]).toEqual(['detached', 3_600_000])
  await call('PUT', '/v1/jobs/job', { clientId: 'a', jobEpoch })
  expect([job.state, job.keepMs]).toEqual(['registered', 600_000])
  await call('POST', '/v1/jobs/job/detach', { jobEpoch })
  await call('POST', '/v1/jobs/heartbeat', beat(jobEpoch))
  expect((await call('PUT', '/v1/jobs/job', { clientId: 'later' })).status).toBe(200)
})

test('deleting a job is idempotent, and not for those who lost it', async () => {
  const { call, jobEpoch, state } = await withJob()
  state.register('w1', [reported([key(0), key(1)], 'committed')])
  expect(await call('DELETE', `/v1/jobs/job?jobEpoch=${String(jobEpoch - 1)}`)).toMatchObject({
    status: 409,
  })
  expect((await call('DELETE', '/v1/jobs/job')).body).toEqual({ releasedCount: 2 })
  expect((await call('DELETE', '/v1/jobs/job')).body).toEqual({ releasedCount: 0 })
  expect((await call('DELETE', '/v1/jobs/nobody')).body).toEqual({ releasedCount: 0 })
})

test('a job that nobody has registered here is not ended by a client that was followed by another', async () => {
  const { call, state } = await managerApp()
  state.register('w1', [reported([key(0)], 'committed', { jobEpoch: 500 })])
  const remove = (jobEpoch: number) => call('DELETE', `/v1/jobs/job?jobEpoch=${String(jobEpoch)}`)
  expect(await remove(499)).toMatchObject({ body: { error: { code: 'SUPERSEDED' } } })
  expect(state.state(key(0))).toBe('committed')
  expect((await remove(500)).body).toEqual({ releasedCount: 1 })
})

test("clients' reports become events and counters, and their sums the job's", async () => {
  const { call, state, registry } = await withJob()
  const failure = {
    dataSetId: 'd',
    partitionIndex: 3,
    attemptId: 'a_3',
    workerId: 'w1',
    code: 'DATA_CORRUPT',
  }
  const unknown = { ...failure, code: 'OF_A_LATER_VERSION' }
  const inherited = { ...failure, code: 'toString' }
  const body = { failures: [failure, unknown, inherited], timeInStateMs: { credit: 12.5 } }
  expect((await call('POST', '/v1/jobs/job/reports', body)).status).toBe(200)
  await call('POST', '/v1/jobs/job/reports', { failures: [], timeInStateMs: { credit: 1 } })
  expect((await call('GET', '/v1/events')).body).toMatchObject({
    events: [
      { type: 'job-registered' },
      { type: 'client-report', jobId: 'job', ...failure },
      { type: 'client-report', jobId: 'job', ...unknown },
      { type: 'client-report', jobId: 'job', ...inherited },
    ],
  })
  const text = await registry.metrics()
  expect(text).toContain('sluice_manager_client_reports_total{code="DATA_CORRUPT"} 1')
  expect(text).not.toMatch(/OF_A_LATER_VERSION|toString/)
  expect((await call('GET', '/v1/jobs')).body).toMatchObject({
    jobs: [{ timeInStateMs: { credit: 13.5 } }],
  })
  expect(state.cluster.jobs.size).toBe(1)
})
