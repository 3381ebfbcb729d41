import { expect, test } from 'vitest'
import { managerApp } from '../../support/manager-app.ts'

test('readiness says why not, until it is', async () => {
  const { call, state } = await managerApp()
  expect(await call('GET', '/healthz')).toMatchObject({ status: 200 })
  expect(await call('GET', '/readyz')).toMatchObject({
    status: 503,
    body: { reason: 'waits up to 5000 ms more for workers to come back' },
  })
  await state.clock.advance(5000)
  expect(await call('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ready' } })
})

test('health needs no token; metrics when the option says so; the document always', async () => {
  const { call } = await managerApp({ token: 't', metricsNeedToken: true })
  const statuses = await Promise.all(
    ['/healthz', '/readyz', '/metrics', '/openapi.json'].map(
      async (path) => (await call('GET', path)).status,
    ),
  )
  expect(statuses).toEqual([200, 503, 401, 401])
})

test('metrics are Prometheus text', async () => {
  const { call } = await managerApp()
  const { body, headers } = await call('GET', '/metrics')
  expect(headers['content-type']).toContain('text/plain')
  expect(body).toContain('# TYPE sluice_manager_jobs gauge')
})

test('metrics are those that the option allows', async () => {
  const { call } = await managerApp({ metricsAllow: ['sluice_manager_(jobs|epoch)'] })
  const text = String((await call('GET', '/metrics')).body)
  expect([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name).sort()).toEqual([
    'sluice_manager_epoch',
    'sluice_manager_jobs',
  ])
})
