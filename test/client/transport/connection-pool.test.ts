import { describe, expect, test } from 'vitest'
import { parseWorkerId } from '../../../client/common/ids.ts'
import { messages } from '../../../client/protocol/messages.ts'
import type { ChannelHandler } from '../../../client/transport/worker-connection.ts'
import { ClientBench } from '../support/client-bench.ts'
import type { FakeWorker } from '../support/fake-worker.ts'

function addressOf(worker: FakeWorker) {
  return { workerId: worker.workerId, host: worker.host, port: worker.port }
}

class HeardChannel implements ChannelHandler {
  readonly heard: string[] = []
  bodyBuffer() {
    return undefined
  }
  onData() {
    this.heard.push('data')
  }
  onMessage({ name }: { readonly name: string }) {
    this.heard.push(name)
  }
  onClosed({ code }: { readonly code: string }) {
    this.heard.push(`closed ${code}`)
  }
}

describe('the connection pool', () => {
  test('callers of one worker share one dial and one connection', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const all = await bench.drive(
      Promise.all([1, 2, 3].map(() => bench.connections.connect(addressOf(worker)))),
    )
    expect(new Set(all).size).toBe(1)
    expect(worker.dialCount).toBe(1)
    await bench.atRest([worker])
  })

  test('the signal of one caller ends its own wait only', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const abort = new AbortController()
    const cancelled = bench.connections.connect(addressOf(worker), abort.signal)
    const other = bench.connections.connect(addressOf(worker))
    abort.abort()
    await expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' })
    await bench.drive(other)
    await bench.atRest([worker])
  })

  test('closes a connection that nobody uses, after a while', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const connection = await bench.drive(bench.connections.connect(addressOf(worker)))
    const channel = connection.openChannel(new HeardChannel())
    await bench.world.clock.advance(120_000)
    expect(bench.connections.connectionCount).toBe(1)
    channel.close({ tell: false })
    await bench.world.clock.advance(bench.settings.connectionIdleMs + 1000)
    expect(bench.connections.connectionCount).toBe(0)
    expect(worker.connections.size).toBe(0)
    await bench.atRest([worker])
  })

  test('dials anew after a cut; the channels of the old connection hear of it once', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const connection = await bench.drive(bench.connections.connect(addressOf(worker)))
    const handler = new HeardChannel()
    connection.openChannel(handler)
    for (const link of bench.world.network.linksOf('w1')) link.cut()
    await bench.world.clock.advance(1000)
    expect(handler.heard).toEqual(['closed WORKER_UNREACHABLE'])
    expect(() => connection.openChannel(handler)).toThrow(/has ended/)
    const again = await bench.drive(bench.connections.connect(addressOf(worker)))
    expect(again).not.toBe(connection)
    await bench.atRest([worker])
  })

  test('after GoAway new channels go to another connection, running ones finish', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const connection = await bench.drive(bench.connections.connect(addressOf(worker)))
    const handler = new HeardChannel()
    const channel = connection.openChannel(handler)
    for (const { protocol } of worker.connections) {
      protocol.send(messages.GoAway, 0, { reason: 'upgrade' })
    }
    await bench.world.clock.advance(100)
    expect(handler.heard).toEqual([])
    const again = await bench.drive(bench.connections.connect(addressOf(worker)))
    expect(again).not.toBe(connection)
    expect(bench.connections.connectionCount).toBe(2)
    channel.close({ tell: false })
    await bench.world.clock.advance(100)
    expect(bench.connections.connectionCount).toBe(1)
    await bench.atRest([worker])
  })

  test('nobody listening is WORKER_UNREACHABLE, and the next call dials again', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    bench.world.network.refuse('w1', 1)
    await expect(bench.drive(bench.connections.connect(addressOf(worker)))).rejects.toMatchObject({
      code: 'WORKER_UNREACHABLE',
      fields: { host: 'w1' },
    })
    await bench.drive(bench.connections.connect(addressOf(worker)))
    await bench.atRest([worker])
  })

  test('a dial that gets no answer ends after its time', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    bench.world.network.partition('task', 'w1')
    await expect(bench.drive(bench.connections.connect(addressOf(worker)))).rejects.toMatchObject({
      code: 'WORKER_UNREACHABLE',
    })
    await bench.atRest([worker])
  })

  test('another worker at the address is WORKER_CHANGED', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const address = { ...addressOf(worker), workerId: parseWorkerId('another') }
    await expect(bench.drive(bench.connections.connect(address))).rejects.toMatchObject({
      code: 'WORKER_CHANGED',
    })
    await bench.atRest([worker])
  })

  test('authenticates with the token; a wrong one is UNAUTHENTICATED', async () => {
    const right = new ClientBench({ token: 'secret' })
    const guarded = await right.startWorker('w1', { token: 'secret' })
    await right.drive(right.connections.connect(addressOf(guarded)))
    await right.atRest([guarded])
    const wrong = new ClientBench({ token: 'guess' })
    const again = await wrong.startWorker('w1', { token: 'secret' })
    await expect(wrong.drive(wrong.connections.connect(addressOf(again)))).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    })
    await wrong.atRest([again])
  })

  test('a worker that says nothing any more is given up by its pings', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const connection = await bench.drive(bench.connections.connect(addressOf(worker)))
    const handler = new HeardChannel()
    connection.openChannel(handler)
    for (const link of bench.world.network.linksOf('w1')) link.silence()
    await bench.world.clock.advance(60_000)
    expect(handler.heard).toEqual(['closed WORKER_UNREACHABLE'])
    for (const link of bench.world.network.linksOf('w1')) link.cut()
    await bench.atRest([worker])
  })

  test('closed it ends connections and dials, and takes no new ones', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const connection = await bench.drive(bench.connections.connect(addressOf(worker)))
    const handler = new HeardChannel()
    connection.openChannel(handler)
    const other = await bench.startWorker('w2')
    const dialling = bench.connections.connect(addressOf(other))
    dialling.catch(() => undefined)
    bench.connections.close()
    expect(handler.heard).toEqual(['closed WORKER_UNREACHABLE'])
    await expect(bench.drive(dialling)).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(bench.drive(bench.connections.connect(addressOf(worker)))).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    await bench.atRest([worker, other])
  })
})
