import { describe, expect, it } from 'vitest'
import { messages } from '../../../client/protocol/messages.ts'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import type { RawClient } from '../support/raw-client.ts'
import { WorkerBench } from '../support/worker-bench.ts'

function listed(bench: WorkerBench, index: number) {
  return {
    index,
    key: bench.key(index),
    firstSubpartition: 0,
    lastSubpartition: 3,
    start: fromBeginning,
    isPending: false,
  }
}

async function errorOf(bench: WorkerBench, client: RawClient, channelId: number) {
  await bench.until(() => client.errorOf(channelId) !== undefined)
  return client.errorOf(channelId)
}

describe('connection handler', () => {
  it('carries many channels, reads and writes together', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const regions = [{ isBroadcast: false, runs: [[bench.payload(100)], [], [], []] }]
    await bench.write(client, bench.key(0), regions)
    const open = client.openWrite(bench.key(1))
    const readings = [client.openRead(), client.openRead(), client.openRead()]
    for (const reading of readings) {
      client.addPartitions(reading, [listed(bench, 0)])
      client.readEnd(reading, 1)
    }
    await bench.until(() =>
      readings.every((reading) => client.first(reading, 'ReadFinish') !== undefined),
    )
    for (const reading of readings) expect(client.entriesOf(reading).length).toBe(1)
    expect(client.first(open, 'WriteOpened')).toBeDefined()
    expect(client.isClosed).toBe(false)
  })

  it('ends one channel by what its messages do wrong, and no other', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const { connection } = client
    const wrong: ((channelId: number) => void)[] = [
      (channelId) => {
        connection.send(messages.ReadEnd, channelId, { partitionCount: 7 })
      },
      (channelId) => {
        connection.send(messages.AddCredit, channelId, { credit: 1, regionIndex: 0 })
      },
      (channelId) => {
        connection.send(messages.WriteFinish, channelId, {
          regionCount: 0,
          byteCount: 0,
          recordCount: 0,
          firstSubpartition: 0,
          isLast: true,
        })
      },
      (channelId) => {
        connection.send(messages.AddPartitions, channelId, { partitionCount: 3 }, [
          Buffer.from([1]),
        ])
      },
    ]
    for (const send of wrong) {
      const reading = client.openRead()
      send(reading)
      expect((await errorOf(bench, client, reading))?.code).toBe('PROTOCOL')
    }
    const writing = client.openWrite(bench.key(0))
    connection.send(messages.ReadEnd, writing, { partitionCount: 0 })
    expect((await errorOf(bench, client, writing))?.code).toBe('PROTOCOL')
    const good = client.openRead()
    client.readEnd(good, 0)
    await bench.until(() => client.first(good, 'ReadFinish') !== undefined)
    await bench.expectNothingHeld()
  })

  it('refuses what an opening asks too much of', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const big = client.openRead(2, 8192)
    expect((await errorOf(bench, client, big))?.code).toBe('LIMIT_EXCEEDED')
    const greedy = client.openRead(4_000_000_000)
    expect((await errorOf(bench, client, greedy))?.code).toBe('PROTOCOL')
    const wide = client.openWrite(bench.key(0), { subpartitionCount: 10_000_000 })
    expect((await errorOf(bench, client, wide))?.code).toBe('LIMIT_EXCEEDED')
  })

  it('ignores what comes for a channel that is over, data too', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const channelId = client.openWrite(bench.key(0))
    client.closeChannel(channelId)
    client.connection.send(messages.WriteData, channelId, { regionIndex: 0 }, [Buffer.alloc(50)])
    client.connection.send(messages.AddCredit, channelId, { credit: 1, regionIndex: 0 })
    client.closeChannel(channelId)
    client.connection.send(messages.Error, channelId, {
      code: 19,
      isRetryable: false,
      text: '',
      detail: '',
    })
    await bench.world.clock.advance(1000)
    expect(client.isClosed).toBe(false)
    expect(client.all(channelId, 'ChannelClosed').length).toBe(1)
    await bench.expectNothingHeld()
  })

  it('gives everything back when a connection breaks in the middle of a frame', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const channelId = client.openWrite(bench.key(0))
    client.connection.send(messages.RegionStart, channelId, {
      regionIndex: 0,
      isBroadcast: false,
      boundBytes: 100_000,
    })
    await bench.until(() => client.creditOf(channelId, 0) > 0)
    for (let sent = 0; sent < 4; sent++) {
      client.connection.send(messages.WriteData, channelId, { regionIndex: 0 }, [
        Buffer.alloc(3000),
      ])
    }
    client.connection.destroy()
    await bench.expectNothingHeld()
    expect(bench.worker.status()).toMatchObject({ connections: 0, channels: { write: 0 } })
  })
})
