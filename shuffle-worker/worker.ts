// One shuffle worker, wired: memory, storage, write and read services, data port, HTTP port and the
// control by the manager. Owned by the process's main, or by a test, which gives it the world.
// Started from the bottom up, stopped from the top down.

import { Registry } from 'prom-client'
import { sleep } from '../client/common/clock.ts'
import { parseClusterId, type WorkerId } from '../client/common/ids.ts'
import type { Logger } from '../client/common/log.ts'
import type { ProcessFacts } from '../client/common/process-facts.ts'
import type { ProcessSettings } from '../client/common/running-options.ts'
import { WaiterRegister, type WaiterDescription } from '../client/common/waiters.ts'
import type { World } from '../client/common/world.ts'
import { ManagerClient } from '../client/manager/manager-client.ts'
import { challengeLength } from '../client/protocol/authentication.ts'
import { WorkerControl } from './control/worker-control.ts'
import { EventLoopLag } from './event-loop-lag.ts'
import { HttpServer } from './http/http-server.ts'
import { JobTimes } from './job-times.ts'
import { MemoryLedger } from './memory/memory-ledger.ts'
import { byPurpose, type WorkerFigures, WorkerMetrics } from './metrics.ts'
import type { DirectoryOption, WorkerOptions } from './options.ts'
import { ReadService } from './read/read-service.ts'
import { ServiceSwitch } from './service-switch.ts'
import { DataStore } from './storage/data-store.ts'
import { DataServer } from './transport/data-server.ts'
import { WriteService } from './write/write-service.ts'

export const workerVersion = '0.1.0'

export interface ShuffleWorkerSettings {
  readonly world: World
  readonly options: WorkerOptions
  readonly directories: readonly DirectoryOption[]
  /** The secret of the cluster; undefined leaves the ports open to all. */
  readonly token?: string | undefined
  readonly logger: Logger
  /** Of the process, where it is one of its own: for people who look at it and change it. */
  readonly settings?: ProcessSettings
  readonly facts?: () => ProcessFacts
}

/** What is started, in this order. */
interface Parts {
  readonly waiters: WaiterRegister
  readonly ledger: MemoryLedger
  readonly metrics: WorkerMetrics
  readonly times: JobTimes
  readonly store: DataStore
  readonly writes: WriteService
  readonly reads: ReadService
  readonly server: DataServer
  readonly http: HttpServer
  readonly managerClient: ManagerClient
  readonly control: WorkerControl
  readonly service: ServiceSwitch
  readonly lag: EventLoopLag
}

export class ShuffleWorker {
  readonly #settings: ShuffleWorkerSettings
  readonly #parts: Parts
  #isStopping = false
  #stopped: Promise<void> | undefined

  private constructor(settings: ShuffleWorkerSettings, parts: Parts) {
    this.#settings = settings
    this.#parts = parts
  }

