// The processes of one simulated cluster: a manager, workers, hosts of tasks. Each can be killed and is
// started again by whoever supervises it, as a container platform would.

import type { Logger } from '../../client/common/log.ts'
import { optionValues } from '../../client/common/options.ts'
import { shuffleServiceFactory } from '../../client/shuffle-service-factory.ts'
import type { ShuffleEnvironment } from '../../client/spi.ts'
import { ShuffleManager } from '../../shuffle-manager/manager.ts'
import { managerOptions, type ManagerOptions } from '../../shuffle-manager/options.ts'
import { workerOptions, type WorkerOptions } from '../../shuffle-worker/options.ts'
import { ShuffleWorker } from '../../shuffle-worker/worker.ts'
import type { VirtualWorld } from '../support/virtual-world.ts'
import type { FrameTap } from './frame-tap.ts'
import type { ClusterPlan } from './plan.ts'
import { SimProcess } from './process.ts'

export const clusterId = 'simulated'
export const managerHost = 'manager'
export const managerUrl = `http://${managerHost}:9700`
export const clusterToken = 'the secret of the simulated cluster'

/** Short, so that a seed sees many of each; in the proportions of the defaults. */
export const times = {
  heartbeatMs: 2_000,
  suspectMs: 5_000,
  recoveryMs: 15_000,
  graceMs: 5_000,
  settleMs: 1_000,
  jobTimeoutMs: 60_000,
  diskTimeoutMs: 3_000,
  diskProbeMs: 2_000,
  diskFailedMs: 10_000,
  releasedReadersMs: 20_000,
} as const

/** Low enough to be passed by a stranger in no time, and never by the jobs. */
export const limits = { channelsPerConnection: 64, openWrites: 40, jobPartitions: 400 } as const

export interface ClusterContext {
  readonly virtual: VirtualWorld
  readonly tap: FrameTap
  readonly plan: ClusterPlan
  /** One logger for each process, named by its host. */
  readonly logger: (host: string) => Logger
  readonly note: (text: string) => void
}

/** A process that is started again when it has died, and what runs in it. */
export class Member<T> {
  readonly host: string
  readonly #context: ClusterContext
  readonly #run: (process: SimProcess) => Promise<T>
  process: SimProcess
  /** Undefined while it starts or is down. */
  running: T | undefined
  starts = 0
  isWanted = true
  /** Down until somebody starts it by hand. */
  isHeld = false
  /** What its last start failed with. */
  startError: unknown
  #due = 0

  constructor(context: ClusterContext, host: string, run: (process: SimProcess) => Promise<T>) {
    this.host = host
    this.#context = context
    this.#run = run
    this.process = new SimProcess(context.virtual, host, context.tap)
  }

  get isUp(): boolean {
    return this.running !== undefined && this.process.isAlive && !this.process.isPaused
  }

  start(): void {
    const { virtual, tap, note } = this.#context
    if (this.starts > 0) this.process = new SimProcess(virtual, this.host, tap)
    this.starts += 1
    const { process } = this
    note(`start ${this.host} (${String(this.starts)})`)
    this.#run(process).then(
      (running) => {
        if (this.process !== process || !process.isAlive) return
        this.running = running
        this.startError = undefined
      },
      (error: unknown) => {
        this.startError = error
        note(`start of ${this.host} failed: ${String(error)}`)
        process.kill()
        this.#restartLater(500)
      },
    )
  }

  kill(downMs: number): void {
    if (!this.process.isAlive) return
    this.#context.note(`kill ${this.host} for ${downMs.toFixed(0)} ms`)
    this.process.kill()
    this.running = undefined
    this.#restartLater(downMs)
  }

  #restartLater(afterMs: number): void {
    const { clock } = this.#context.virtual
    const due = ++this.#due
    clock.schedule(afterMs, () => {
      if (this.isWanted && !this.isHeld && !this.process.isAlive && this.#due === due) this.start()
    })
  }
}

export function directoriesOf(plan: ClusterPlan): readonly string[] {
  return Array.from({ length: plan.directoriesPerWorker }, (_, index) => `/data-${String(index)}`)
}

function startManager(context: ClusterContext, process: SimProcess): Promise<ShuffleManager> {
  const { plan, logger } = context
  const options: ManagerOptions = optionValues(managerOptions, {
    clusterId,
    host: '0.0.0.0',
    stateDirectory: '/state',
    placement: plan.placement,
    minFreeBytes: 0,
    heartbeatIntervalMs: times.heartbeatMs,
    workerSuspectMs: times.suspectMs,
    workerRecoveryMs: times.recoveryMs,
    graceMs: times.graceMs,
    settleMs: times.settleMs,
    jobTimeoutMs: times.jobTimeoutMs,
    expectedWorkers: plan.workerCount,
    jobPartitionsMax: limits.jobPartitions,
  })
  return ShuffleManager.start({
    world: process.world,
    options,
    token: plan.isTokenWanted ? clusterToken : undefined,
    logger: logger(process.host),
  })
}

