import { describe, expect, test } from 'vitest'
import { BufferPool } from '../../../client/common/buffer-pool.ts'
import { ShuffleError } from '../../../client/common/errors.ts'
import { partitionKeyText } from '../../../client/common/ids.ts'
import type { ShuffleDescriptor } from '../../../client/master/shuffle-descriptor.ts'
import { CreditShares } from '../../../client/read/credit-shares.ts'
import { InputPartition } from '../../../client/read/input-partition.ts'
import { WorkerReader } from '../../../client/read/worker-reader.ts'
import { bufferSizeBytes, ClientBench, descriptorOf, emitText } from '../support/client-bench.ts'

async function setUp(partitionCount: number) {
  const bench = new ClientBench()
  const worker = await bench.startWorker('w1')
  const descriptors: ShuffleDescriptor[] = []
  for (let partitionIndex = 0; partitionIndex < partitionCount; partitionIndex += 1) {
    const descriptor = descriptorOf(worker, { partitionIndex })
    await bench.drive(
      bench.write(descriptor, async (partition) => {
        for (let index = 0; index < 100; index += 1)
          await emitText(partition, 0, `${String(index)} `.repeat(30))
      }),
    )
    descriptors.push(descriptor)
  }
  const { clock, random } = bench.process
  const pool = new BufferPool({
    bufferSizeBytes,
    bufferCount: 8,
    waiters: bench.waiters,
    usage: bench.usage,
  })
  const shares = new CreditShares({ pool, clock, waiters: bench.waiters })
  const finished: number[] = []
  const failed: [number, ShuffleError][] = []
  const reader = new WorkerReader({
    worker: { workerId: worker.workerId, host: worker.host, port: worker.port },
    bufferSizeBytes,
    connect: (address, key, signal) => bench.locator.connect(address, key, signal),
    shares,
    clock,
    random,
    waiters: bench.waiters,
    settings: bench.settings,
    sink: {
      onEntry: ({ body }) => {
        body.release()
      },
      onFrame: () => undefined,
      onPartitionFinished: ({ inputIndex }) => {
        finished.push(inputIndex)
      },
      onPartitionFailed: ({ inputIndex }, error) => {
        failed.push([inputIndex, error])
      },
    },
  })
  const partitions = descriptors.map(
    (descriptor, inputIndex) =>
      new InputPartition(
        { inputIndex, descriptor, firstSubpartition: 0, lastSubpartition: 3, isPending: false },
        bench.settings,
      ),
  )
  const close = async () => {
    await bench.drive(reader.close(new ShuffleError('CANCELLED', 'the test is over')))
    shares.close()
    await bench.atRest([worker])
  }
  return { bench, worker, pool, reader, partitions, finished, failed, close }
}

