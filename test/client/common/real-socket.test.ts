import { once } from 'node:events'
import { connect, createServer, Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { RealConnection } from '../../../client/common/real-connection.ts'
import {
  acceptSocket,
  dataEventSource,
  dialSocket,
  rewrapSocket,
} from '../../../client/common/real-socket.ts'
import type { ByteSource } from '../../../client/common/real-socket.ts'
import { collect, patternBytes } from '../../support/connection-probe.ts'

const host = '127.0.0.1'

/** Sends bytes both ways over a socket that was accepted as `accept` does, and ends it. */
async function exchange(accept: (socket: Socket) => ByteSource): Promise<ByteSource> {
  const server = createServer({ pauseOnConnect: true })
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const peer = connect(port, host)
  const [accepted] = (await once(server, 'connection')) as [Socket]
  const source = accept(accepted)
  const connection = new RealConnection(source)
  const sent = patternBytes(400_000, 11)
  peer.write(sent)
  const probe = collect(connection)
  await probe.received(sent.byteLength)
  expect(probe.bytes().equals(sent)).toBe(true)

  const chunks: Buffer[] = []
  peer.on('data', (chunk: Buffer) => chunks.push(chunk))
  connection.write([sent.subarray(0, 1000), sent.subarray(1000)])
  connection.end()
  await once(peer, 'close')
  expect(Buffer.concat(chunks).equals(sent)).toBe(true)
  expect(await probe.closed).toBeUndefined()
  // The server counts no connection any more, else this would never be called.
  await new Promise((resolve) => server.close(resolve))
  return source
}

test('an accepted socket is wrapped again and reads into one fixed buffer', async () => {
  const source = await exchange(acceptSocket)
  expect(source.isFixedBuffer).toBe(true)
})

test('data events serve where the handle cannot be taken', async () => {
  const source = await exchange(dataEventSource)
  expect(source.isFixedBuffer).toBe(false)
})

test('a socket without a handle, or with one that refuses, is left to the fallback', async () => {
  expect(rewrapSocket(new Socket())).toBeUndefined()
  const odd = new Socket()
  const handle = {
    close: (done: () => void) => {
      done()
    },
  }
  Object.assign(odd, { _handle: handle })
  expect(rewrapSocket(odd)).toBeUndefined()
  expect((odd as unknown as { _handle: unknown })._handle).toBe(handle)
  expect(acceptSocket(odd).isFixedBuffer).toBe(false)
  Object.assign(odd, { _handle: null })
  odd.destroy()
  await once(odd, 'close')
})

test('every read of a fixed buffer is in the same memory', async () => {
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.end('second')
    })
    socket.write('first')
  })
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const source = dialSocket({ host, port })
  const memories = new Set<ArrayBufferLike>()
  await once(source.socket, 'connect')
  source.start((bytes) => {
    memories.add(bytes.buffer)
    if (Buffer.from(bytes).toString() === 'first') source.socket.write('more')
  })
  await once(source.socket, 'close')
  expect(memories.size).toBe(1)
  await new Promise((resolve) => server.close(resolve))
})
