// The shuffle of one task process: what its tasks share. It makes ResultPartitions and InputGates and
// owns what they stand on: connections, the locator, the register of waiters, reports. Owned by the
// runtime's task process.

import { silentLogger, type Logger } from './common/log.ts'
import type { BufferUsage } from './common/buffer-pool.ts'
import { SpareBuffers } from './common/spare-buffers.ts'
import { ShuffleError } from './common/errors.ts'
import { parseClusterId, parseWorkerId } from './common/ids.ts'
import { realWorld } from './common/real-world.ts'
import { WaiterRegister } from './common/waiters.ts'
import type { World } from './common/world.ts'
import { ManagerClient } from './manager/manager-client.ts'
import type { ShuffleDescriptor } from './master/shuffle-descriptor.ts'
import { InputGate } from './read/input-gate.ts'
import type {
  EnvironmentOptions,
  EnvironmentStatistics,
  InputGate as InputGateInterface,
  InputGateOptions,
  ResultPartition as ResultPartitionInterface,
  ResultPartitionOptions,
  ShuffleEnvironment as ShuffleEnvironmentInterface,
  ShuffleEnvironmentContext,
} from './spi.ts'
import { ConnectionPool } from './transport/connection-pool.ts'
import { Locator } from './transport/locator.ts'
import { TaskReports } from './transport/task-reports.ts'
import { ResultPartition } from './write/result-partition.ts'

const mebibyte = 1024 * 1024
const minuteMs = 60_000

export const defaultEnvironmentOptions: EnvironmentOptions = {
  // 256 buffers: regions of 6 MiB, each a few tens of KiB for a hundred consumers.
  partitionMemoryBytes: 8 * mebibyte,
  // 256 buffers: two for each of a hundred workers and as many again to float.
  gateMemoryBytes: 8 * mebibyte,
  recordBytesMax: 512 * mebibyte,
  connectTimeoutMs: 10_000,
  connectionIdleMs: 30_000,
  pingIntervalMs: 10_000,
  idlePingsMax: 3,
  writeOpenTimeoutMs: 15_000,
  regionTimeoutMs: minuteMs,
  commitTimeoutMs: 2 * minuteMs,
  // The manager's recovery time, and the time that a worker then takes to open its port.
  readUnreachableTimeoutMs: 3 * minuteMs + 15_000,
  readIdleTimeoutMs: 5 * minuteMs,
  readRetryTimeoutMs: minuteMs,
  retryDelayMinMs: 100,
  retryDelayMaxMs: 5000,
  // Node's thread pool has four threads; more would only hold more memory.
  computeParallelism: 4,
  isCompressionEnabled: true,
}

/** The memory of some dozen tasks; never more than were open at the same time. */
const spareBytesMax = 256 * 1024 * 1024
/** The next task of a running job comes sooner. */
const spareQuietMs = 10_000

export class ShuffleEnvironment implements ShuffleEnvironmentInterface {
  readonly #world: World
  readonly #options: EnvironmentOptions
  readonly #logger: Logger
  readonly #waiters: WaiterRegister
  readonly #usage: BufferUsage = { buffersInUse: 0 }
  readonly #spare: SpareBuffers
  readonly #managerClient: ManagerClient
  readonly #connections: ConnectionPool
  readonly #locator: Locator
  readonly #reports: TaskReports
  readonly #partitions = new Set<ResultPartition>()
  readonly #gates = new Set<InputGate>()
  #bytesWritten = 0
  #bytesRead = 0
  #closing: Promise<void> | undefined

