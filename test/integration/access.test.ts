// A cluster with a token: who knows it works, who does not is refused by name, on both planes.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { EmbeddedClient } from '../support/embedded-client.ts'
import { sluice, TestCluster } from '../support/cluster.ts'

const token = 'a shared secret of the tests'
let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start({ workers: 1, token })
})
afterAll(async () => {
  await cluster.stop()
})

it('works for a client that knows the token', async () => {
  await using client = await EmbeddedClient.start({ managerUrl: cluster.managerUrl, token })
  const descriptor = await client.allocate(0, 1)
  await client.write(descriptor, [['seen']])
  expect(await client.read([descriptor], { first: 0, last: 0 })).toEqual(['seen'])
})

it('refuses a master without the token, and one with a wrong token', async () => {
  for (const wrong of [{}, { token: 'another' }]) {
    await expect(
      EmbeddedClient.start({ managerUrl: cluster.managerUrl, jobId: 'refused', ...wrong }),
    ).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  }
})

it('refuses a task with a wrong token, or of another cluster, on the data plane', async () => {
  await using owner = await EmbeddedClient.start({
    managerUrl: cluster.managerUrl,
    token,
    jobId: 'owner',
  })
  const descriptor = await owner.allocate(0, 1)
  await owner.write(descriptor, [['secret']])
  const { shuffleServiceFactory } = await import('../../client/index.ts')
  for (const context of [
    { clusterId: 'sluice', token: 'another' },
    { clusterId: 'sluice' },
    { clusterId: 'elsewhere', token },
  ]) {
    const environment = shuffleServiceFactory.createShuffleEnvironment({
      managerUrl: cluster.managerUrl,
      ...context,
    })
    const gate = environment.createInputGate({
      inputs: [{ descriptor, firstSubpartition: 0, lastSubpartition: 0 }],
    })
    await expect(gate.nextBatch()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    await gate.close()
    await environment.close()
  }
})

it('answers health without a token, and nothing else but metrics', async () => {
  const open = ['/healthz', '/readyz', '/metrics']
  const closed = ['/v1/jobs', '/v1/workers', '/v1/cluster', '/v1/events']
  for (const path of open) {
    expect((await fetch(`${cluster.managerUrl}${path}`)).status, path).toBe(200)
    expect((await fetch(`${cluster.worker(0).httpUrl}${path}`)).status, path).toBe(200)
  }
  for (const path of closed) {
    const answer = await fetch(`${cluster.managerUrl}${path}`)
    expect(answer.status, path).toBe(401)
    expect(await answer.text()).toContain('UNAUTHENTICATED')
  }
})

it('lets the command in with the token file, and says what is wrong without', async () => {
  const file = `${cluster.directory}/token`
  const known = await sluice(['workers', '--manager', cluster.managerUrl, '--token-file', file])
  expect(known.code, known.stderr).toBe(0)
  const unknown = await sluice(['workers', '--manager', cluster.managerUrl])
  expect(unknown.code).not.toBe(0)
  expect(unknown.stderr).toMatch(/token-file/)
})
