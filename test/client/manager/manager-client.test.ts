import { expect, test } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'
import { parseClusterId } from '../../../client/common/ids.ts'
import { managerApi } from '../../../client/manager/api.ts'
import { ManagerClient } from '../../../client/manager/manager-client.ts'
import { jobId, key } from '../../support/cluster-state.ts'
import { HttpPeer } from '../../support/http-peer.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

const none = { params: {}, query: {}, body: undefined }

async function ready() {
  const world = new VirtualWorld({ seed: 6 })
  const peer = await HttpPeer.start(world, 'manager', 9700)
  const client = new ManagerClient({
    world: world.start('client'),
    logger: silentLogger,
    url: 'http://manager:9700',
    clusterId: parseClusterId('blue'),
    token: 'secret',
  })
  const listJobs = () => world.drive(client.call(managerApi.listJobs, none))
  return { world, peer, client, listJobs }
}

const errorBody = (code: string) => ({ error: { code, message: 'because', fields: { a: 1 } } })

test('a call names the cluster, shows the token, and the highest epoch that was seen', async () => {
  const { peer, client, listJobs } = await ready()
  peer.answer = () => ({ headers: { 'sluice-manager-epoch': '7' }, body: { jobs: [] } })
  expect(await listJobs()).toEqual({ jobs: [] })
  await listJobs()
  expect(client.managerEpoch).toBe(7)
  expect(peer.requests[0]?.headers).toMatchObject({
    'sluice-cluster': 'blue',
    authorization: 'Bearer secret',
  })
  expect(peer.requests.map((one) => one.headers['sluice-manager-epoch'])).toEqual([undefined, '7'])
})

test('a token that no header carries is refused as such, not as a manager that is away', () => {
  const world = new VirtualWorld({ seed: 6 }).start('client')
  const withToken = (token: string) => {
    const parts = { url: 'http://manager:9700', clusterId: parseClusterId('blue'), token }
    return new ManagerClient({ world, logger: silentLogger, ...parts })
  }
  for (const token of ['two\nlines', '€', 'bell\x07', '']) {
    expect(() => withToken(token)).toThrow(/one line of ASCII/)
  }
  expect(withToken('of 3 words').managerEpoch).toBe(0)
})

test('BUSY and NO_MANAGER are tried again with growing pauses, then surface', async () => {
  const { world, peer, listJobs } = await ready()
  peer.answer = () => ({ status: 503, body: errorBody('BUSY') })
  const startMs = world.clock.nowMs()
  await expect(listJobs()).rejects.toMatchObject({ code: 'BUSY', fields: { a: 1 } })
  expect(world.clock.nowMs() - startMs).toBeLessThanOrEqual(10_000)
  expect(world.clock.nowMs() - startMs).toBeGreaterThan(7_000)
  expect(peer.requests.length).toBeGreaterThan(5)
  expect(peer.requests.length).toBeLessThan(20)
})

test('a manager that comes back within the time answers the call', async () => {
  const { world, peer, client } = await ready()
  peer.process.kill()
  const answer = client.call(managerApi.listJobs, none)
  await world.clock.advance(4000)
  const next = await HttpPeer.start(world, 'manager', 9700)
  next.answer = () => ({ body: { jobs: [] } })
  expect(await world.drive(answer)).toEqual({ jobs: [] })
})

test('other errors surface at once, as what they are', async () => {
  const { peer, listJobs } = await ready()
  peer.answer = () => ({ status: 401, body: errorBody('UNAUTHENTICATED') })
  await expect(listJobs()).rejects.toMatchObject({ code: 'UNAUTHENTICATED', message: 'because' })
  expect(peer.requests).toHaveLength(1)
})

test('an answer that is none of a manager is PROTOCOL, a code it does not know too', async () => {
  const { peer, listJobs } = await ready()
  for (const answer of [
    { body: '<html>' },
    { status: 404, body: '<html>' },
    { status: 500, body: {} },
    { status: 404, body: 'null' },
    { status: 400, body: errorBody('FROM_THE_FUTURE') },
    { status: 400, body: errorBody('toString') },
  ]) {
    peer.answer = () => answer
    await expect(listJobs()).rejects.toMatchObject({ code: 'PROTOCOL' })
  }
})

test('a success of something else at the address is refused, and says what answered there', async () => {
  const { peer, listJobs } = await ready()
  const proxy = { 'content-type': 'text/html', server: 'portal' }
  for (const answer of [
    { headers: {}, body: { jobs: [] } },
    { headers: proxy, body: { ok: true } },
    { headers: { location: 'http://portal/' }, status: 302, body: '' },
    { body: 'null' },
    { body: [] },
    { body: {} },
    { body: '"fine"' },
    { body: { jobs: null } },
    { body: { jobs: {} } },
  ]) {
    peer.answer = () => answer
    const told = /GET \/v1\/jobs at http:\/\/manager:9700 is not a shuffle manager: status .*check/
    await expect(listJobs()).rejects.toMatchObject({
      code: 'PROTOCOL',
      message: expect.stringMatching(told) as string,
    })
  }
  peer.answer = () => ({ headers: proxy, body: {} })
  await expect(listJobs()).rejects.toMatchObject({
    message: expect.stringContaining('status 200, text/html, portal, without the header') as string,
    fields: { status: 200, server: 'portal' },
  })
})

