// A whole worker in a virtual world, spoken to in plain protocol messages.

import { describe, expect, it } from 'vitest'
import { messages } from '../../client/protocol/messages.ts'
import { fromBeginning, type PartitionListEntry } from '../../client/protocol/partition-list.ts'
import { errorOfWire } from '../../client/protocol/wire-error.ts'
import type { RegionToWrite } from './support/raw-client.ts'
import { dataPort, WorkerBench } from './support/worker-bench.ts'

function listed(
  bench: WorkerBench,
  index: number,
  partitionIndex: number,
  more: Partial<PartitionListEntry> = {},
): PartitionListEntry {
  return {
    index,
    key: bench.key(partitionIndex),
    firstSubpartition: 0,
    lastSubpartition: 3,
    start: fromBeginning,
    isPending: false,
    ...more,
  }
}

function someRegions(bench: WorkerBench): RegionToWrite[] {
  const run = (...sizes: number[]) => sizes.map((size) => bench.payload(size))
  return [
    { isBroadcast: false, runs: [run(3000, 3000, 10), run(), run(100), run(4000, 4000, 4000)] },
    { isBroadcast: true, runs: [run(2000, 3000)] },
    {
      isBroadcast: false,
      runs: [run(...Array.from({ length: 50 }, () => 3000)), run(1), run(0), run(17)],
    },
  ]
}

function served(
  regions: readonly RegionToWrite[],
  range: readonly [first: number, last: number],
): Buffer[] {
  const payloads: Buffer[] = []
  for (const region of regions) {
    for (let subpartition = range[0]; subpartition <= range[1]; subpartition++) {
      const run = region.isBroadcast ? region.runs[0] : region.runs[subpartition]
      for (const payload of run ?? []) payloads.push(Buffer.from(payload))
    }
  }
  return payloads
}

/** Compares by one look at all bytes: element by element is slow. */
function expectPayloads(received: readonly Buffer[], expected: readonly Buffer[]): void {
  expect(received.map((bytes) => bytes.length)).toEqual(expected.map((bytes) => bytes.length))
  expect(Buffer.concat(received).equals(Buffer.concat(expected))).toBe(true)
}

