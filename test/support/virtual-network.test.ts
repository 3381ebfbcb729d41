import { createServer } from 'node:http'
import fastify from 'fastify'
import { Client } from 'undici'
import { describe, expect, test } from 'vitest'
import type { Connection } from '../../client/common/network.ts'
import { collect, patternBytes } from './connection-probe.ts'
import { deferred } from './deferred.ts'
import { describeNetwork } from './network-contract.ts'
import type { Chunking } from './virtual-pipe.ts'
import { VirtualWorld } from './virtual-world.ts'

const chunkings: readonly Chunking[] = ['whole', 'random', { maxBytes: 5000 }]

for (const chunking of chunkings) {
  describe(`the virtual network cut ${JSON.stringify(chunking)}`, () => {
    describeNetwork(() => {
      const world = new VirtualWorld({ seed: 5, network: { chunking } })
      return { network: world.main.network, drive: (promise) => world.drive(promise) }
    })
  })
}

/** A client on one machine connected to a server on another. */
async function connectedPair(world: VirtualWorld) {
  const server = world.start('server')
  const client = world.start('client')
  const accepted = deferred<Connection>()
  await world.drive(server.network.listen({ host: 'server', port: 9710 }, accepted.resolve))
  const near = await world.drive(
    client.network.connect({ host: 'server', port: 9710, timeoutMs: 5000 }),
  )
  const far = await world.drive(accepted.promise)
  const link = world.network.links[0]
  if (link === undefined) throw new Error('no link')
  return { server, client, near, far, link, atNear: collect(near), atFar: collect(far) }
}

test('a stream can be cut byte by byte', async () => {
  const world = new VirtualWorld({ network: { chunking: 'byte' } })
  const { near, atFar } = await connectedPair(world)
  near.write([Buffer.from('hello '), Buffer.from('world')])
  await world.drive(atFar.received(11))
  expect(atFar.reads()).toBe(11)
  expect(atFar.bytes().toString()).toBe('hello world')
})

test('what a process takes after it was killed, in the rest of its turn, is free for the next one', async () => {
  const world = new VirtualWorld()
  const killed = world.start('server')
  const next = world.start('server')
  const address = { host: 'server', port: 9710 }
  killed.kill()
  void killed.network.listen(address, () => undefined)
  void killed.disk.lock('/')
  await world.clock.advance(1000)
  expect(await world.drive(next.network.listen(address, () => undefined))).toBeDefined()
  expect(await world.drive(next.disk.lock('/'))).toBeDefined()
})

test('memory given back before onWritten shows as wrong bytes', async () => {
  const world = new VirtualWorld()
  const { near, atFar } = await connectedPair(world)
  const bytes = Buffer.from('precious')
  near.write([bytes])
  bytes.fill('x')
  await world.drive(atFar.received(8))
  expect(atFar.bytes().toString()).toBe('xxxxxxxx')
})

test('a reader that keeps its view finds other bytes there', async () => {
  const world = new VirtualWorld()
  const { near, server } = await connectedPair(world)
  near.destroy()
  const accepted = deferred<Connection>()
  await world.drive(server.network.listen({ host: 'server', port: 1 }, accepted.resolve))
  const dial = world.start('other').network.connect({ host: 'server', port: 1, timeoutMs: 5000 })
  const other = await world.drive(dial)
  const kept = deferred<Uint8Array>()
  const far = await world.drive(accepted.promise)
  far.start({ onBytes: kept.resolve, onDrain: () => undefined, onClose: () => undefined })
  other.write([Buffer.from('a')])
  expect((await world.drive(kept.promise))[0]).toBe(0xdb)
})

test('a cut link is a reset for both ends', async () => {
  const world = new VirtualWorld()
  const { near, link, atNear, atFar } = await connectedPair(world)
  const written = deferred<Error | undefined>()
  near.write([patternBytes(1 << 20, 1)], written.resolve)
  link.cut()
  expect(await world.drive(written.promise)).toMatchObject({ code: 'ECONNRESET' })
  expect(await world.drive(atNear.closed)).toMatchObject({ code: 'ECONNRESET' })
  expect(await world.drive(atFar.closed)).toMatchObject({ code: 'ECONNRESET' })
  expect(world.network.links).toEqual([])
})

