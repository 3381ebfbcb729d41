import { describe, expect, test } from 'vitest'
import { ShuffleError } from '../../client/common/errors.ts'
import { defaultEnvironmentOptions, ShuffleEnvironment } from '../../client/shuffle-environment.ts'
import type { InputGate } from '../../client/spi.ts'
import { VirtualWorld } from '../support/virtual-world.ts'
import { collect, descriptorOf, type Received } from './support/client-bench.ts'
import { clusterId, FakeWorker } from './support/fake-worker.ts'

async function setUp(options: { readonly token?: string; readonly cluster?: string } = {}) {
  const world = new VirtualWorld()
  const worker = new FakeWorker({
    process: world.start('w1'),
    ...(options.token === undefined ? {} : { token: options.token }),
  })
  await world.drive(worker.start())
  const logged: string[] = []
  const note = (fields: Readonly<Record<string, unknown>>, message: string) => {
    logged.push(`${message} ${String(fields['code'])}`)
  }
  const logger = {
    debug: () => undefined,
    info: note,
    warn: note,
    error: note,
    child: () => logger,
  }
  const environment = new ShuffleEnvironment({
    managerUrl: 'http://manager:9700',
    clusterId: options.cluster ?? clusterId,
    world: world.start('task'),
    logger,
    ...(options.token === undefined ? {} : { token: options.token }),
  })
  return { world, worker, environment, logged }
}

async function readAll(gate: InputGate): Promise<Received> {
  const received: Received = new Map()
  for await (const batch of gate) collect(received, batch)
  return received
}

describe('a shuffle environment', () => {
  test('makes partitions and gates, and is back to nothing when they are done', async () => {
    const { world, worker, environment } = await setUp({ token: 'secret' })
    const descriptor = descriptorOf(worker, { bufferSizeBytes: 32_768 })
    const partition = environment.createResultPartition({ descriptor })
    expect(environment.statistics()).toMatchObject({ openPartitions: 1, openGates: 0 })
    for (let index = 0; index < 100; index += 1) {
      await partition.emitRecord(Buffer.from(`record ${String(index)}`), index % 4)
    }
    const totals = await world.drive(partition.finish())
    const gate = environment.createInputGate({
      inputs: [{ descriptor, firstSubpartition: 1, lastSubpartition: 2 }],
    })
    const received = await world.drive(readAll(gate))
    expect([...received.keys()].sort()).toEqual(['0/1', '0/2'])
    expect(received.get('0/1')).toHaveLength(25)
    await world.clock.advance(1000)
    expect(environment.statistics()).toEqual({
      openPartitions: 0,
      openGates: 0,
      connections: 1,
      channels: 0,
      buffersInUse: 0,
      waiters: [],
      bytesWritten: totals.storedBytes,
      bytesRead: gate.inputs()[0]?.byteCount,
    })
    await world.drive(environment.close())
    await world.drive(worker.stop())
    await world.clock.advance(60_000)
    expect(world.clock.timerCount).toBe(0)
  })

  test('closed it aborts what is open, and makes nothing more', async () => {
    const { world, worker, environment } = await setUp()
    worker.faults.withholdsCredit = true
    const descriptor = descriptorOf(worker)
    const partition = environment.createResultPartition({ descriptor, memoryBytes: 16_384 })
    await partition.emitRecord(Buffer.of(1), 0)
    const finishing = partition.finish()
    const gate = environment.createInputGate({
      inputs: [{ descriptor, firstSubpartition: 0, lastSubpartition: 3, isPending: true }],
      memoryBytes: 16_384,
    })
    const reading = gate.nextBatch()
    for (const promise of [finishing, reading]) promise.catch(() => undefined)
    await world.clock.advance(5000)
    expect(environment.statistics().waiters.map(({ name }) => name)).toContain('credit of a region')
    await world.drive(Promise.all([environment.close(), environment.close()]))
    await expect(finishing).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(reading).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(() => environment.createResultPartition({ descriptor })).toThrow(ShuffleError)
    expect(() => environment.createInputGate({ inputs: [] })).toThrow(/closed/)
    await world.clock.advance(1000)
    expect(environment.statistics()).toMatchObject({
      openPartitions: 0,
      openGates: 0,
      connections: 0,
      channels: 0,
      buffersInUse: 0,
      waiters: [],
    })
    await world.drive(worker.stop())
    await world.clock.advance(60_000)
    expect(world.clock.timerCount).toBe(0)
  })

  test('another cluster’s worker is refused by name', async () => {
    const { world, worker, environment, logged } = await setUp({ cluster: 'other-cluster' })
    const partition = environment.createResultPartition({
      descriptor: descriptorOf(worker, { bufferSizeBytes: 32_768 }),
    })
    await expect(world.drive(partition.finish())).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(logged).toEqual(['a partition failed in this process UNAUTHENTICATED'])
    await world.drive(environment.close())
  })

  test('refuses a descriptor that it cannot write, and opens nothing for it', async () => {
    const { world, worker, environment } = await setUp()
    const descriptor = descriptorOf(worker, { codec: 'zstd' })
    expect(() => environment.createResultPartition({ descriptor })).toThrow(/not zstd/)
    expect(() =>
      environment.createInputGate({
        inputs: [{ descriptor, firstSubpartition: 0, lastSubpartition: 0 }],
      }),
    ).toThrow(/not zstd/)
    expect(environment.statistics()).toMatchObject({ openPartitions: 0, openGates: 0 })
    await world.drive(environment.close())
  })
})

test('readers wait for a worker longer than the manager’s recovery time', () => {
  expect(defaultEnvironmentOptions.readUnreachableTimeoutMs).toBe(195_000)
})