  /** Rejects when a directory is in use or of another cluster, or a port can't be had. */
  static async start(settings: ShuffleWorkerSettings): Promise<ShuffleWorker> {
    warnWhenOpen(settings)
    const undo: (() => Promise<void> | void)[] = []
    try {
      const foundation = await openFoundation(settings, undo)
      const services = startServices(settings, foundation, undo)
      const server = await listenForData(settings, { ...foundation, ...services }, undo)
      const started: { worker?: ShuffleWorker } = {}
      const http = await listenForPeople(settings, { ...foundation, server }, () => started.worker)
      undo.push(() => http.close())
      const control = makeControl(settings, { ...foundation, ...services, server, http })
      const lag = new EventLoopLag(settings.world.clock)
      const made = new ShuffleWorker(settings, {
        ...foundation,
        ...services,
        server,
        http,
        ...control,
        lag,
      })
      started.worker = made
      foundation.metrics.observe(() => made.#figures())
      lag.start()
      control.service.apply(foundation.store.service)
      control.control.start()
      return made
    } catch (error) {
      for (const step of undo.reverse()) await step()
      throw error
    }
  }

  get workerId(): WorkerId {
    return this.#parts.store.workerId
  }

  get workerEpoch(): number {
    return this.#parts.store.workerEpoch
  }

  get dataPort(): number {
    return this.#parts.server.port
  }

  get httpPort(): number {
    return this.#parts.http.port
  }

  get registry(): Registry {
    return this.#parts.metrics.registry
  }

  get ledger(): MemoryLedger {
    return this.#parts.ledger
  }

  get store(): DataStore {
    return this.#parts.store
  }

  /** Everything that something in this process waits for, oldest first. */
  get waits(): readonly WaiterDescription[] {
    return this.#parts.waiters.list()
  }

  /** Why no new work should come; undefined when it may. */
  get notReady(): string | undefined {
    if (this.#isStopping) return 'the worker is stopping'
    const { state, reason } = this.#parts.store.service
    if (state === 'draining') return `the worker drains${reason === '' ? '' : `: ${reason}`}`
    if (!this.#parts.control.isRegistered) return 'the manager does not know the worker yet'
    const hasDisk = this.#parts.store.directories.some(({ health }) => health === 'healthy')
    return hasDisk ? undefined : 'no data directory is healthy'
  }

  /** Lets open writes end within their budget, serves readers meanwhile, closes everything. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  /** What a scrape or the status page shows. */
  status(): object {
    const { store, server } = this.#parts
    const figures = this.#figures()
    return {
      workerId: store.workerId,
      workerEpoch: store.workerEpoch,
      clusterId: this.#settings.options.clusterId,
      version: workerVersion,
      state: this.#isDraining ? 'draining' : 'running',
      service: store.service,
      notReady: this.notReady,
      dataPort: server.port,
      directories: store.directories.map((directory) => directory.status()),
      ...figures,
    }
  }

  get #isDraining(): boolean {
    return this.#isStopping || this.#parts.store.service.state === 'draining'
  }

  #figures(): WorkerFigures {
    const { ledger, server, store, writes, reads, waiters, lag } = this.#parts
    const short = {
      write: writes.regionsShortOfMemory,
      read: reads.shortOfMemory,
      index: 0,
      control: 0,
    }
    return {
      memoryBytes: byPurpose((purpose) => ledger.usedBytes(purpose)),
      memoryWaiters: byPurpose((purpose) => ledger.waiterCount(purpose) + short[purpose]),
      connections: server.connectionCount,
      queuedBytes: server.queuedBytes,
      channels: { write: writes.openWrites, read: reads.openReads },
      creditOutstanding: { write: writes.creditOutstanding, read: reads.creditOutstanding },
      heldBuffers: { write: writes.heldBuffers, read: reads.heldBuffers },
      aheadBuffers: reads.aheadBuffers,
      waitingRegions: writes.waitingRegions,
      listedPartitions: reads.openEntries,
      waiters: waiters.count,
      eventLoopLagMs: lag.worstMs,
      isDraining: this.#isDraining,
      isStopping: this.#isStopping,
      serviceState: store.service.state,
      writeStateMs: writes.stateSums(),
      readStateMs: reads.stateSums(),
    }
  }

  async #stop(): Promise<void> {
    const { options, logger } = this.#settings
    const { control, service, writes, reads, server } = this.#parts
    const { http, store, managerClient, ledger, lag } = this.#parts
    this.#isStopping = true
    control.drain()
    service.stop()
    if (!(await this.#within(writes.idle(), options.drainTimeoutMs))) {
      logger.warn({ openWrites: writes.openWrites }, 'writes are still open: they are interrupted')
      writes.interrupt()
    }
    writes.close()
    await this.#within(reads.idle(), options.drainReadersTimeoutMs)
    await control.stop(options.leaveForEver ? 'for-ever' : 'for-a-while')
    await managerClient.close()
    await server.close()
    await reads.close()
    await http.close()
    await store.close()
    lag.stop()
    ledger.close()
  }

  /** Whether `work` ended within the time. */
  async #within(work: Promise<void>, timeoutMs: number): Promise<boolean> {
    const abort = new AbortController()
    const timer = sleep(this.#settings.world.clock, timeoutMs, abort.signal).then(
      () => false,
      () => false,
    )
    const isDone = await Promise.race([work.then(() => true), timer])
    abort.abort()
    return isDone
  }
}

type Undo = (() => Promise<void> | void)[]
type Foundation = Pick<Parts, 'waiters' | 'ledger' | 'metrics' | 'store' | 'times'>
type Services = Pick<Parts, 'writes' | 'reads'>

async function openFoundation(settings: ShuffleWorkerSettings, undo: Undo): Promise<Foundation> {
  const { world, options, logger } = settings
  const registry = new Registry()
  const waiters = new WaiterRegister({ clock: world.clock })
  const ledger = new MemoryLedger({
    clock: world.clock,
    waiters,
    totalBytes: options.memoryBytes,
    bufferSizeBytes: options.bufferSizeBytes,
  })
  undo.push(() => {
    ledger.close()
  })
  const store = await DataStore.open({
    world,
    clusterId: parseClusterId(options.clusterId),
    directories: settings.directories,
    ledger,
    options: {
      durability: options.durability,
      preferredDiskKind: options.preferredDiskKind,
      minReservedSpaceBytes: options.minReservedSpaceBytes,
      diskOperationTimeoutMs: options.diskTimeoutMs,
      probeIntervalMs: options.diskProbeIntervalMs,
      diskFailedAfterMs: options.diskFailedAfterMs,
      smallPartitionBytesMax: options.smallPartitionBytes,
      releasedReadersTimeoutMs: options.releasedReadersTimeoutMs,
    },
    registry,
    logger,
  })
  undo.push(() => store.close())
  return { waiters, ledger, metrics: new WorkerMetrics(registry), store, times: new JobTimes() }
}

