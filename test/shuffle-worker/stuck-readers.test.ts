// Peers that grant credit and then take nothing from their sockets, beside one that reads.

import { describe, expect, it } from 'vitest'
import { fromBeginning } from '../../client/protocol/partition-list.ts'
import type { RawClient } from './support/raw-client.ts'
import { WorkerBench } from './support/worker-bench.ts'

const stuckCount = 40
const regionCount = 8
const region = (bench: WorkerBench) => ({
  isBroadcast: true,
  runs: [Array.from({ length: 100 }, () => bench.payload(4000))],
})

function listAll(bench: WorkerBench, client: RawClient, credit: number): number {
  const reading = client.openRead(credit)
  const range = { firstSubpartition: 0, lastSubpartition: 3 }
  client.addPartitions(reading, [
    { index: 0, key: bench.key(0), ...range, start: fromBeginning, isPending: false },
  ])
  client.readEnd(reading, 1)
  return reading
}

describe('readers whose sockets are stuck', () => {
  it('cost their own connections, not one that reads, however many they are', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const regions = Array.from({ length: regionCount }, () => region(bench))
    await bench.write(client, bench.key(0), regions)
    for (let count = 0; count < stuckCount; count += 1) {
      const stuck = await bench.connect({ idlePingsMax: 1_000_000 })
      // They still say that they live; what is sent to them is not taken.
      bench.world.network.linksOf('client').at(-1)?.server.outgoing.silence(true)
      listAll(bench, stuck, 100_000)
      await bench.world.clock.advance(500)
    }
    const reading = listAll(bench, client, 2)
    await bench.readToEnd(client, reading)
    expect(client.entriesOf(reading).length).toBe(regionCount * 100 * 4)
  })
  it('keep their connections while nobody lacks memory', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    await bench.write(client, bench.key(0), [region(bench)])
    const stuck = await bench.connect({ idlePingsMax: 1_000_000 })
    bench.world.network.linksOf('client').at(-1)?.server.outgoing.silence(true)
    listAll(bench, stuck, 100_000)
    await bench.world.clock.advance(120_000)
    expect(bench.worker.status()).toMatchObject({ connections: 2, channels: { read: 1 } })
  })
})
