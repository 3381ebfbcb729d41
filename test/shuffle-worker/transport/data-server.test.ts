import { describe, expect, it } from 'vitest'
import { WorkerBench } from '../support/worker-bench.ts'

describe('data server', () => {
  it('counts its connections and channels, and takes another when one has gone', async () => {
    const bench = await WorkerBench.start({ connectionsMax: 2 })
    const first = await bench.connect()
    const second = await bench.connect()
    const refused = await bench.connect()
    expect(refused.isClosed).toBe(true)
    expect(refused.session).toBeUndefined()
    const reading = first.openRead()
    await bench.until(() => first.first(reading, 'ReadOpened') !== undefined)
    expect(bench.worker.status()).toMatchObject({ connections: 2, channels: { read: 1, write: 0 } })
    second.connection.close()
    await bench.until(() => second.isClosed)
    await bench.world.clock.advance(1000)
    expect((await bench.connect()).session).toBeDefined()
  })

  it('closes a connection that never says hello', async () => {
    const bench = await WorkerBench.start({ handshakeTimeoutMs: 1000 })
    const socket = await bench.world.clock.drive(
      bench.clientProcess.network.connect({ host: 'worker', port: 9710, timeoutMs: 1000 }),
    )
    let isClosed = false
    socket.start({
      onBytes: () => undefined,
      onDrain: () => undefined,
      onClose: () => (isClosed = true),
    })
    await bench.until(() => isClosed)
    expect(bench.worker.status()).toMatchObject({ connections: 0 })
  })

  it('ends its connections when the worker stops, and the port is free', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    await bench.world.clock.drive(bench.worker.stop())
    await bench.until(() => client.isClosed)
    await expect(bench.connect()).rejects.toThrow()
  })
})
