// A control plane in one virtual world: a manager, workers with a store of keys without bytes, job
// masters. Each on a machine of its own; each can be killed and started again.

import { silentLogger } from '../../client/common/log.ts'
import {
  parseAttemptId,
  parseClusterId,
  parseDataSetId,
  parseJobId,
  parseWorkerId,
  partitionKeyText,
  type AllocationId,
  type JobId,
  type PartitionKey,
  type PartitionKeyText,
  type WorkerId,
} from '../../client/common/ids.ts'
import { optionValues } from '../../client/common/options.ts'
import { servingFromTheStart, type ServiceRecord } from '../../client/manager/schemas.ts'
import { ManagerClient } from '../../client/manager/manager-client.ts'
import type { ShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { ShuffleMaster } from '../../client/master/shuffle-master.ts'
import type { LostPartition } from '../../client/master/shuffle-master-types.ts'
import { ShuffleManager } from '../../shuffle-manager/manager.ts'
import { managerOptions, type ManagerOptions } from '../../shuffle-manager/options.ts'
import type { ControlledStore } from '../../shuffle-worker/control/controlled-store.ts'
import { WorkerControl } from '../../shuffle-worker/control/worker-control.ts'
import type {
  DirectoryStatus,
  PartitionReport,
  StoreChange,
} from '../../shuffle-worker/storage/storage-types.ts'
import type { VirtualProcess, VirtualWorld } from './virtual-world.ts'

const gigabyte = 1024 ** 3

/** The keys of a worker's data directories: outlives the process, as files do. */
export class FakeStore implements ControlledStore {
  readonly workerId: WorkerId
  readonly partitions = new Map<PartitionKeyText, PartitionReport>()
  readonly directories: ControlledStore['directories']
  readonly releaseCommands: PartitionKeyText[] = []
  workerEpoch = 0
  /** Kept on the disks. */
  service: ServiceRecord = servingFromTheStart
  status: DirectoryStatus
  #listener: ((change: StoreChange) => void) | undefined

  constructor(workerId: string) {
    this.workerId = parseWorkerId(workerId)
    this.status = {
      index: 0,
      path: '/data',
      kind: 'ssd',
      health: 'healthy',
      isFull: false,
      totalBytes: 100 * gigabyte,
      availableBytes: 50 * gigabyte,
      partitionCount: 0,
      partitionBytes: 0,
    }
    this.directories = [{ status: () => this.status }]
  }

  setService(record: ServiceRecord): Promise<ServiceRecord> {
    this.service = record
    return Promise.resolve(record)
  }

  onChange(listener: (change: StoreChange) => void): void {
    this.#listener = listener
  }

  list(): readonly PartitionReport[] {
    return [...this.partitions.values()]
  }

  /** Committed keys. */
  keys(): PartitionKeyText[] {
    return [...this.partitions]
      .filter(([, report]) => report.state === 'committed')
      .map(([name]) => name)
      .sort()
  }

  commit(key: PartitionKey, allocation: AllocationId, byteCount = 1000): void {
    const partition: PartitionReport = { key, allocation, state: 'committed', byteCount }
    if (this.partitions.get(partitionKeyText(key))?.state === 'released') return
    this.partitions.set(partitionKeyText(key), partition)
    this.#listener?.({ kind: 'committed', partition })
  }

  /** Committed and gone again before the manager can hear of it. */
  lose(keys: readonly PartitionKey[]): void {
    for (const key of keys) this.partitions.delete(partitionKeyText(key))
    this.#listener?.({ kind: 'lost', cause: 'data-corrupt', directoryIndex: 0, keys })
  }

  changeDirectory(change: Partial<DirectoryStatus>): void {
    this.status = { ...this.status, ...change }
    this.#listener?.({ kind: 'directory', status: this.status })
  }

  release(keys: readonly PartitionKey[]): void {
    for (const key of keys) {
      const name = partitionKeyText(key)
      this.releaseCommands.push(name)
      const allocation = { managerEpoch: 0, jobEpoch: 0, sequence: 0 }
      this.partitions.set(name, { key, allocation, state: 'released', byteCount: 0 })
    }
    this.#listener?.({ kind: 'released', keys })
  }

  confirmReleased(keys: readonly PartitionKey[]): void {
    for (const key of keys) {
      const name = partitionKeyText(key)
      if (this.partitions.get(name)?.state === 'released') this.partitions.delete(name)
    }
  }
}

export class FakeWorker {
  readonly store: FakeStore
  readonly #plane: ControlPlane
  #process: VirtualProcess | undefined
  control: WorkerControl | undefined

  constructor(plane: ControlPlane, store: FakeStore) {
    this.#plane = plane
    this.store = store
  }

  start(): void {
    this.#process = this.#plane.world.start(this.store.workerId)
    this.store.workerEpoch++
    for (const [name, report] of this.store.partitions) {
      if (report.state === 'writing') this.store.partitions.delete(name)
    }
    this.control = new WorkerControl({
      world: this.#process,
      logger: silentLogger,
      managerClient: this.#plane.client(this.#process),
      store: this.store,
      host: this.store.workerId,
      dataPort: 9710,
      version: 'test',
    })
    this.control.start()
  }

  kill(): void {
    this.#process?.kill()
    this.control = undefined
  }
}

export class FakeJobMaster {
  readonly process: VirtualProcess
  readonly master: ShuffleMaster
  readonly lost: LostPartition[] = []
  readonly failures: string[] = []
  readonly held = new Map<PartitionKeyText, ShuffleDescriptor>()

  constructor(plane: ControlPlane, host: string) {
    this.process = plane.world.start(host)
    this.master = new ShuffleMaster({
      world: this.process,
      logger: silentLogger,
      managerClient: plane.client(this.process),
      bufferSizeBytes: 32_768,
      codec: 'lz4',
    })
  }

  async register(jobId: JobId, options: { readonly takeOver?: boolean } = {}): Promise<void> {
    await this.master.start()
    await this.master.registerJob({
      jobId,
      ...options,
      onPartitionsLost: (lost) => {
        this.lost.push(...lost)
        for (const { key } of lost) this.held.delete(partitionKeyText(key))
      },
      onJobFailed: ({ code }) => this.failures.push(code),
    })
  }

  async allocate(
    jobId: JobId,
    wanted: {
      readonly dataSet: string
      readonly index: number
      readonly attempt: string
      readonly total?: number
      readonly expectedBytes?: number
    },
  ): Promise<ShuffleDescriptor> {
    const { dataSet, index, attempt, total, expectedBytes } = wanted
    const descriptor = await this.master.registerPartitionWithProducer(
      jobId,
      {
        dataSetId: parseDataSetId(dataSet),
        partitionIndex: index,
        totalPartitions: total ?? 100,
        subpartitionCount: 10,
        isBroadcast: false,
        ...(expectedBytes === undefined ? {} : { expectedBytes }),
      },
      { attemptId: parseAttemptId(attempt) },
    )
    this.held.set(partitionKeyText(descriptor.key), descriptor)
    return descriptor
  }

  release(descriptor: ShuffleDescriptor): void {
    this.held.delete(partitionKeyText(descriptor.key))
    this.master.releasePartitionExternally(descriptor)
  }

  kill(): void {
    this.process.kill()
  }
}

export class ControlPlane {
  readonly world: VirtualWorld
  readonly options: ManagerOptions
  readonly workers: FakeWorker[] = []
  manager: ShuffleManager | undefined
  #managerProcess: VirtualProcess | undefined
  #watcher: ManagerClient | undefined

  constructor(world: VirtualWorld, options: Partial<ManagerOptions> = {}) {
    this.world = world
    this.options = optionValues(managerOptions, {
      host: '0.0.0.0',
      stateDirectory: '/state',
      ...options,
    })
  }

  /** A manager and `workerCount` workers, ready to allocate. */
  static async start(
    world: VirtualWorld,
    workerCount: number,
    options: Partial<ManagerOptions> = {},
  ): Promise<ControlPlane> {
    const plane = new ControlPlane(world, { expectedWorkers: workerCount, ...options })
    await plane.startManager()
    for (let index = 1; index <= workerCount; index++) plane.addWorker(`w${String(index)}`)
    await world.clock.advance(1000)
    return plane
  }

  async startManager(): Promise<void> {
    this.#managerProcess = this.world.start('manager')
    const started = ShuffleManager.start({
      world: this.#managerProcess,
      options: this.options,
      logger: silentLogger,
    })
    this.manager = await this.world.drive(started)
  }

  killManager(): void {
    this.#managerProcess?.kill()
    this.manager = undefined
  }

  addWorker(name: string): FakeWorker {
    const worker = new FakeWorker(this, new FakeStore(name))
    this.workers.push(worker)
    worker.start()
    return worker
  }

  worker(workerId: string | undefined): FakeWorker {
    const worker = this.workers.find((one) => one.store.workerId === workerId)
    if (worker === undefined) throw new Error(`no worker ${String(workerId)}`)
    return worker
  }

  /** The worker that a descriptor names commits its partition. */
  commit(descriptor: ShuffleDescriptor): void {
    const { store } = this.worker(descriptor.holders[0]?.workerId)
    store.commit(descriptor.key, descriptor.allocation)
  }

  client(process: VirtualProcess): ManagerClient {
    return new ManagerClient({
      world: process,
      logger: silentLogger,
      url: 'http://manager:9700',
      clusterId: parseClusterId('sluice'),
    })
  }

  /** A client for looking from outside. */
  get watcher(): ManagerClient {
    this.#watcher ??= this.client(this.world.start('watcher'))
    return this.#watcher
  }

  master(host = 'job-master'): FakeJobMaster {
    return new FakeJobMaster(this, host)
  }
}

export const jobA = parseJobId('job-a')