test('what a newer manager adds to an answer is let through', async () => {
  const { peer, listJobs } = await ready()
  peer.answer = () => ({ body: { jobs: [{ state: 'of the future' }], more: 1 } })
  expect(await listJobs()).toEqual({ jobs: [{ state: 'of the future' }], more: 1 })
})

test('what a proxy says while the manager is away is tried again, as no manager', async () => {
  const { peer, listJobs } = await ready()
  const away = [
    { status: 503, body: 'upstream connect error' },
    { status: 502, body: '<html>' },
    { status: 504, body: {} },
  ]
  peer.answer = () => away.shift() ?? { body: { jobs: [] } }
  expect(await listJobs()).toEqual({ jobs: [] })
  expect(peer.requests).toHaveLength(4)
  peer.answer = () => ({ status: 503, body: '<html>' })
  await expect(listJobs()).rejects.toMatchObject({ code: 'NO_MANAGER', fields: { status: 503 } })
})

test('a manager of a lower epoch is not obeyed', async () => {
  const { peer, client, listJobs } = await ready()
  peer.answer = () => ({ headers: { 'sluice-manager-epoch': '9' }, body: { jobs: [] } })
  await listJobs()
  peer.answer = () => ({ headers: { 'sluice-manager-epoch': '8' }, body: { jobs: [] } })
  await expect(listJobs()).rejects.toMatchObject({ code: 'NO_MANAGER' })
  expect(client.managerEpoch).toBe(9)
})

test('a long poll may take its wait on top of the time-out', async () => {
  const { world, peer, client } = await ready()
  peer.answer = () => undefined
  const startMs = world.clock.nowMs()
  const poll = client.call(managerApi.listJobs, none, { waitMs: 5000, retryForMs: 0 })
  await expect(world.drive(poll)).rejects.toMatchObject({ code: 'NO_MANAGER' })
  expect(world.clock.nowMs() - startMs).toBe(15_000)
})

test('locations come back in the order of the keys, whatever their data sets', async () => {
  const { world, peer, client } = await ready()
  peer.answer = () => ({
    body: {
      workers: [
        { workerId: 'w1', host: 'h1', port: 1 },
        { workerId: 'w2', host: 'h2', port: 2 },
      ],
      holders: [0, -1, 1],
    },
  })
  const keys = [key(0, 'a', 'd1'), key(1, 'b', 'd2'), key(2, 'c', 'd1')]
  const located = await world.drive(
    client.locate(
      jobId,
      keys.map((one) => ({ jobId, ...one })),
    ),
  )
  // The call goes data set by data set: d1's two keys first.
  expect(located.map((one) => one?.workerId)).toEqual(['w1', 'w2', undefined])
  expect(await world.drive(client.locate(jobId, []))).toEqual([])
})

test('a description is decoded once while it does not change', async () => {
  const { world, peer, client } = await ready()
  const body = {
    version: 'v1',
    workers: [{ workerId: 'w1', host: 'h1', port: 1 }],
    groups: [
      {
        state: 'committed',
        attemptPrefix: 'a_',
        partitionIndices: [0],
        attempts: ['0'],
        holders: [0],
      },
    ],
  }
  peer.answer = ({ url }) => ({
    body: url.includes('knownVersion=v1') ? { version: 'v1', workers: [], groups: [] } : body,
  })
  const { dataSetId } = key(0)
  const first = await world.drive(client.describeDataSet(jobId, dataSetId))
  expect(first.partitions).toMatchObject([
    { partitionIndex: 0, attemptId: 'a_0', state: 'committed', holder: { workerId: 'w1' } },
  ])
  expect(await world.drive(client.describeDataSet(jobId, dataSetId))).toBe(first)
  expect(peer.requests).toHaveLength(2)
})

test('a description that contradicts itself is PROTOCOL', async () => {
  const { world, peer, client } = await ready()
  const columns = { attemptPrefix: 'a', partitionIndices: [0], attempts: ['0'], holders: [3] }
  peer.answer = () => ({
    body: { version: 'v', workers: [], groups: [{ state: 'committed', ...columns }] },
  })
  await expect(world.drive(client.describeDataSet(jobId, key(0).dataSetId))).rejects.toMatchObject({
    code: 'PROTOCOL',
  })
})

test('a report of failures is bounded, tried once, and never fails', async () => {
  const { world, peer, client } = await ready()
  const failure = { key: { jobId, ...key(0) }, workerId: 'w1' as never, code: 'BUSY' as const }
  const failures = Array.from({ length: 1500 }, () => failure)
  await world.drive(client.reportFailures(jobId, failures, { credit: 5 }))
  const body = JSON.parse(peer.requests[0]?.body ?? '') as { failures: unknown[] }
  expect(body.failures).toHaveLength(1000)
  peer.process.kill()
  const startMs = world.clock.nowMs()
  await world.drive(client.reportFailures(jobId, failures, {}))
  expect(world.clock.nowMs() - startMs).toBeLessThan(100)
})

test('close ends calls under way with CANCELLED, and is idempotent', async () => {
  const { world, peer, client } = await ready()
  peer.answer = () => undefined
  const call = client.call(managerApi.listJobs, none)
  void call.catch(() => undefined)
  await world.clock.advance(100)
  await world.drive(client.close())
  await world.drive(client.close())
  await expect(world.drive(call)).rejects.toMatchObject({ code: 'CANCELLED' })
  await world.clock.advance(10)
  expect(world.clock.eventCount).toBe(0)
})
