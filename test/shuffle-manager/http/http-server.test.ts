import { expect, test } from 'vitest'
import { managerApi } from '../../../client/manager/api.ts'
import type { LogFields, Logger } from '../../../client/common/log.ts'
import { silentLogger } from '../../../client/common/log.ts'
import { ControlPlane } from '../../support/control-plane.ts'
import { managerApp } from '../../support/manager-app.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

test('every answer carries the epoch of the manager, errors too', async () => {
  const { call } = await managerApp({ token: 'secret' })
  const refused = await call('GET', '/v1/jobs')
  expect(refused.status).toBe(401)
  expect(refused.headers['sluice-manager-epoch']).toBe('1000')
  const answered = await call('GET', '/v1/jobs', undefined, { authorization: 'Bearer secret' })
  expect(answered).toMatchObject({ status: 200, body: { jobs: [] } })
  expect(answered.headers['sluice-manager-epoch']).toBe('1000')
})

test('a caller that has seen a higher epoch makes the manager step back', async () => {
  const { call, state } = await managerApp()
  await call('GET', '/v1/jobs', undefined, { 'sluice-manager-epoch': '2000' })
  expect(state.cluster.unreadyReason).toMatch(/higher epoch 2000/)
})

test('an absurd epoch is refused, and one on an open page is not looked at', async () => {
  const { call, state } = await managerApp()
  await state.clock.advance(6000)
  const absurd = { 'sluice-manager-epoch': String(Number.MAX_SAFE_INTEGER) }
  expect(await call('GET', '/v1/jobs', undefined, absurd)).toMatchObject({
    status: 400,
    body: { error: { code: 'INVALID_ARGUMENT' } },
  })
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    expect((await call('GET', path, undefined, { 'sluice-manager-epoch': '2000' })).status).toBe(
      200,
    )
  }
  expect(state.cluster.unreadyReason).toBeUndefined()
})

test('a body past the limit is refused with what to do', async () => {
  const { call } = await managerApp()
  const answer = await call('PUT', '/v1/jobs/j', { clientId: 'x'.repeat(4 * 1024 * 1024) })
  expect(answer).toMatchObject({ status: 413, body: { error: { code: 'LIMIT_EXCEEDED' } } })
})

test('what is not of the contract is refused: unknown calls, kinds, ids, broken JSON', async () => {
  const { call, app } = await managerApp()
  expect(await call('GET', '/v1/nothing')).toMatchObject({
    status: 404,
    body: {
      error: { code: 'INVALID_ARGUMENT', message: expect.stringMatching(/openapi.json/) as string },
    },
  })
  for (const body of [{}, { clientId: 5 }, { clientId: 'a b' }, { clientId: 'a', jobEpoch: -1 }]) {
    const answer = await call('PUT', '/v1/jobs/j', body)
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'INVALID_ARGUMENT' } } })
  }
  const broken = await app.inject({
    method: 'PUT',
    url: '/v1/jobs/j',
    headers: { 'content-type': 'application/json' },
    payload: '{"clientId":',
  })
  expect(broken.statusCode).toBe(400)
})

test('an address that leads nowhere is refused in the form of the contract too', async () => {
  const { call, registry } = await managerApp()
  for (const url of ['/v1/jobs/%zz', '/%', `/v1/jobs/${'a'.repeat(500)}/partitions`]) {
    expect(await call('GET', url)).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_ARGUMENT', fields: {} } },
      headers: { 'sluice-manager-epoch': '1000', 'sluice-cluster': 'test' },
    })
  }
  const text = await registry.metrics()
  expect(text).toContain('sluice_manager_errors_total{code="INVALID_ARGUMENT"} 3')
})

