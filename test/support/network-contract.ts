// What every Network promises, as tests: run over the real one and over the virtual one, so that
// what passes in a simulation is true of sockets.

import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { Connection, Network } from '../../client/common/network.ts'
import { collect, patternBytes } from './connection-probe.ts'
import type { ConnectionProbe } from './connection-probe.ts'
import { deferred } from './deferred.ts'

export interface NetworkUnderTest {
  readonly network: Network
  /** Waits for a promise in whatever time this network has. */
  drive<T>(promise: Promise<T>): Promise<T>
}

interface Pair {
  readonly client: Connection
  readonly server: Connection
}

export function describeNetwork(make: () => NetworkUnderTest): void {
  const host = '127.0.0.1'

  async function pair({ network, drive }: NetworkUnderTest): Promise<Pair> {
    const accepted = deferred<Connection>()
    const listener = await drive(network.listen({ host, port: 0 }, accepted.resolve))
    const { port } = listener.address
    const client = await drive(network.connect({ host, port, timeoutMs: 5000 }))
    const server = await drive(accepted.promise)
    await drive(listener.close())
    return { client, server }
  }

  async function startedPair(
    under: NetworkUnderTest,
  ): Promise<Pair & { readonly atClient: ConnectionProbe; readonly atServer: ConnectionProbe }> {
    const { client, server } = await pair(under)
    return { client, server, atClient: collect(client), atServer: collect(server) }
  }

  test('bytes arrive whole and in order in both directions', async () => {
    const under = make()
    const { client, server, atClient, atServer } = await startedPair(under)
    const up = patternBytes(300_000, 1)
    const down = patternBytes(200_000, 2)
    client.write([up.subarray(0, 10), up.subarray(10)])
    server.write([down])
    await under.drive(atServer.received(up.byteLength))
    await under.drive(atClient.received(down.byteLength))
    expect(atServer.bytes().equals(up)).toBe(true)
    expect(atClient.bytes().equals(down)).toBe(true)
    client.destroy()
    await under.drive(Promise.all([atClient.closed, atServer.closed]))
  })

  test('a gather list of more parts than the system takes at once arrives whole', async () => {
    const under = make()
    const { client, server, atServer, atClient } = await startedPair(under)
    const whole = patternBytes(5000 * 7, 3)
    const parts = Array.from({ length: 5000 }, (_, index) =>
      whole.subarray(index * 7, index * 7 + 7),
    )
    client.write(parts)
    await under.drive(atServer.received(whole.byteLength))
    expect(atServer.bytes().equals(whole)).toBe(true)
    server.destroy()
    await under.drive(Promise.all([atClient.closed, atServer.closed]))
  })

  test('onWritten comes once, later, with nothing; then onDrain with nothing buffered', async () => {
    const under = make()
    const { client, atClient, atServer } = await startedPair(under)
    const calls: string[] = []
    const written = new Promise<void>((resolve) => {
      client.write([patternBytes(100, 4)], (error) => {
        calls.push(error === undefined ? 'first' : 'failed')
      })
      client.write([], (error) => {
        calls.push(error === undefined ? 'second' : 'failed')
        resolve()
      })
    })
    expect(calls).toEqual([])
    expect(client.bufferedBytes).toBe(100)
    await under.drive(written)
    await under.drive(atClient.drained(1))
    expect(calls).toEqual(['first', 'second'])
    expect(client.bufferedBytes).toBe(0)
    client.destroy()
    await under.drive(Promise.all([atClient.closed, atServer.closed]))
  })

  test('nothing is read before start, and nothing of it is lost', async () => {
    const under = make()
    const { client, server } = await pair(under)
    const atClient = collect(client)
    client.write([Buffer.from('early')])
    await under.drive(atClient.drained(1))
    const atServer = collect(server)
    await under.drive(atServer.received(5))
    expect(atServer.bytes().toString()).toBe('early')
    client.destroy()
    await under.drive(Promise.all([atClient.closed, atServer.closed]))
  })

  test('end delivers everything first, then both sides close without an error', async () => {
    const under = make()
    const { client, atClient, atServer } = await startedPair(under)
    const bytes = patternBytes(1_000_000, 5)
    client.write([bytes])
    client.end()
    const errors = await under.drive(Promise.all([atClient.closed, atServer.closed]))
    expect(errors).toEqual([undefined, undefined])
    expect(atServer.bytes().equals(bytes)).toBe(true)
  })

  test('a writer whose peer does not read is told, and destroy answers its writes with an error', async () => {
    const under = make()
    const { client, server } = await pair(under)
    const atClient = collect(client)
    const outcomes: boolean[] = []
    const chunk = patternBytes(1 << 20, 6)
    for (let index = 0; index < 64; index += 1) {
      client.write([chunk], (error) => outcomes.push(error === undefined))
    }
    expect(client.bufferedBytes).toBe(64 << 20)
    client.destroy(new Error('enough'))
    const error = await under.drive(atClient.closed)
    expect(error?.message).toBe('enough')
    expect(outcomes).toHaveLength(64)
    expect(outcomes.at(-1)).toBe(false)
    expect(client.bufferedBytes).toBe(0)
    const atServer = collect(server)
    await under.drive(atServer.closed)
  })

  test('a write after the end is answered with an error, later', async () => {
    const under = make()
    const { client, atClient, atServer } = await startedPair(under)
    client.end()
    const failure = new Promise<Error | undefined>((resolve) => {
      client.write([Buffer.from('late')], resolve)
    })
    expect((await under.drive(failure))?.message).toMatch(/closed/)
    await under.drive(Promise.all([atClient.closed, atServer.closed]))
    expect(atServer.bytes().byteLength).toBe(0)
  })

  test('destroy is idempotent and the first reason is the one that is told', async () => {
    const under = make()
    const { client, atClient, atServer } = await startedPair(under)
    client.destroy(new Error('first'))
    client.destroy(new Error('second'))
    expect((await under.drive(atClient.closed))?.message).toBe('first')
    client.destroy(new Error('third'))
    await under.drive(atServer.closed)
  })

  test('a connection started after it was closed is told so', async () => {
    const under = make()
    const { client, server } = await pair(under)
    const atServer = collect(server)
    client.destroy()
    await under.drive(atServer.closed)
    expect(await under.drive(collect(client).closed)).toBeUndefined()
  })

  test('what onBytes throws ends its own connection with that error', async () => {
    const under = make()
    const { client, server } = await pair(under)
    const failure = new Promise<Error | undefined>((resolve) => {
      server.start({
        onBytes: () => {
          throw new Error('broken invariant')
        },
        onDrain: () => undefined,
        onClose: resolve,
      })
    })
    const atClient = collect(client)
    client.write([Buffer.from('x')])
    expect((await under.drive(failure))?.message).toBe('broken invariant')
    await under.drive(atClient.closed)
  })

  test('a dial that nobody listens to is refused by code', async () => {
    const { network, drive } = make()
    const listener = await drive(network.listen({ host, port: 0 }, () => undefined))
    await drive(listener.close())
    const dial = network.connect({ host, port: listener.address.port, timeoutMs: 5000 })
    await expect(drive(dial)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('a name that does not exist is refused by code', async () => {
    const { network, drive } = make()
    const dial = network.connect({ host: 'no-such-host.invalid', port: 1, timeoutMs: 20_000 })
    await expect(drive(dial)).rejects.toMatchObject({
      code: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/) as string,
    })
  })

  test('an aborted dial rejects with the reason of its signal', async () => {
    const { network, drive } = make()
    const aborted = AbortSignal.abort(new Error('not wanted'))
    const options = { host, port: 1, timeoutMs: 5000 }
    await expect(drive(network.connect({ ...options, signal: aborted }))).rejects.toThrow(
      'not wanted',
    )
    const controller = new AbortController()
    const dial = network.connectStream({ ...options, signal: controller.signal })
    controller.abort(new Error('changed my mind'))
    await expect(drive(dial)).rejects.toThrow('changed my mind')
  })

  test('a taken port is refused, and is free as soon as close resolves', async () => {
    const under = make()
    const { network, drive } = under
    let accepted: Connection | undefined
    const first = await drive(
      network.listen({ host, port: 0 }, (connection) => {
        accepted = connection
      }),
    )
    const { port } = first.address
    expect(first.address.host).toBe(host)
    const again = network.listen({ host, port }, () => undefined)
    await expect(drive(again)).rejects.toMatchObject({ code: 'EADDRINUSE' })
    const client = await drive(network.connect({ host, port, timeoutMs: 5000 }))
    await drive(first.close())
    await drive(first.close())
    const second = await drive(network.listen({ host, port }, () => undefined))
    await drive(second.close())
    const atClient = collect(client)
    client.write([Buffer.from('still open')])
    await drive(atClient.drained(1))
    client.destroy()
    await drive(atClient.closed)
    accepted?.destroy()
  })

  test('streams carry bytes and ends in both directions', async () => {
    const { network, drive } = make()
    const listener = await drive(
      network.listenStreams({ host, port: 0 }, (stream) => {
        stream.pipe(stream)
      }),
    )
    const { port } = listener.address
    const stream = await drive(network.connectStream({ host, port, timeoutMs: 5000 }))
    const sent = patternBytes(500_000, 7)
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    const closed = once(stream, 'close')
    stream.end(sent)
    await drive(closed)
    expect(Buffer.concat(chunks).equals(sent)).toBe(true)
    await drive(listener.close())
  })

  test('a stream that is destroyed closes its peer', async () => {
    const { network, drive } = make()
    let peerClosed: Promise<unknown> | undefined
    const listener = await drive(
      network.listenStreams({ host, port: 0 }, (stream) => {
        peerClosed = once(stream, 'close')
        stream.on('end', () => stream.end())
        stream.resume()
      }),
    )
    const { port } = listener.address
    const stream = await drive(network.connectStream({ host, port, timeoutMs: 5000 }))
    await drive(
      new Promise<void>(
        (resolve) =>
          void stream.write('x', () => {
            resolve()
          }),
      ),
    )
    stream.destroy()
    await drive(peerClosed ?? Promise.reject(new Error('never accepted')))
    await drive(listener.close())
  })
}
