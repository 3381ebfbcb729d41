import { describe, expect, it } from 'vitest'
import { createApp, HttpServer } from '../../../shuffle-worker/http/http-server.ts'
import { workerHttpParts } from './support/worker-http-parts.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

const bearer = { authorization: 'Bearer secret' }

describe('HTTP server of the worker', () => {
  it('is alive when it answers, and ready when nothing speaks against it', async () => {
    let reason: string | undefined = 'the disks are gone'
    const app = await createApp(workerHttpParts({ notReady: () => reason }))
    expect((await app.inject('/healthz')).statusCode).toBe(200)
    const notReady = await app.inject('/readyz')
    expect([notReady.statusCode, notReady.json()]).toEqual([
      503,
      { status: 'not ready', reason: 'the disks are gone' },
    ])
    reason = undefined
    expect((await app.inject('/readyz')).statusCode).toBe(200)
    await app.close()
  })

  it('shows metrics as Prometheus reads them, and pages as JSON', async () => {
    const app = await createApp(workerHttpParts())
    const metrics = await app.inject('/metrics')
    expect(metrics.headers['content-type']).toMatch(/^text\/plain/)
    expect(metrics.body).toContain('some_total 0')
    expect((await app.inject('/v1/status')).json()).toEqual({ workerId: 'worker-1' })
    expect((await app.inject('/v1/waiters')).json()).toEqual({ waiters: [] })
    await app.close()
  })

  it('shows the metrics that are allowed, asked at each scrape', async () => {
    let allowed: string[] = []
    const app = await createApp(workerHttpParts({ metricsAllow: () => allowed }))
    expect((await app.inject('/metrics')).body).toContain('some_total 0')
    allowed = ['other_.*']
    expect((await app.inject('/metrics')).body).toBe('')
    await app.close()
  })

  it('lists partitions page by page', async () => {
    const app = await createApp(workerHttpParts())
    const first = (await app.inject('/v1/partitions')).json<{ partitions: []; next?: number }>()
    expect([first.partitions.length, first.next]).toEqual([1000, 1000])
    const second = (await app.inject('/v1/partitions?from=1000')).json<typeof first>()
    expect([second.partitions.length, second.next]).toEqual([500, undefined])
    expect((await app.inject('/v1/partitions?from=-1')).statusCode).toBe(400)
    await app.close()
  })

  it('asks for the token on every page, on /metrics where told to, and never on probes', async () => {
    for (const metricsNeedToken of [false, true]) {
      const app = await createApp(workerHttpParts({ token: 'secret', metricsNeedToken }))
      for (const url of ['/v1/status', '/v1/waiters', '/v1/partitions']) {
        const refused = await app.inject(url)
        expect(refused.statusCode).toBe(401)
        expect(refused.json()).toMatchObject({ error: { code: 'UNAUTHENTICATED' } })
        const wrong = await app.inject({ url, headers: { authorization: 'Bearer wrong' } })
        expect(wrong.statusCode).toBe(401)
        expect((await app.inject({ url, headers: bearer })).statusCode).toBe(200)
      }
      expect((await app.inject('/metrics')).statusCode).toBe(metricsNeedToken ? 401 : 200)
      expect((await app.inject({ url: '/metrics', headers: bearer })).statusCode).toBe(200)
      expect((await app.inject('/healthz')).statusCode).toBe(200)
      expect((await app.inject('/readyz')).statusCode).toBe(200)
      await app.close()
    }
  })

  it('answers an unknown page with an error in JSON', async () => {
    const app = await createApp(workerHttpParts())
    const answer = await app.inject('/v1/jobs')
    const { error } = answer.json<{ error: { code: string; message: string } }>()
    expect([answer.statusCode, error.code]).toEqual([404, 'INVALID_ARGUMENT'])
    // Its address is easily taken for the manager's.
    expect(error.message).toMatch(/there is no GET \/v1\/jobs: this is .* of a shuffle worker/)
    await app.close()
  })

  it('answers an address that leads nowhere with an error of the same form', async () => {
    const app = await createApp(workerHttpParts())
    for (const [url, status] of [
      ['/v1/%zz', 400],
      [`/v1/status?${'a'.repeat(500)}=%zz`, 200],
    ] as const) {
      expect((await app.inject(url)).statusCode).toBe(status)
    }
    expect((await app.inject('/v1/%zz')).json()).toMatchObject({
      error: { code: 'INVALID_ARGUMENT' },
    })
    await app.close()
  })

  it('listens through the network seam and cuts what is open when it closes', async () => {
    const world = new VirtualWorld()
    const server = await world.clock.drive(
      HttpServer.listen(workerHttpParts(), {
        network: world.start('worker').network,
        address: { host: '0.0.0.0', port: 9711 },
      }),
    )
    expect(server.port).toBe(9711)
    const stream = await world.clock.drive(
      world.start('person').network.connectStream({ host: 'worker', port: 9711, timeoutMs: 1000 }),
    )
    let text = ''
    let isClosed = false
    stream.on('data', (bytes: Buffer) => (text += bytes.toString()))
    stream.on('close', () => (isClosed = true))
    stream.on('error', () => undefined)
    stream.write('GET /healthz HTTP/1.1\r\nhost: worker\r\n\r\n')
    await world.clock.runUntil(() => text.includes('alive'))
    await world.clock.drive(server.close())
    await world.clock.runUntil(() => isClosed)
  })
})