  constructor(context: ShuffleEnvironmentContext) {
    const world = context.world ?? realWorld()
    const clusterId = parseClusterId(context.clusterId)
    const { token } = context
    this.#world = world
    this.#options = { ...defaultEnvironmentOptions, ...context.options }
    this.#logger = context.logger ?? silentLogger
    this.#waiters = new WaiterRegister({ clock: world.clock })
    this.#spare = new SpareBuffers({
      clock: world.clock,
      bytesMax: spareBytesMax,
      quietMs: spareQuietMs,
    })
    this.#managerClient = new ManagerClient({
      world,
      logger: this.#logger,
      url: context.managerUrl,
      clusterId,
      ...(token === undefined ? {} : { token }),
    })
    this.#connections = new ConnectionPool({
      network: world.network,
      clock: world.clock,
      waiters: this.#waiters,
      clusterId,
      token,
      ...this.#options,
    })
    this.#locator = new Locator({ pool: this.#connections, partitions: this.#managerClient })
    this.#reports = new TaskReports({ clock: world.clock, target: this.#managerClient })
  }

  createResultPartition(options: ResultPartitionOptions): ResultPartitionInterface {
    this.#throwIfClosed()
    const { descriptor } = options
    const partition = new ResultPartition({
      descriptor,
      memoryBytes: options.memoryBytes ?? this.#options.partitionMemoryBytes,
      expectedBytes: options.expectedBytes,
      signal: options.signal,
      world: this.#world,
      waiters: this.#waiters,
      usage: this.#usage,
      spare: this.#spare,
      locator: this.#locator,
      settings: this.#options,
      onClosed: (closed) => {
        this.#partitions.delete(closed)
        this.#bytesWritten += closed.storedBytes
        this.#reports.addTimes(descriptor.key.jobId, 'write', closed.timeInState())
        if (closed.failure !== undefined) this.#reportFailure(descriptor, closed.failure)
      },
    })
    if (!partition.isClosed) this.#partitions.add(partition)
    return partition
  }

  createInputGate(options: InputGateOptions): InputGateInterface {
    this.#throwIfClosed()
    const jobId = options.inputs[0]?.descriptor.key.jobId
    const gate = new InputGate({
      inputs: options.inputs.map(
        ({ descriptor, firstSubpartition, lastSubpartition, isPending = false }) => ({
          descriptor,
          firstSubpartition,
          lastSubpartition,
          isPending,
        }),
      ),
      memoryBytes: options.memoryBytes ?? this.#options.gateMemoryBytes,
      signal: options.signal,
      world: this.#world,
      waiters: this.#waiters,
      usage: this.#usage,
      spare: this.#spare,
      locator: this.#locator,
      settings: this.#options,
      onInputFailed: (descriptor, error) => {
        this.#reportFailure(descriptor, error)
      },
      onClosed: (closed) => {
        this.#gates.delete(closed)
        this.#bytesRead += closed.receivedBytes
        if (jobId !== undefined) this.#reports.addTimes(jobId, 'read', closed.timeInState())
      },
    })
    if (!gate.isClosed) this.#gates.add(gate)
    return gate
  }

  statistics(): EnvironmentStatistics {
    let bytesWritten = this.#bytesWritten
    let bytesRead = this.#bytesRead
    for (const partition of this.#partitions) bytesWritten += partition.storedBytes
    for (const gate of this.#gates) bytesRead += gate.receivedBytes
    return {
      openPartitions: this.#partitions.size,
      openGates: this.#gates.size,
      connections: this.#connections.connectionCount,
      channels: this.#connections.channelCount,
      buffersInUse: this.#usage.buffersInUse,
      waiters: this.#waiters.list(),
      bytesWritten,
      bytesRead,
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeOnce()
    return this.#closing
  }

  async #closeOnce(): Promise<void> {
    const reason = closedError()
    for (const partition of [...this.#partitions]) partition.abort(reason)
    await Promise.all([...this.#gates].map((gate) => gate.close()))
    this.#spare.close()
    this.#connections.close()
    await this.#reports.close()
    await this.#managerClient.close()
  }

  #reportFailure(descriptor: ShuffleDescriptor, error: ShuffleError): void {
    const fields = { ...error.fields, code: error.code }
    if (error.code === 'CANCELLED') {
      this.#logger.debug(fields, 'shuffle work was cancelled')
      return
    }
    this.#logger.warn({ ...fields, reason: error.message }, 'a partition failed in this process')
    const workerId = parseWorkerId(descriptor.holders[0]?.workerId ?? 'unknown')
    this.#reports.addFailure({ key: descriptor.key, workerId, code: error.code })
  }

  #throwIfClosed(): void {
    if (this.#closing !== undefined) throw closedError()
  }
}

function closedError(): ShuffleError {
  return new ShuffleError('CANCELLED', 'the shuffle environment was closed')
}