function startServices(
  settings: ShuffleWorkerSettings,
  foundation: Foundation,
  undo: Undo,
): Services {
  const { options, logger } = settings
  const { clock } = settings.world
  const { waiters, ledger, metrics, store, times } = foundation
  const writes = new WriteService({
    clock,
    waiters,
    logger,
    store,
    ledger,
    options,
    onTimes: (jobId, sums) => {
      times.add('write', { jobId, sums })
    },
  })
  undo.push(() => {
    writes.close()
  })
  const reads = new ReadService({
    clock,
    logger,
    store,
    ledger,
    options,
    turnsOf: (directory) => writes.turnsOf(directory),
    onDiskRead: (bytes) => {
      metrics.diskRead(bytes)
    },
    onTimes: (jobId, sums) => {
      times.add('read', { jobId, sums })
    },
  })
  undo.push(() => reads.close())
  return { writes, reads }
}

async function listenForData(
  settings: ShuffleWorkerSettings,
  parts: Foundation & Services,
  undo: Undo,
): Promise<DataServer> {
  const { world, options, token, logger } = settings
  const { store, ledger, metrics, writes, reads } = parts
  // A few that are stuck leave the others most of the read part; many are ended by the server.
  const queuedBytesBound = Math.min(
    options.connectionQueueBytes,
    Math.max(8 * options.bufferSizeBytes, Math.floor(ledger.partBytes('read') / 8)),
  )
  const server = new DataServer({
    network: world.network,
    clock: world.clock,
    isShortOfMemory: () => reads.shortOfMemory > 0,
    address: { host: options.bindHost, port: options.dataPort },
    connectionsMax: options.connectionsMax,
    handlerOptions: () => ({
      clock: world.clock,
      logger,
      handshake: {
        role: 'worker',
        software: `sluice-worker/${workerVersion}`,
        clusterId: parseClusterId(options.clusterId),
        workerId: store.workerId,
        workerEpoch: store.workerEpoch,
        bufferSizeBytes: options.bufferSizeBytes,
        token,
        challenge: world.random.bytes(challengeLength),
      },
      writes,
      reads,
      lookup: (key) => store.lookup(key),
      counters: metrics,
      channelsMax: options.channelsPerConnectionMax,
      pingIntervalMs: options.pingIntervalMs,
      idlePingsMax: options.idlePingsMax,
      handshakeTimeoutMs: options.handshakeTimeoutMs,
      queuedBytesBound,
    }),
  })
  await server.start()
  undo.push(() => server.close())
  return server
}

function listenForPeople(
  settings: ShuffleWorkerSettings,
  parts: Foundation & Pick<Parts, 'server'>,
  worker: () => ShuffleWorker | undefined,
): Promise<HttpServer> {
  const { world, options, token, logger } = settings
  const { metrics, store, waiters } = parts
  return HttpServer.listen(
    {
      clock: world.clock,
      registry: metrics.registry,
      logger,
      token,
      metricsNeedToken: options.metricsNeedToken,
      metricsAllow: () => options.metricsAllow,
      process: {
        version: workerVersion,
        wallMs: () => world.clock.wallMs(),
        settings: settings.settings,
        facts: settings.facts ?? (() => ({})),
      },
      notReady: () => {
        const made = worker()
        return made === undefined ? 'the worker is starting' : made.notReady
      },
      status: () => worker()?.status() ?? {},
      waiters: () => waiters.list(),
      partitions: () => store.list(),
    },
    { network: world.network, address: { host: options.bindHost, port: options.httpPort } },
  )
}

function makeControl(
  settings: ShuffleWorkerSettings,
  parts: Pick<Parts, 'store' | 'times' | 'writes' | 'server' | 'http'>,
): Pick<Parts, 'managerClient' | 'control' | 'service'> {
  const { world, options, token, logger } = settings
  const managerClient = new ManagerClient({
    world,
    logger,
    url: options.manager,
    clusterId: parseClusterId(options.clusterId),
    ...(token === undefined ? {} : { token }),
  })
  const service = new ServiceSwitch({
    clock: world.clock,
    writes: parts.writes,
    drainTimeoutMs: () => options.drainTimeoutMs,
  })
  const control = new WorkerControl({
    world,
    logger,
    managerClient,
    store: parts.store,
    host: options.host ?? options.bindHost,
    dataPort: parts.server.port,
    httpPort: parts.http.port,
    version: workerVersion,
    takeTimeInState: () => parts.times.take(),
    openWrites: () => parts.writes.openWrites,
    onService: (record) => {
      service.apply(record)
    },
  })
  return { managerClient, control, service }
}

function warnWhenOpen({ options, token, logger }: ShuffleWorkerSettings): void {
  if (token !== undefined || isLoopback(options.bindHost)) return
  logger.warn(
    { bindHost: options.bindHost },
    'THE DATA PORT IS OPEN TO EVERYONE who can reach it: give --token-file, or bind to 127.0.0.1',
  )
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
