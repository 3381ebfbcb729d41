// One task process of the client on a virtual world, with fake workers: what the tests of write, read
// and transport stand on. `atRest` proves that everything was given back.

import { expect } from 'vitest'
import type { BufferUsage } from '../../../client/common/buffer-pool.ts'
import { SpareBuffers } from '../../../client/common/spare-buffers.ts'
import { parseAttemptId, parseDataSetId, parseJobId } from '../../../client/common/ids.ts'
import type { JobId, PartitionKey } from '../../../client/common/ids.ts'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import type { PartitionLocation } from '../../../client/manager/manager-client.ts'
import type { ShuffleDescriptor } from '../../../client/master/shuffle-descriptor.ts'
import { InputGate } from '../../../client/read/input-gate.ts'
import type { GateInputRange } from '../../../client/read/gate-inputs.ts'
import type { GateBatch } from '../../../client/read/record-batch.ts'
import { ConnectionPool } from '../../../client/transport/connection-pool.ts'
import { Locator } from '../../../client/transport/locator.ts'
import { ResultPartition } from '../../../client/write/result-partition.ts'
import { defaultEnvironmentOptions } from '../../../client/shuffle-environment.ts'
import type { EnvironmentOptions } from '../../../client/spi.ts'
import type { VirtualProcess } from '../../support/virtual-world.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { clusterId, FakeWorker, type FakeWorkerOptions } from './fake-worker.ts'

export const bufferSizeBytes = 1024

export class ClientBench {
  readonly world: VirtualWorld
  readonly process: VirtualProcess
  readonly waiters: WaiterRegister
  readonly usage: BufferUsage = { buffersInUse: 0 }
  readonly spare: SpareBuffers
  readonly connections: ConnectionPool
  readonly locator: Locator
  readonly settings: EnvironmentOptions
  readonly failures: string[] = []
  /** What the manager answers; undefined: it knows no holder. */
  locate: (jobId: JobId, key: PartitionKey) => Promise<PartitionLocation | undefined> = () =>
    Promise.resolve(undefined)
  closedCount = 0

  constructor(
    options: {
      readonly seed?: number
      readonly settings?: Partial<EnvironmentOptions>
      readonly token?: string
      /** With workers that are not fake ones; a new one unless given. */
      readonly world?: VirtualWorld
    } = {},
  ) {
    this.world = options.world ?? new VirtualWorld({ seed: options.seed ?? 1 })
    this.process = this.world.start('task')
    this.settings = { ...defaultEnvironmentOptions, ...options.settings }
    this.waiters = new WaiterRegister({ clock: this.process.clock })
    const { clock } = this.process
    this.spare = new SpareBuffers({ clock, bytesMax: 64 * bufferSizeBytes, quietMs: 10_000 })
    this.connections = new ConnectionPool({
      network: this.process.network,
      clock: this.process.clock,
      waiters: this.waiters,
      clusterId,
      token: options.token,
      ...this.settings,
    })
    this.locator = new Locator({
      pool: this.connections,
      partitions: {
        locate: async (jobId, keys) => Promise.all(keys.map((key) => this.locate(jobId, key))),
      },
    })
  }

  startWorker(host: string, options: Partial<FakeWorkerOptions> = {}): Promise<FakeWorker> {
    const worker = new FakeWorker({ process: this.world.start(host), ...options })
    return this.drive(worker.start())
  }

  createPartition(
    descriptor: ShuffleDescriptor,
    options: { readonly memoryBytes?: number; readonly signal?: AbortSignal } = {},
  ): ResultPartition {
    return new ResultPartition({
      descriptor,
      memoryBytes: options.memoryBytes ?? 16 * descriptor.bufferSizeBytes,
      expectedBytes: undefined,
      signal: options.signal,
      world: this.process,
      waiters: this.waiters,
      usage: this.usage,
      spare: this.spare,
      locator: this.locator,
      settings: this.settings,
      onClosed: () => {
        this.closedCount += 1
      },
    })
  }

  createGate(
    inputs: readonly GateInputRange[],
    options: { readonly memoryBytes?: number; readonly signal?: AbortSignal } = {},
  ): InputGate {
    return new InputGate({
      inputs,
      memoryBytes: options.memoryBytes ?? 16 * bufferSizeBytes,
      signal: options.signal,
      world: this.process,
      waiters: this.waiters,
      usage: this.usage,
      spare: this.spare,
      locator: this.locator,
      settings: this.settings,
      onInputFailed: (_descriptor, error) => {
        this.failures.push(error.code)
      },
      onClosed: () => {
        this.closedCount += 1
      },
    })
  }

