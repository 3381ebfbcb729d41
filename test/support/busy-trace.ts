// A short life of two processes that uses every seam, for tests of determinism.

import { collect, patternBytes } from './connection-probe.ts'
import { VirtualWorld } from './virtual-world.ts'

/** A little of everything, so that every seam draws from the seed. */
export async function busyTrace(seed: number): Promise<string> {
  const world = new VirtualWorld({ seed })
  const server = world.start('server')
  const client = world.start('client')
  await world.drive(
    server.network.listen({ host: 'server', port: 1 }, (connection) => {
      connection.start({
        onBytes: (bytes) => {
          connection.write([Buffer.from(bytes)])
        },
        onDrain: () => undefined,
        onClose: () => undefined,
      })
    }),
  )
  const connect = async () => {
    const connection = await client.network.connect({ host: 'server', port: 1, timeoutMs: 1000 })
    const probe = collect(connection)
    const block = await client.compute.compress(patternBytes(50_000, 1))
    connection.write([block])
    await probe.received(block.byteLength)
    const file = await server.disk.open(`/${client.random.bytes(4).toString('hex')}`, 'create')
    await file.write([probe.bytes()], 0)
    await file.close()
    connection.end()
    await probe.closed
  }
  await world.drive(Promise.all(Array.from({ length: 10 }, connect)))
  return world.trace.digest()
}