describe('a worker reader', () => {
  test('reads what is added, also after a first list has ended', async () => {
    const { bench, worker, reader, partitions, finished, close } = await setUp(3)
    const [first, second, third] = partitions
    if (first === undefined || second === undefined || third === undefined) return
    reader.add(first)
    reader.add(second)
    await bench.world.clock.runUntil(() => finished.length === 2)
    await bench.world.clock.advance(100)
    reader.add(third)
    await bench.world.clock.runUntil(() => finished.length === 3)
    expect(worker.log.filter((line) => line.startsWith('OpenRead'))).toHaveLength(2)
    await close()
  })

  test('one that is removed is dropped and nothing is told of it', async () => {
    const { bench, worker, reader, partitions, finished, failed, close } = await setUp(2)
    for (const partition of partitions) reader.add(partition)
    await bench.world.clock.runUntil(() => (partitions[0]?.entryCount ?? 0) > 0)
    const [dropped] = partitions
    if (dropped !== undefined) reader.remove(dropped)
    await bench.world.clock.runUntil(() => finished.length === 1)
    await bench.world.clock.advance(1000)
    expect([finished, failed]).toEqual([[1], []])
    expect(worker.log.some((line) => line.startsWith('DropPartition'))).toBe(true)
    await close()
  })

  test('whose connection breaks while it waits for buffers goes on with all it was to read', async () => {
    const { bench, pool, reader, partitions, finished, close } = await setUp(2)
    const others = Array.from({ length: 8 }, () => pool.acquire())
    await bench.world.clock.advance(100_000)
    for (const partition of partitions) reader.add(partition)
    await bench.world.clock.runUntil(() => bench.connections.connectionCount === 1)
    await bench.world.clock.advance(100)
    for (const link of bench.world.network.links) link.cut()
    await bench.world.clock.advance(100)
    for (const buffer of others) buffer?.recycle()
    await bench.world.clock.runUntil(() => finished.length === 2, { withinMs: 60_000 })
    await close()
  })

  test('goes on when its turn for buffers comes, however often its connection closed for want of use', async () => {
    const { bench, pool, reader, partitions, finished, failed, close } = await setUp(2)
    const take = () => Array.from({ length: pool.freeCount }, () => pool.acquire())
    let others = take()
    await bench.world.clock.advance(100_000)
    for (const partition of partitions) reader.add(partition)
    // Each turn comes when the connection has closed, and the buffers go to another reader at once.
    for (let turn = 0; turn < 10; turn += 1) {
      await bench.world.clock.advance(bench.settings.connectionIdleMs + 10_000)
      for (const buffer of others) buffer?.recycle()
      await bench.world.clock.advance(20)
      others = take()
    }
    for (const buffer of others) buffer?.recycle()
    await bench.world.clock.runUntil(() => finished.length + failed.length === 2)
    expect(failed).toEqual([])
    await close()
  })

  test('a worker that is busy when it can be reached again is given the time of a busy one', async () => {
    const { bench, worker, reader, partitions, finished, failed, close } = await setUp(2)
    await bench.world.clock.advance(100_000)
    bench.world.network.refuse('w1')
    for (const partition of partitions) reader.add(partition)
    await bench.world.clock.advance(bench.settings.readRetryTimeoutMs + 30_000)
    worker.faults.refuseReads = ['BUSY', 'BUSY']
    bench.world.network.accept('w1')
    await bench.world.clock.runUntil(() => finished.length + failed.length === 2)
    expect(failed).toEqual([])
    await close()
  })

  test('a partition that stays busy fails after the retry time, the others are read', async () => {
    const { bench, worker, reader, partitions, finished, failed, close } = await setUp(2)
    const key = partitions[0]?.descriptor.key
    if (key === undefined) return
    worker.faults.failPartitions.set(
      partitionKeyText(key),
      Array.from({ length: 1000 }, () => 'BUSY' as const),
    )
    for (const partition of partitions) reader.add(partition)
    await bench.world.clock.runUntil(() => finished.length === 1)
    expect(failed).toEqual([])
    await bench.world.clock.runUntil(() => failed.length === 1)
    expect(failed[0]?.[0]).toBe(0)
    expect(failed[0]?.[1]).toMatchObject({ code: 'BUSY', fields: { partitionIndex: 0 } })
    expect(bench.world.clock.nowMs()).toBeGreaterThan(60_000)
    await close()
  })

  test('a partition that is busy again after something of it came is given its time again', async () => {
    const { bench, worker, reader, partitions, finished, failed, close } = await setUp(1)
    const [partition] = partitions
    if (partition === undefined) return
    const name = partitionKeyText(partition.descriptor.key)
    worker.faults.failPartitions.set(name, ['BUSY'])
    reader.add(partition)
    await bench.world.clock.runUntil(() => partition.entryCount > 0)
    worker.faults.withholdsData = true
    await bench.world.clock.advance(bench.settings.readRetryTimeoutMs + 10_000)
    expect(finished).toEqual([])
    worker.faults.withholdsData = false
    worker.faults.failPartitions.set(name, ['BUSY'])
    for (const link of bench.world.network.links) link.cut()
    await bench.world.clock.runUntil(() => finished.length + failed.length === 1)
    expect(failed).toEqual([])
    await close()
  })

  test('one that is added while it pauses is read at once', async () => {
    const { bench, worker, reader, partitions, finished, close } = await setUp(2)
    const [busy, added] = partitions
    if (busy === undefined || added === undefined) return
    const failures = Array.from({ length: 1000 }, () => 'BUSY' as const)
    worker.faults.failPartitions.set(partitionKeyText(busy.descriptor.key), failures)
    reader.add(busy)
    await bench.world.clock.advance(30_000)
    const pause = bench.waiters.list().find(({ name }) => name === 'the next attempt to read')
    expect(pause).toBeDefined()
    reader.add(added)
    await bench.world.clock.runUntil(() => finished.length === 1, { withinMs: 100 })
    await close()
  })

  test('a worker that stays busy fails all of it after the retry time', async () => {
    const { bench, worker, reader, partitions, failed, close } = await setUp(2)
    worker.faults.refuseReads = Array.from({ length: 1000 }, () => 'BUSY' as const)
    for (const partition of partitions) reader.add(partition)
    await bench.world.clock.runUntil(() => failed.length === 2)
    expect(failed.map(([, { code }]) => code)).toEqual(['BUSY', 'BUSY'])
    worker.faults.refuseReads = []
    await close()
  })

  test('a refusal that no time mends fails all of it at once', async () => {
    const { bench, worker, reader, partitions, failed, close } = await setUp(2)
    worker.faults.refuseReads = ['LIMIT_EXCEEDED']
    for (const partition of partitions) reader.add(partition)
    await bench.world.clock.runUntil(() => failed.length === 2, { withinMs: 1000 })
    expect(failed.map(([, { code }]) => code)).toEqual(['LIMIT_EXCEEDED', 'LIMIT_EXCEEDED'])
    await close()
  })

  test('closed while it pauses or connects it ends', async () => {
    for (const waitMs of [0, 0.1, 50, 3000]) {
      const { bench, reader, partitions, close } = await setUp(1)
      await bench.world.clock.advance(100_000)
      bench.world.network.refuse('w1')
      for (const partition of partitions) reader.add(partition)
      await bench.world.clock.advance(waitMs)
      await close()
    }
  })
})