test('a link can be cut after any byte', async () => {
  for (const byteCount of [0, 1, 50, 99]) {
    const world = new VirtualWorld({ seed: byteCount })
    const { near, link, atNear, atFar } = await connectedPair(world)
    link.cutAfter('client', byteCount)
    near.write([patternBytes(100, 1)])
    expect(await world.drive(atFar.closed)).toMatchObject({ code: 'ECONNRESET' })
    expect(await world.drive(atNear.closed)).toMatchObject({ code: 'ECONNRESET' })
    expect(atFar.bytes().byteLength).toBe(byteCount)
  }
})

test('a silent link tells nobody, and delivers everything when it is heard again', async () => {
  const world = new VirtualWorld()
  const { near, link, atNear, atFar } = await connectedPair(world)
  link.silence()
  near.write([Buffer.from('into the void')])
  await world.clock.advance(600_000)
  expect(atFar.bytes().byteLength).toBe(0)
  link.silence(false)
  await world.drive(atFar.received(13))
  link.silence()
  near.destroy()
  await world.drive(atNear.closed)
  await world.clock.advance(600_000)
  link.silence(false)
  expect(await world.drive(atFar.closed)).toBeUndefined()
})

test('a killed process is heard no more and its peers see the connection end', async () => {
  const world = new VirtualWorld()
  const { server, near, atNear, atFar } = await connectedPair(world)
  let timerRan = false
  server.clock.setTimer(1, () => {
    timerRan = true
  })
  server.kill()
  near.write([Buffer.from('anyone there?')])
  await world.drive(atNear.closed)
  await world.clock.advance(1000)
  expect(timerRan).toBe(false)
  expect(world.clock.timerCount).toBe(0)
  expect(atFar.bytes().byteLength).toBe(0)
  const dial = world.start('other').network.connect({ host: 'server', port: 9710, timeoutMs: 5000 })
  await expect(world.drive(dial)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  const again = world.start('server')
  await world.drive(again.network.listen({ host: 'server', port: 9710 }, () => undefined))
})

test('a partition makes dials time out and links silent until it heals', async () => {
  const world = new VirtualWorld()
  const { client, near, atFar } = await connectedPair(world)
  world.network.partition('client', 'server')
  const startMs = world.clock.nowMs()
  const dial = client.network.connect({ host: 'server', port: 9710, timeoutMs: 5000 })
  await expect(world.drive(dial)).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  expect(world.clock.nowMs() - startMs).toBe(5000)
  near.write([Buffer.from('later')])
  await world.clock.advance(1000)
  expect(atFar.bytes().byteLength).toBe(0)
  world.network.heal('client', 'server')
  await world.drive(atFar.received(5))
})

test('dials can be refused a number of times, and names point where the test says', async () => {
  const world = new VirtualWorld()
  const { client } = await connectedPair(world)
  world.network.setName('worker.example', 'server')
  world.network.refuse('server', 1)
  const dial = () =>
    world.drive(client.network.connect({ host: 'worker.example', port: 9710, timeoutMs: 5000 }))
  await expect(dial()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await dial()
  world.network.setName('worker.example', undefined)
  await expect(dial()).rejects.toMatchObject({ code: 'ENOTFOUND' })
})

test('a writer is slowed down to the bytes per millisecond of its link', async () => {
  const world = new VirtualWorld({ network: { bytesPerMs: 1000, latencyMs: [0, 0] } })
  const { near, atFar } = await connectedPair(world)
  const startMs = world.clock.nowMs()
  near.write([patternBytes(500_000, 1)])
  await world.drive(atFar.received(500_000))
  expect(world.clock.nowMs() - startMs).toBeCloseTo(500, 3)
})

/** A Fastify application and an undici client that talk through `world` alone. */
async function webPair(world: VirtualWorld) {
  const server = world.start('manager')
  const client = world.start('client')
  const web = createServer()
  const app = fastify({
    serverFactory: (handler) => {
      web.on('request', handler)
      return web
    },
  })
  app.get('/hello/:name', (request) => ({ hello: (request.params as { name: string }).name }))
  app.post('/size', { bodyLimit: 1 << 24 }, (request) => ({
    length: (request.body as { text: string }).text.length,
  }))
  app.get('/slow', (_request, reply) => {
    server.clock.setTimer(30_000, () => {
      void reply.send({ waited: true })
    })
  })
  await world.drive(Promise.resolve(app.ready()))
  const listener = await world.drive(
    server.network.listenStreams({ host: 'manager', port: 9700 }, (stream) => {
      web.emit('connection', stream)
    }),
  )
  const http = new Client('http://manager:9700', {
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (_options, done) => {
      client.network.connectStream({ host: 'manager', port: 9700, timeoutMs: 5000 }).then(
        (stream) => {
          done(null, stream as never)
        },
        (error: unknown) => {
          done(error as Error, null)
        },
      )
    },
  })
  const call = async (path: string, body?: object): Promise<unknown> => {
    const options = { path, method: body === undefined ? 'GET' : 'POST' } as const
    const content = { 'content-type': 'application/json' }
    const answer = await http.request(
      body === undefined ? options : { ...options, headers: content, body: JSON.stringify(body) },
    )
    return answer.body.json()
  }
  const close = async () => {
    await http.close()
    await listener.close()
    await app.close()
  }
  return { call, close, server, http }
}

test('Fastify and undici talk over the streams of the virtual network', async () => {
  const world = new VirtualWorld({ seed: 3 })
  const { call, close } = await webPair(world)
  expect(await world.drive(call('/hello/world'))).toEqual({ hello: 'world' })
  const text = 'x'.repeat(700_000)
  expect(await world.drive(call('/size', { text }))).toEqual({ length: 700_000 })
  await world.drive(close())
  await world.clock.advance(10_000)
  expect(world.network.links).toEqual([])
})

test('HTTP works when the stream comes byte by byte', async () => {
  const world = new VirtualWorld({ network: { chunking: 'byte' } })
  const { call, close } = await webPair(world)
  expect(await world.drive(call('/hello/bytes'))).toEqual({ hello: 'bytes' })
  await world.drive(close())
})

test('a long poll over HTTP waits in virtual time', async () => {
  const world = new VirtualWorld()
  const { call, close } = await webPair(world)
  const startMs = world.clock.nowMs()
  expect(await world.drive(call('/slow'))).toEqual({ waited: true })
  expect(world.clock.nowMs() - startMs).toBeGreaterThanOrEqual(30_000)
  await world.drive(close())
})

test('an HTTP call fails when the server is killed while it waits', async () => {
  const world = new VirtualWorld()
  const { call, server, http } = await webPair(world)
  const answer = call('/slow')
  answer.catch(() => undefined)
  await world.clock.advance(1000)
  server.kill()
  await expect(world.drive(answer)).rejects.toThrow()
  await world.drive(http.destroy())
})

test('the same seed gives the same trace, another seed another', async () => {
  const run = async (seed: number) => {
    const world = new VirtualWorld({ seed })
    const { call, close } = await webPair(world)
    const { near, atFar } = await connectedPair(world)
    near.write([patternBytes(300_000, 1)])
    await world.drive(Promise.all([call('/hello/a'), call('/size', { text: 'b'.repeat(5000) })]))
    await world.drive(atFar.received(300_000))
    await world.drive(close())
    return world.trace.digest()
  }
  const first = await run(1)
  expect(await run(1)).toBe(first)
  expect(await run(1)).toBe(first)
  expect(await run(2)).not.toBe(first)
})