describe('shuffle worker', () => {
  it.each(['ssd', 'hdd'] as const)(
    'takes a partition of several regions and serves any range of it (%s)',
    async (kind) => {
      const bench = await WorkerBench.start({}, { kind })
      const client = await bench.connect()
      const regions = someRegions(bench)
      const written = await bench.write(client, bench.key(0), regions)
      expect(client.errorOf(written)).toBeUndefined()
      expect(client.first(written, 'WriteCommitted')).toMatchObject({ regionCount: 3 })
      for (const range of [
        [0, 3],
        [1, 1],
        [2, 3],
      ] as const) {
        const reading = client.openRead()
        const [firstSubpartition, lastSubpartition] = range
        client.addPartitions(reading, [
          listed(bench, 0, 0, { firstSubpartition, lastSubpartition }),
        ])
        client.readEnd(reading, 1)
        await bench.readToEnd(client, reading)
        const expected = served(regions, range)
        expectPayloads(
          client.entriesOf(reading).map(({ payload }) => payload),
          expected,
        )
        expect(client.first(reading, 'PartitionFinish')?.entryCount).toBe(expected.length)
      }
      await bench.expectNothingHeld()
      await bench.world.clock.drive(bench.worker.stop())
    },
  )

  it('names the option of the port that it can not have', async () => {
    await expect(WorkerBench.start({ httpPort: dataPort })).rejects.toThrow(
      /0\.0\.0\.0:9710 is in use: .*--http-port/,
    )
  })

  it('resumes a read on another connection after the last entry received', async () => {
    const bench = await WorkerBench.start()
    const writer = await bench.connect()
    const regions = someRegions(bench)
    await bench.write(writer, bench.key(0), regions)
    const first = await bench.connect()
    const broken = first.openRead()
    first.addPartitions(broken, [listed(bench, 0, 0)])
    await bench.until(() => first.entriesOf(broken).length > 2)
    first.connection.destroy()
    const had = first.entriesOf(broken)
    const last = had.at(-1)
    const inRun = had.filter(
      (entry) =>
        entry.regionIndex === last?.regionIndex && entry.subpartition === last.subpartition,
    )
    const second = await bench.connect()
    const resumed = second.openRead()
    const start = {
      regionIndex: last?.regionIndex ?? 0,
      subpartition: last?.subpartition ?? 0,
      byteOffset: inRun.reduce((sum, { payload }) => sum + 16 + payload.length, 0),
    }
    second.addPartitions(resumed, [listed(bench, 0, 0, { start })])
    second.readEnd(resumed, 1)
    await bench.readToEnd(second, resumed)
    const payloads = [...had, ...second.entriesOf(resumed)].map(({ payload }) => payload)
    expectPayloads(payloads, served(regions, [0, 3]))
    await bench.expectNothingHeld()
  })

  it('deletes what a broken connection was writing and lets a new attempt write', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const key = bench.key(0)
    const channelId = client.openWrite(key)
    await bench.writeRegion(client, channelId, {
      key,
      index: 0,
      content: { isBroadcast: false, runs: [[bench.payload(3000)], [], [], []] },
    })
    client.connection.send(messages.RegionStart, channelId, {
      regionIndex: 1,
      isBroadcast: false,
      boundBytes: 100_000,
    })
    await bench.until(() => client.creditOf(channelId, 1) > 0)
    client.connection.destroy()
    await bench.expectNothingHeld()
    const again = await bench.connect()
    const written = await bench.write(again, key, someRegions(bench))
    expect(again.errorOf(written)).toBeUndefined()
    await bench.expectNothingHeld()
  })

  it('opens a key at once whose first opening was given up before it was heard', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const key = bench.key(0)
    client.connection.send(messages.CloseChannel, client.openWrite(key), { code: 0 })
    const written = await bench.write(client, key, someRegions(bench))
    expect(client.errorOf(written)).toBeUndefined()
    await bench.expectNothingHeld()
  })

  it('ends a write that sends beyond its credit, and the others go on', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const channelId = client.openWrite(bench.key(0))
    await bench.until(() => client.first(channelId, 'WriteOpened') !== undefined)
    client.connection.send(messages.WriteData, channelId, { regionIndex: 0 }, [Buffer.alloc(100)])
    await bench.until(() => client.errorOf(channelId) !== undefined)
    expect(client.errorOf(channelId)?.code).toBe('PROTOCOL')
    const written = await bench.write(client, bench.key(1), someRegions(bench))
    expect(client.errorOf(written)).toBeUndefined()
    await bench.expectNothingHeld()
  })

  it('fails a write whose counts differ from what came', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const channelId = client.openWrite(bench.key(0))
    client.connection.send(messages.RegionStart, channelId, {
      regionIndex: 0,
      isBroadcast: false,
      boundBytes: 10,
    })
    client.connection.send(messages.RegionFinish, channelId, {
      regionIndex: 0,
      entryCount: 1,
      byteCount: 10,
    })
    await bench.until(() => client.errorOf(channelId) !== undefined)
    expect(client.errorOf(channelId)?.code).toBe('COUNT_MISMATCH')
    await bench.expectNothingHeld()
  })

  it('fails an open region without progress for its time-out with WRITE_INTERRUPTED', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const channelId = client.openWrite(bench.key(0))
    client.connection.send(messages.RegionStart, channelId, {
      regionIndex: 0,
      isBroadcast: false,
      boundBytes: 100_000,
    })
    await bench.until(() => client.creditOf(channelId, 0) > 0)
    await bench.world.clock.advance(59_000)
    expect(client.errorOf(channelId)).toBeUndefined()
    await bench.world.clock.advance(2000)
    expect(client.errorOf(channelId)?.code).toBe('WRITE_INTERRUPTED')
    await bench.expectNothingHeld()
  })

  it('leaks nothing when a channel is closed while it is being opened, or midway', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    await bench.write(client, bench.key(0), someRegions(bench))
    const writing = client.openWrite(bench.key(1))
    client.closeChannel(writing)
    const reading = client.openRead()
    client.addPartitions(reading, [listed(bench, 0, 0)])
    client.closeChannel(reading)
    const later = client.openRead()
    client.addPartitions(later, [listed(bench, 0, 0)])
    await bench.until(() => (client.frames.get(later) ?? 0) === 2)
    client.closeChannel(later)
    client.addCredit(later, 10)
    await bench.until(() =>
      [writing, reading, later].every(
        (channelId) => client.first(channelId, 'ChannelClosed') !== undefined,
      ),
    )
    await bench.expectNothingHeld()
    const written = await bench.write(client, bench.key(1), someRegions(bench))
    expect(client.errorOf(written)).toBeUndefined()
  })

  it('describes partitions, with bytes per subpartition where they are asked for', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    await bench.write(client, bench.key(0), someRegions(bench))
    for (const withSubpartitions of [false, true]) {
      const channelId = client.connection.nextChannelId()
      const { encodePartitionList } = await import('../../client/protocol/partition-list.ts')
      const [page] = encodePartitionList([listed(bench, 0, 0), listed(bench, 1, 7)])
      client.connection.send(
        messages.Describe,
        channelId,
        { partitionCount: 2, withSubpartitions },
        [page?.body ?? new Uint8Array(0)],
      )
      await bench.until(() => client.all(channelId, 'Described').some(({ isLast }) => isLast))
      const [first, second] = client.all(channelId, 'Described')
      expect(first).toMatchObject({ partition: 0, code: 0, regionCount: 3, subpartitionCount: 4 })
      expect(second).toMatchObject({ partition: 1, code: 2, isLast: true })
      expect(client.messagesOf(channelId)[0]?.body.length).toBe(withSubpartitions ? 32 : 0)
    }
  })

  it('asks for the token, and refuses a wrong one and another cluster', async () => {
    const bench = await WorkerBench.start({}, { token: 'secret' })
    expect((await bench.connect({ token: 'secret' })).session?.workerId).toBe(bench.worker.workerId)
    expect((await bench.connect({ token: 'wrong' })).closeError?.code).toBe('UNAUTHENTICATED')
    expect((await bench.connect()).closeError?.code).toBe('UNAUTHENTICATED')
    const other = await bench.connect({ token: 'secret', clusterId: 'other' })
    expect(other.closeError?.code).toBe('UNAUTHENTICATED')
  })

  it('refuses channels, connections and list entries past their limits by name', async () => {
    const bench = await WorkerBench.start({
      channelsPerConnectionMax: 1,
      connectionsMax: 1,
      entriesPerChannelMax: 1,
    })
    const client = await bench.connect()
    const reading = client.openRead()
    const tooMany = client.openRead()
    await bench.until(() => client.errorOf(tooMany) !== undefined)
    expect(client.errorOf(tooMany)?.message).toMatch(/channels-per-connection-max/)
    client.addPartitions(reading, [listed(bench, 0, 0), listed(bench, 1, 1)])
    await bench.until(() => client.errorOf(reading) !== undefined)
    expect(client.errorOf(reading)?.message).toMatch(/entries-per-channel-max/)
    const second = await bench.connect()
    expect(second.isClosed).toBe(true)
  })

  it('tells a reader that a partition is not ready, not there or released', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    await bench.write(client, bench.key(0), someRegions(bench))
    bench.worker.store.release([bench.key(0)])
    const writing = client.openWrite(bench.key(1))
    await bench.until(() => client.first(writing, 'WriteOpened') !== undefined)
    const reading = client.openRead()
    client.addPartitions(
      reading,
      [0, 1, 2].map((index) => listed(bench, index, index, { isPending: index === 1 })),
    )
    client.readEnd(reading, 3)
    await bench.until(() => client.first(reading, 'ReadFinish') !== undefined)
    const codes = client.all(reading, 'PartitionFailed').map((fields) => errorOfWire(fields).code)
    expect(codes).toEqual(['PARTITION_RELEASED', 'PARTITION_NOT_READY', 'PARTITION_NOT_FOUND'])
  })

  it('drains: open writes may end, new ones are refused, reads go on', async () => {
    const bench = await WorkerBench.start({ drainReadersTimeoutMs: 10_000 })
    const client = await bench.connect()
    await bench.write(client, bench.key(0), someRegions(bench))
    const key = bench.key(1)
    const open = client.openWrite(key)
    await bench.until(() => client.first(open, 'WriteOpened') !== undefined)
    const stopped = bench.worker.stop()
    const refused = client.openWrite(bench.key(2))
    await bench.until(() => client.errorOf(refused) !== undefined)
    expect(client.errorOf(refused)?.code).toBe('WORKER_DRAINING')
    const reading = client.openRead()
    client.addPartitions(reading, [listed(bench, 0, 0)])
    client.readEnd(reading, 1)
    await bench.readToEnd(client, reading)
    expect(client.first(reading, 'ReadFinish')).toBeDefined()
    client.writeFinish(open, { regionCount: 0, byteCount: 0 }, [0, 0, 0, 0])
    await bench.until(() => client.first(open, 'WriteCommitted') !== undefined)
    await bench.world.clock.drive(stopped)
    expect(client.isClosed).toBe(true)
  })

  it('comes back after a kill with what was committed, and without the rest', async () => {
    const bench = await WorkerBench.start()
    const client = await bench.connect()
    const regions = someRegions(bench)
    await bench.write(client, bench.key(0), regions)
    client.openWrite(bench.key(1))
    bench.workerProcess.kill()
    await bench.until(() => client.isClosed)
    const { ShuffleWorker } = await import('../../shuffle-worker/worker.ts')
    const { optionValues } = await import('../../client/common/options.ts')
    const { workerOptions } = await import('../../shuffle-worker/options.ts')
    const { silentLogger } = await import('../../client/common/log.ts')
    const again = await bench.world.clock.drive(
      ShuffleWorker.start({
        world: bench.world.start('worker'),
        options: optionValues(workerOptions, {
          dataDirectories: ['/data'],
          bindHost: '0.0.0.0',
          dataPort,
          minReservedSpaceBytes: 0,
        }),
        directories: [{ path: '/data', kind: 'ssd' }],
        logger: silentLogger,
      }),
    )
    expect(again.workerId).toBe(bench.worker.workerId)
    expect(again.workerEpoch).toBe(bench.worker.workerEpoch + 1)
    const reader = await bench.connect()
    const reading = reader.openRead()
    reader.addPartitions(reading, [listed(bench, 0, 0), listed(bench, 1, 1)])
    reader.readEnd(reading, 2)
    await bench.readToEnd(reader, reading)
    const payloads = reader.entriesOf(reading).map(({ payload }) => payload)
    expectPayloads(payloads, served(regions, [0, 3]))
    expect(reader.first(reading, 'PartitionFailed')?.code).toBe(2)
  })

  it('serves and takes partitions on its other disks while one hangs', async () => {
    const bench = await WorkerBench.start(
      { diskTimeoutMs: 2000, diskFailedAfterMs: 60_000, diskProbeIntervalMs: 1000 },
      { paths: ['/one', '/two'] },
    )
    const client = await bench.connect()
    const regions = someRegions(bench)
    for (let index = 0; index < 6; index++) await bench.write(client, bench.key(index), regions)
    const onHung = [0, 1, 2, 3, 4, 5].filter((index) => {
      const found = bench.worker.store.lookup(bench.key(index))
      return found.state === 'committed' && found.partition.directory.path === '/two'
    })
    expect(onHung.length).toBeGreaterThan(0)
    const disk = bench.world.disk('worker')
    const fault = disk.inject({ fault: { kind: 'hang' }, path: '/two' })
    const reading = client.openRead()
    client.addPartitions(
      reading,
      [0, 1, 2, 3, 4, 5].map((index) => listed(bench, index, index)),
    )
    client.readEnd(reading, 6)
    await bench.readToEnd(client, reading)
    const failed = client.all(reading, 'PartitionFailed')
    expect(failed.map(({ partition }) => partition).sort()).toEqual(onHung)
    for (const fields of failed) expect(errorOfWire(fields).code).toBe('DISK_FAILED')
    const expected = served(regions, [0, 3]).length
    expect(client.all(reading, 'PartitionFinish').length).toBe(6 - onHung.length)
    expect(client.entriesOf(reading).length).toBe(expected * (6 - onHung.length))
    const written = await bench.write(client, bench.key(9), regions)
    expect(client.errorOf(written)).toBeUndefined()
    fault.remove()
    disk.releaseHung()
    await bench.expectNothingHeld()
  })

  it.each([1, 2, 3, 4, 5, 6])(
    'loses nothing and leaks nothing when connections break at any moment (%i)',
    async (seed) => {
      const bench = await WorkerBench.start({}, { seed, kind: seed % 2 === 0 ? 'hdd' : 'ssd' })
      const { random, clock } = bench.world
      const writer = await bench.connect()
      const contents = Array.from({ length: 5 }, () => someRegions(bench).slice(random.integer(3)))
      for (const [index, regions] of contents.entries()) {
        await bench.write(writer, bench.key(index), regions)
      }
      for (let round = 0; round < 12; round++) {
        const client = await bench.connect()
        const key = bench.key(100 + round)
        const writing = client.openWrite(key)
        const reading = client.openRead(random.integer(4))
        client.addPartitions(
          reading,
          contents.map((_, index) => listed(bench, index, index)),
        )
        client.connection.send(messages.RegionStart, writing, {
          regionIndex: 0,
          isBroadcast: false,
          boundBytes: 50_000,
        })
        for (let step = random.integer(6); step > 0; step--) {
          client.addCredit(reading, 1 + random.integer(5))
          await clock.advance(random.float() * 5)
        }
        client.connection.destroy()
      }
      const reader = await bench.connect()
      const reading = reader.openRead()
      reader.addPartitions(
        reading,
        contents.map((_, index) => listed(bench, index, index)),
      )
      reader.readEnd(reading, contents.length)
      await bench.readToEnd(reader, reading)
      for (const [index, regions] of contents.entries()) {
        const payloads = reader
          .entriesOf(reading)
          .filter(({ partition }) => partition === index)
          .map(({ payload }) => payload)
        expectPayloads(payloads, served(regions, [0, 3]))
      }
      await bench.expectNothingHeld()
      await clock.drive(bench.worker.stop())
    },
  )
})
