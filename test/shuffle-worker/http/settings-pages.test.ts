import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'
import { createApp } from '../../../shuffle-worker/http/http-server.ts'
import type { SettingsPages } from '../../../shuffle-worker/http/settings-pages.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'
import { FakeSettings } from '../../support/fake-settings.ts'

const bearer = { authorization: 'Bearer secret' }

function appWith(settings: SettingsPages['settings'], token?: string) {
  return createApp({
    clock: new VirtualClock(),
    registry: new Registry(),
    logger: silentLogger,
    token,
    metricsNeedToken: false,
    metricsAllow: () => [],
    process: { version: 'test', wallMs: () => 5, settings, facts: () => ({ node: 'v20' }) },
    notReady: () => undefined,
    status: () => ({}),
    waiters: () => [],
    partitions: () => [],
  })
}

test('a worker says what it is, and is changed while it runs', async () => {
  const settings = new FakeSettings()
  const app = await appWith(settings, 'secret')
  const process = await app.inject({ url: '/v1/process', headers: bearer })
  expect(process.json()).toMatchObject({
    role: 'worker',
    version: 'test',
    wallMs: 5,
    facts: { node: 'v20' },
    options: [{ name: 'port' }],
    problems: [{ message: 'm' }],
  })
  const put = { method: 'PUT', url: '/v1/process/log-level', headers: bearer } as const
  expect((await app.inject({ ...put, payload: { level: 'warn' } })).json()).toEqual({
    level: 'warn',
  })
  expect(settings.logLevel).toBe('warn')
  for (const payload of [{ level: 'loud' }, {}, []]) {
    expect((await app.inject({ ...put, payload })).statusCode).toBe(400)
  }
  const post = { method: 'POST', url: '/v1/process/reload', headers: bearer, payload: {} } as const
  expect((await app.inject(post)).json()).toMatchObject({ changed: [{ name: 'log-level' }] })
  await app.close()
})

test('all of it asks for the token', async () => {
  const app = await appWith(new FakeSettings(), 'secret')
  for (const [method, url] of [
    ['GET', '/v1/process'],
    ['PUT', '/v1/process/log-level'],
    ['POST', '/v1/process/reload'],
  ] as const) {
    expect((await app.inject({ method, url })).statusCode).toBe(401)
  }
  await app.close()
})

test('one that is embedded says so', async () => {
  const app = await appWith(undefined)
  expect((await app.inject('/v1/process')).json()).toMatchObject({
    error: { code: 'INVALID_ARGUMENT' },
  })
  await app.close()
})