function startWorker(
  context: ClusterContext,
  process: SimProcess,
  advertisedHost: string,
): Promise<ShuffleWorker> {
  const { plan, logger } = context
  const directories = directoriesOf(plan)
  const values = optionValues(workerOptions, {
    clusterId,
    manager: managerUrl,
    dataDirectories: [...directories],
    host: advertisedHost,
    bindHost: '0.0.0.0',
    bufferSizeBytes: plan.workerBufferBytes,
    minReservedSpaceBytes: 0,
    durability: plan.durability,
    smallPartitionBytes: plan.smallPartitionBytes,
    diskTimeoutMs: times.diskTimeoutMs,
    diskProbeIntervalMs: times.diskProbeMs,
    diskFailedAfterMs: times.diskFailedMs,
    releasedReadersTimeoutMs: times.releasedReadersMs,
    pingIntervalMs: 2_000,
    handshakeTimeoutMs: 3_000,
    openTimeoutMs: 5_000,
    regionTimeoutMs: 8_000,
    commitTimeoutMs: 15_000,
    drainTimeoutMs: 2_000,
    channelsPerConnectionMax: limits.channelsPerConnection,
    openWritesMax: limits.openWrites,
  })
  // Less than the option allows, so that it is cheap to make.
  const memoryBytes = plan.workerMemoryBuffers * plan.workerBufferBytes
  const options: WorkerOptions = { ...values, memoryBytes }
  return ShuffleWorker.start({
    world: process.world,
    options,
    directories: directories.map((path) => ({ path, kind: plan.diskKind })),
    token: plan.isTokenWanted ? clusterToken : undefined,
    logger: logger(process.host),
  })
}

function startTasks(context: ClusterContext, process: SimProcess): Promise<ShuffleEnvironment> {
  const { plan, logger } = context
  const environment = shuffleServiceFactory.createShuffleEnvironment({
    managerUrl,
    clusterId,
    ...(plan.isTokenWanted ? { token: clusterToken } : {}),
    logger: logger(process.host),
    world: process.world,
    options: {
      recordBytesMax: 4 * 1024 * 1024,
      connectTimeoutMs: 2_000,
      connectionIdleMs: 3_000,
      pingIntervalMs: 2_000,
      idlePingsMax: 3,
      writeOpenTimeoutMs: 4_000,
      regionTimeoutMs: 10_000,
      commitTimeoutMs: 20_000,
      readUnreachableTimeoutMs: times.recoveryMs + 5_000,
      readIdleTimeoutMs: 30_000,
      readRetryTimeoutMs: 8_000,
      retryDelayMinMs: 50,
      retryDelayMaxMs: 1_000,
      isCompressionEnabled: plan.isCompressed,
    },
  })
  return Promise.resolve(environment)
}

/** Of a job: its ShuffleMaster lives in a process of its own. */
export function masterContextOf(context: ClusterContext, process: SimProcess) {
  const { plan, logger } = context
  return {
    managerUrl,
    clusterId,
    ...(plan.isTokenWanted ? { token: clusterToken } : {}),
    logger: logger(process.host),
    world: process.world,
    bufferSizeBytes: plan.bufferSizeBytes,
    codec: plan.isCompressed ? 'lz4' : 'none',
  }
}

export class Cluster {
  readonly context: ClusterContext
  readonly manager: Member<ShuffleManager>
  readonly workers: readonly Member<ShuffleWorker>[]
  readonly taskHosts: readonly Member<ShuffleEnvironment>[]
  /** Where a worker says that it can be reached, when that has changed. */
  readonly advertised = new Map<string, string>()

  constructor(context: ClusterContext) {
    const { plan } = context
    this.context = context
    this.manager = new Member(context, managerHost, (process) => startManager(context, process))
    this.workers = names('worker', plan.workerCount).map(
      (host) =>
        new Member(context, host, (process) =>
          startWorker(context, process, this.advertised.get(host) ?? host),
        ),
    )
    this.taskHosts = names('tasks', plan.taskHostCount).map(
      (host) => new Member(context, host, (process) => startTasks(context, process)),
    )
  }

  get members(): readonly Member<unknown>[] {
    return [this.manager, ...this.workers, ...this.taskHosts]
  }

  start(): void {
    for (const member of this.members) member.start()
  }
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${String(index)}`)
}