  drive<T>(promise: Promise<T>, withinMs?: number): Promise<T> {
    return this.world.drive(promise, withinMs)
  }

  /** Writes and commits a partition: what `emit` does, then finish. */
  async write(
    descriptor: ShuffleDescriptor,
    emit: (partition: ResultPartition) => Promise<void>,
    memoryBytes?: number,
  ): Promise<Awaited<ReturnType<ResultPartition['finish']>>> {
    const partition = this.createPartition(
      descriptor,
      memoryBytes === undefined ? {} : { memoryBytes },
    )
    await emit(partition)
    return partition.finish()
  }

  /** Nothing is held, waited for or running any more but unused connections. */
  async atRest(workers: readonly FakeWorker[] = []): Promise<void> {
    await this.world.clock.advance(1000)
    expect(this.usage.buffersInUse).toBe(0)
    expect(this.waiters.list()).toEqual([])
    expect(this.connections.channelCount).toBe(0)
    for (const worker of workers) {
      expect(worker.complaints).toEqual([])
      expect(worker.channelCount).toBe(0)
      for (const connection of worker.connections) expect(connection.buffersOut).toBe(0)
    }
    this.connections.close()
    await this.world.clock.advance(60_000)
    expect(this.connections.connectionCount).toBe(0)
    for (const worker of workers) await this.drive(worker.stop())
    await this.world.clock.advance(60_000)
    expect(this.world.clock.timerCount).toBe(0)
  }
}

export const jobId = parseJobId('job-1')

export function descriptorOf(
  worker: Pick<FakeWorker, 'workerId' | 'host' | 'port'>,
  options: Partial<ShuffleDescriptor> & {
    readonly partitionIndex?: number
    readonly attempt?: number
  } = {},
): ShuffleDescriptor {
  const { partitionIndex = 0, attempt = 0, ...rest } = options
  const subpartitionCount = rest.subpartitionCount ?? 4
  return {
    key: {
      jobId,
      dataSetId: parseDataSetId('data-set-1'),
      partitionIndex,
      attemptId: parseAttemptId(`attempt-${String(attempt)}`),
    },
    holders: [
      {
        workerId: worker.workerId,
        host: worker.host,
        port: worker.port,
        firstSubpartition: 0,
        lastSubpartition: subpartitionCount - 1,
      },
    ],
    allocation: { managerEpoch: 1, jobEpoch: 1, sequence: partitionIndex + 1 },
    bufferSizeBytes,
    codec: 'lz4',
    subpartitionCount,
    isBroadcast: false,
    totalPartitions: 1,
    ...rest,
  }
}

/** The whole range of a partition as an input. */
export function wholeInput(
  descriptor: ShuffleDescriptor,
  range: Partial<GateInputRange> = {},
): GateInputRange {
  return {
    descriptor,
    firstSubpartition: 0,
    lastSubpartition: descriptor.subpartitionCount - 1,
    isPending: false,
    ...range,
  }
}

/** What was emitted or received, as text: "input subpartition: record or event". */
export type Received = Map<string, string[]>

export async function emitText(
  partition: ResultPartition,
  subpartition: number,
  text: string,
): Promise<void> {
  await partition.emitRecord(Buffer.from(text), subpartition)
}

/** Adds what a batch holds and recycles it. */
export function collect(received: Received, batch: GateBatch): void {
  const { inputIndex, subpartition } = batch.origin
  const place = `${String(inputIndex)}/${String(subpartition)}`
  const list = received.get(place) ?? []
  received.set(place, list)
  if (batch.kind === 'event') {
    list.push(`event ${String(batch.code)} ${Buffer.from(batch.bytes).toString('latin1')}`)
  } else {
    for (const record of batch) list.push(Buffer.from(record).toString('latin1'))
  }
  batch.recycle()
}

/** Reads a gate to its end. */
export async function readAll(gate: InputGate, received: Received = new Map()): Promise<Received> {
  for (;;) {
    const batch = await gate.nextBatch()
    if (batch === undefined) return received
    collect(received, batch)
  }
}
