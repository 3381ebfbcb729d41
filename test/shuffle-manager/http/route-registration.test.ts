import { expect, test } from 'vitest'
import { numberOf } from '../../../shuffle-manager/http/route-registration.ts'
import { managerApp } from '../../support/manager-app.ts'

test("a query's number, or what stands in for it", () => {
  expect(numberOf('12', 5)).toBe(12)
  expect(numberOf(undefined, 5)).toBe(5)
})

test('an answer that is JSON already is sent as it is', async () => {
  const { call } = await managerApp()
  await call('PUT', '/v1/jobs/j', { clientId: 'a' })
  const answer = await call('GET', '/v1/jobs/j/data-sets/d')
  expect(answer.headers['content-type']).toContain('application/json')
  expect(answer.body).toMatchObject({ workers: [], groups: [] })
})

test('ids with characters that a path must escape come out as they went in', async () => {
  const { call, state } = await managerApp()
  const answer = await call('PUT', `/v1/jobs/${encodeURIComponent('app/one?x=1&#%')}`, {
    clientId: 'a',
  })
  expect(answer.status).toBe(200)
  expect([...state.cluster.jobs.all()].map((job) => job.jobId)).toEqual(['app/one?x=1&#%'])
})
