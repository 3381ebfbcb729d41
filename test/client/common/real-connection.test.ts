import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import type { Connection } from '../../../client/common/network.ts'
import { RealConnection } from '../../../client/common/real-connection.ts'
import { realNetwork } from '../../../client/common/real-network.ts'
import { dialSocket } from '../../../client/common/real-socket.ts'
import { collect, patternBytes } from '../../support/connection-probe.ts'
import { deferred } from '../../support/deferred.ts'

const host = '127.0.0.1'

async function acceptFrom(): Promise<{ readonly connection: Connection; readonly port: number }> {
  const accepted = deferred<Connection>()
  const listener = await realNetwork.listen({ host, port: 0 }, accepted.resolve)
  const { port } = listener.address
  const peer = connect(port, host)
  peer.on('error', () => undefined)
  const connection = await accepted.promise
  await listener.close()
  return { connection, port: peer.localPort ?? 0 }
}

test('a connection knows the address of its peer', async () => {
  const { connection, port } = await acceptFrom()
  expect(connection.remote).toEqual({ host, port })
  connection.destroy()
  await collect(connection).closed
})

test('all parts of a write are corked into one gather call', async () => {
  const accepted = deferred<Connection>()
  const listener = await realNetwork.listen({ host, port: 0 }, accepted.resolve)
  const client = await realNetwork.connect({ host, port: listener.address.port, timeoutMs: 5000 })
  const server = await accepted.promise
  const atServer = collect(server)
  const atClient = collect(client)
  // Parts written one by one would arrive as small reads; one call fills the read buffer.
  const parts = Array.from({ length: 500 }, () => patternBytes(100, 1))
  client.write(parts)
  await atServer.received(50_000)
  expect(atServer.reads()).toBeLessThan(10)
  client.end()
  await Promise.all([atClient.closed, atServer.closed])
  await listener.close()
})

test('a connection that we ended is closed although the peer never ends its side', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.resume())
  server.listen(0, host)
  await once(server, 'listening')
  const source = dialSocket({ host, port: (server.address() as AddressInfo).port })
  await once(source.socket, 'connect')
  const connection = new RealConnection(source, 10)
  const probe = collect(connection)
  connection.end()
  expect(await probe.closed).toBeUndefined()
  server.close()
})
