import { expect, test } from 'vitest'
import { FakeSettings } from '../../support/fake-settings.ts'
import { managerApp } from '../../support/manager-app.ts'

test('the process says what it is, and what it does by which options', async () => {
  const { call } = await managerApp({ settings: new FakeSettings() })
  expect(await call('GET', '/v1/process')).toMatchObject({
    status: 200,
    body: {
      role: 'manager',
      version: 'test',
      logLevel: 'info',
      facts: { node: 'v20' },
      options: [{ name: 'port', value: '9700', source: 'default', isReloadable: false }],
      problems: [{ message: 'm' }],
    },
  })
})

test('its log level and its options are changed while it runs', async () => {
  const settings = new FakeSettings()
  const { call } = await managerApp({ settings })
  expect(await call('PUT', '/v1/process/log-level', { level: 'debug' })).toMatchObject({
    status: 200,
    body: { level: 'debug' },
  })
  expect(settings.logLevel).toBe('debug')
  expect((await call('PUT', '/v1/process/log-level', { level: 'loud' })).status).toBe(400)
  expect(await call('POST', '/v1/process/reload', {})).toMatchObject({
    status: 200,
    body: { changed: [{ name: 'log-level' }], needRestart: [] },
  })
})

test('one that is embedded says so', async () => {
  const { call } = await managerApp()
  expect(await call('POST', '/v1/process/reload', {})).toMatchObject({
    status: 400,
    body: { error: { code: 'INVALID_ARGUMENT' } },
  })
})

test('all of it asks for the token', async () => {
  const { call } = await managerApp({ settings: new FakeSettings(), token: 'secret' })
  for (const [method, url] of [
    ['GET', '/v1/process'],
    ['PUT', '/v1/process/log-level'],
    ['POST', '/v1/process/reload'],
  ] as const) {
    expect((await call(method, url, method === 'GET' ? undefined : {})).status).toBe(401)
  }
})