test('what is no request is refused in the form of the contract', async () => {
  const world = new VirtualWorld({ seed: 9 })
  await ControlPlane.start(world, 0)
  const { network } = world.start('person')
  const address = { host: 'manager', port: 9700, timeoutMs: 1000 }
  const stream = await world.drive(network.connectStream(address))
  let text = ''
  stream.on('data', (bytes: Buffer) => (text += bytes.toString()))
  stream.on('error', () => undefined)
  stream.write('HELO manager\r\n\r\n')
  await world.clock.runUntil(() => text.includes('}}'))
  expect(text).toMatch(/^HTTP\/1.1 400 .*"code":"INVALID_ARGUMENT"/s)
})

test('fields that a newer peer may add are let be', async () => {
  const { call } = await managerApp()
  expect((await call('PUT', '/v1/jobs/j', { clientId: 'a', novelty: { x: 1 } })).status).toBe(200)
})

test('all calls of the contract are in the OpenAPI document, with a summary', async () => {
  const { call } = await managerApp()
  const { body } = await call('GET', '/openapi.json')
  const { paths } = body as { paths: Record<string, Record<string, { summary?: string }>> }
  for (const [name, route] of Object.entries(managerApi)) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    const operation = paths[path]?.[route.method.toLowerCase()]
    expect(operation, name).toMatchObject({ operationId: name, summary: route.about })
  }
})

test('calls are counted by name, status and code', async () => {
  const { call, registry } = await managerApp()
  await call('GET', '/v1/jobs')
  await call('GET', '/v1/jobs/nobody/partitions')
  const text = await registry.metrics()
  expect(text).toContain('sluice_manager_http_requests_total{call="listJobs",status="200"} 1')
  expect(text).toContain('sluice_manager_http_requests_total{call="listPartitions",status="404"} 1')
  expect(text).toContain('sluice_manager_errors_total{code="JOB_UNKNOWN"} 1')
})

test('a failure of the manager is logged and answered without its insides', async () => {
  const logged: LogFields[] = []
  const logger: Logger = { ...silentLogger, error: (fields) => logged.push(fields) }
  const { call, state } = await managerApp({ logger })
  state.cluster.jobs.all = () => {
    throw new Error('a fault of ours')
  }
  const answer = await call('GET', '/v1/jobs')
  expect(answer).toMatchObject({ status: 500, body: { error: { code: 'NO_MANAGER' } } })
  expect(logged).toMatchObject([{ error: 'Error: a fault of ours' }])
})

test('a stop answers what waits, closes every connection and frees the port', async () => {
  const world = new VirtualWorld({ seed: 9 })
  const plane = await ControlPlane.start(world, 1)
  const { manager } = plane
  expect(world.network.links.length).toBeGreaterThan(0)
  await world.drive(manager?.stop() ?? Promise.resolve())
  await world.drive(manager?.stop() ?? Promise.resolve())
  plane.worker('w1').kill()
  await world.clock.advance(100)
  expect(world.network.links).toEqual([])
  await plane.startManager()
})

test('connections past the limit are refused, and others go on', async () => {
  const world = new VirtualWorld({ seed: 9 })
  const plane = await ControlPlane.start(world, 1, { connectionsMax: 16 })
  const { network } = world.start('crowd')
  const address = { host: 'manager', port: 9700, timeoutMs: 1000 }
  for (let count = 0; count < 40; count++) {
    // Only one that reads learns that it was refused.
    const stream = await world.drive(network.connectStream(address))
    stream.resume()
  }
  await world.clock.advance(1000)
  expect(world.network.links.length).toBeLessThanOrEqual(16)
  await world.clock.advance(60_000)
  expect(plane.worker('w1').control?.isRegistered).toBe(true)
})

test('a port that is taken stops the start, and leaves the directory free', async () => {
  const world = new VirtualWorld({ seed: 9 })
  const plane = new ControlPlane(world)
  const other = world.start('manager')
  const listener = await world.drive(
    other.network.listenStreams({ host: '0.0.0.0', port: 9700 }, () => undefined),
  )
  await expect(plane.startManager()).rejects.toThrow(/0\.0\.0\.0:9700 is in use.*--port/)
  await world.drive(listener.close())
  await plane.startManager()
})
