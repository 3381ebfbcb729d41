import { expect, test } from 'vitest'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import { messages } from '../../../client/protocol/messages.ts'
import type { ChannelHandler } from '../../../client/transport/worker-connection.ts'
import { ClientBench } from '../support/client-bench.ts'

class Recorder implements ChannelHandler {
  readonly heard: string[] = []
  buffersOut = 0
  bodyBuffer(bodyLength: number): PooledBuffer {
    this.buffersOut += 1
    return {
      bytes: new Uint8Array(bodyLength),
      recycle: () => {
        this.buffersOut -= 1
      },
    }
  }
  onData(buffer: PooledBuffer, bodyLength: number) {
    this.heard.push(`data ${String(bodyLength)}`)
    buffer.recycle()
  }
  onMessage({ name }: { readonly name: string }) {
    this.heard.push(name)
  }
  onClosed({ code }: { readonly code: string }) {
    this.heard.push(`closed ${code}`)
  }
}

async function setUp() {
  const bench = new ClientBench()
  const worker = await bench.startWorker('w1')
  worker.faults.intercept = () => true
  const address = { workerId: worker.workerId, host: worker.host, port: worker.port }
  const connection = await bench.drive(bench.connections.connect(address))
  const [peer] = worker.connections
  if (peer === undefined) throw new Error('the worker has a connection')
  return { bench, worker, connection, peer: peer.protocol }
}

test('hands each message to the channel that it names', async () => {
  const { bench, worker, connection, peer } = await setUp()
  const recorders = [new Recorder(), new Recorder()]
  const channels = recorders.map((recorder) => connection.openChannel(recorder))
  for (const channel of channels) {
    channel.send(messages.OpenRead, { bufferSizeBytes: 1024, initialCredit: 2 })
  }
  await bench.world.clock.advance(100)
  peer.send(messages.ReadOpened, 1, {})
  peer.send(messages.ReadData, 2, {}, [Buffer.alloc(40, 1)])
  await bench.world.clock.advance(100)
  expect(recorders.map(({ heard }) => heard)).toEqual([['ReadOpened'], ['data 40']])
  expect(connection.channelCount).toBe(2)
  for (const channel of channels) channel.close({ tell: false })
  await bench.atRest([worker])
})

test('a channel that is closed hears nothing more, its data is skipped and the connection lives', async () => {
  const { bench, worker, connection, peer } = await setUp()
  const gone = new Recorder()
  const stays = new Recorder()
  const first = connection.openChannel(gone)
  const second = connection.openChannel(stays)
  first.send(messages.OpenRead, { bufferSizeBytes: 1024, initialCredit: 2 })
  second.send(messages.OpenRead, { bufferSizeBytes: 1024, initialCredit: 2 })
  await bench.world.clock.advance(100)
  first.close({ tell: true })
  first.close({ tell: true })
  peer.send(messages.ReadOpened, 1, {})
  peer.send(messages.ReadData, 1, {}, [Buffer.alloc(900, 1)])
  peer.send(messages.ReadData, 2, {}, [Buffer.alloc(30, 1)])
  await bench.world.clock.advance(100)
  expect(gone.heard).toEqual([])
  expect(stays.heard).toEqual(['data 30'])
  expect(worker.log.filter((line) => line === 'CloseChannel 1')).toHaveLength(1)
  second.close({ tell: false })
  await bench.atRest([worker])
})

test('a body under way when its channel closes goes back to its pool', async () => {
  const { bench, worker, connection, peer } = await setUp()
  const recorder = new Recorder()
  const channel = connection.openChannel(recorder)
  channel.send(messages.OpenRead, { bufferSizeBytes: 65_536, initialCredit: 2 })
  await bench.world.clock.advance(100)
  peer.send(messages.ReadData, 1, {}, [Buffer.alloc(60_000, 1)])
  await bench.world.clock.runUntil(() => recorder.buffersOut === 1)
  channel.close({ tell: true })
  await bench.world.clock.advance(1000)
  expect(recorder.heard).toEqual([])
  expect(recorder.buffersOut).toBe(0)
  await bench.atRest([worker])
})

test('the end of the connection is told to each channel once', async () => {
  const { bench, worker, connection, peer } = await setUp()
  const recorders = [new Recorder(), new Recorder()]
  for (const recorder of recorders) connection.openChannel(recorder)
  peer.destroy()
  await bench.world.clock.advance(100)
  connection.close()
  expect(recorders.map(({ heard }) => heard)).toEqual([
    ['closed WORKER_UNREACHABLE'],
    ['closed WORKER_UNREACHABLE'],
  ])
  expect(connection.channelCount).toBe(0)
  await bench.atRest([worker])
})

test('channels that wait for room have their turns in the order of asking, as far as there is room', async () => {
  const { bench, worker, connection } = await setUp()
  const channels = [1, 2, 3, 4].map(() => connection.openChannel(new Recorder()))
  const [first, second, third, last] = channels
  if (first === undefined || last === undefined) throw new Error('four channels are open')
  const body = Buffer.alloc(256 * 1024)
  const send = (channel: typeof first) => {
    channel.send(messages.WriteData, { regionIndex: 0 }, [body])
  }
  while (first.isWritable) send(first)
  const turns: string[] = []
  second?.whenWritable(() => {
    turns.push('second')
    for (let count = 0; count < 16; count += 1) send(second)
  })
  third?.whenWritable(() => {
    turns.push('third')
    // Nobody overtakes those who wait.
    expect(last.isWritable).toBe(false)
  })
  last.whenWritable(() => turns.push('last'))
  await bench.world.clock.runUntil(() => turns.length > 0)
  expect(turns).toEqual(['second'])
  await bench.world.clock.runUntil(() => first.isWritable)
  expect(turns).toEqual(['second', 'third', 'last'])
  for (const channel of channels) channel.close({ tell: false })
  await bench.atRest([worker])
})

test('the end of the connection ends the wait for a turn', async () => {
  const { bench, worker, connection, peer } = await setUp()
  const channel = connection.openChannel(new Recorder())
  while (channel.isWritable) {
    channel.send(messages.WriteData, { regionIndex: 0 }, [Buffer.alloc(256 * 1024)])
  }
  const turns: string[] = []
  channel.whenWritable(() => turns.push('turn'))
  peer.destroy()
  await bench.world.clock.advance(1000)
  expect(turns).toEqual([])
  await bench.atRest([worker])
})
