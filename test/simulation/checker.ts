// What must be true of the cluster besides the data: at every moment, after a quiet period, after the
// jobs have released everything, and after everything was closed. Each check answers what is wrong.

import { isShuffleError } from '../../client/common/errors.ts'
import { parseClusterId, partitionKeyText } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { managerApi } from '../../client/manager/api.ts'
import type { EventRecord } from '../../client/manager/api-workers.ts'
import { ManagerClient } from '../../client/manager/manager-client.ts'
import { clusterId, clusterToken, managerUrl, type Cluster } from './cluster.ts'
import type { FaultInjector } from './fault-injector.ts'
import type { SimJob } from './job.ts'
import { SimProcess } from './process.ts'
import type { Truth } from './truth.ts'

export interface CheckerContext {
  readonly cluster: Cluster
  readonly jobs: () => readonly SimJob[]
  readonly injector: FaultInjector
  readonly truth: Truth
  readonly logger: Logger
}

const purposes = ['write', 'read', 'index', 'control'] as const
/** What a wait may be late by: a deadline is looked at when its timer fires, and timers wait for their turn. */
const latenessMs = 1_000
/** A call with its time-out, the longest poll on top, and a little. */
const callMaxMs = 16_000

export class Checker {
  readonly #context: CheckerContext
  /** Of each disk's queue: when an operation ended last, and since when that is so. */
  readonly #queues = new Map<string, { readonly endedMs: number; readonly sinceMs: number }>()
  /**
   * Held and on no worker, where theirs has lost data or a manager that did not hear of the job has let it
   * go. If no manager lived to hear of the commit, it was
   * never written as far as manager and master know; who reads it is told that it is not there.
   */
  readonly #unheard = new Set<string>()
  /** Jobs that a manager has released because it heard nothing of them for long enough. */
  readonly #expired = new Set<string>()

  constructor(context: CheckerContext) {
    this.#context = context
  }

  /** What must hold at every moment. */
  *broken(): Generator<string, void> {
    yield* this.#memory()
    yield* this.#commits()
    yield* this.#waits()
    yield* this.#calls()
    yield* this.#stuckDisks()
  }

  /** Manager, masters and workers agree on what exists. */
  async disagreements(): Promise<readonly string[]> {
    this.#unheard.clear()
    return this.#watching(async (client) => {
      let between = [...this.#workersAndMasters()]
      if (between.length > 0) {
        await this.#noteExpired(client)
        between = [...this.#workersAndMasters()]
      }
      return between.length > 0 ? between : this.#managerAndMasters(client)
    })
  }

  /** Of anything, once the jobs have released all and everybody is at rest. */
  *leftovers(): Generator<string, void> {
    const { cluster } = this.#context
    for (const worker of cluster.workers) {
      if (!worker.isUp) continue
      const { store, ledger } = worker.running!
      for (const { key, state } of store.list()) {
        yield `${worker.host} still has ${partitionKeyText(key)} (${state}) after the jobs`
      }
      for (const purpose of purposes) {
        const used = ledger.usedBytes(purpose)
        if (used !== 0) yield `${worker.host} holds ${String(used)} bytes of ${purpose} memory`
      }
      yield* this.#workerAtRest(worker.host, worker.running!.status() as Record<string, unknown>)
    }
    for (const host of cluster.taskHosts) {
      if (!host.isUp) continue
      const { openPartitions, openGates, connections, channels, buffersInUse, waiters } =
        host.running!.statistics()
      const left = { openPartitions, openGates, connections, channels, buffersInUse }
      for (const [name, count] of Object.entries({ ...left, waiters: waiters.length })) {
        if (count !== 0) yield `${host.host}: ${String(count)} ${name} at rest`
      }
    }
  }

  /** After everything was closed: timers, links, ports, files. */
  *remains(): Generator<string, void> {
    const { cluster, injector } = this.#context
    const { clock, network } = cluster.context.virtual
    if (clock.timerCount !== 0) yield `${String(clock.timerCount)} timers are left`
    if (network.links.length !== 0) {
      yield `connections are left: ${network.links.map(({ hosts }) => hosts.join(' ')).join()}`
    }
    if (network.listenerCount !== 0) yield `${String(network.listenerCount)} ports are left`
    for (const worker of cluster.workers) {
      const disk = cluster.context.virtual.disk(worker.host)
      if (disk.openFileCount !== 0) {
        yield `${worker.host}: ${String(disk.openFileCount)} open files are left`
      }
      if (disk.heldLocks.length !== 0) yield `${worker.host}: a lock is left`
      // No partition is left, so no file of one may be.
      const left = disk.filesBelow('/').filter((path) => /partial|\.data/.test(path))
      if (left.length !== 0 && !injector.hasBlockedDeletion)
        yield `${worker.host}: files are left: ${left.join(' ')}`
    }
  }

  *#memory(): Generator<string, void> {
    for (const worker of this.#context.cluster.workers) {
      if (!worker.isUp) continue
      const { ledger } = worker.running!
      for (const purpose of purposes) {
        const used = ledger.usedBytes(purpose)
        const bound = ledger.partBytes(purpose)
        if (used < 0 || used > bound) {
          yield `${worker.host}: ${purpose} memory ${String(used)} of ${String(bound)}`
        }
      }
    }
  }

  /** Only what its producer has finished is committed. */
  *#commits(): Generator<string, void> {
    const { cluster, truth } = this.#context
    for (const worker of cluster.workers) {
      if (!worker.isUp) continue
      for (const { key, state } of worker.running!.store.list()) {
        if (state !== 'committed') continue
        const attempt = truth.of(key)
        if (attempt?.state !== 'writing' && attempt?.state !== 'failed') continue
        yield `${worker.host} has committed ${partitionKeyText(key)}, which is ${attempt.state}`
      }
    }
  }

  *#waits(): Generator<string, void> {
    const { taskHosts, workers } = this.#context.cluster
    const registers = [
      ...taskHosts.map((host) => ({ host, list: () => host.running!.statistics().waiters })),
      ...workers.map((host) => ({ host, list: () => host.running!.waits })),
    ]
    for (const { host, list } of registers) {
      if (!host.isUp || host.process.isJustResumed) continue
      for (const waiter of list()) {
        if (waiter.remainingMs >= -latenessMs) continue
        yield `${host.host}: the wait for ${waiter.name} has outlived its deadline`
      }
    }
  }

  /** Seen from outside: a request without an answer is given up by whoever made it. */
  *#calls(): Generator<string, void> {
    const { tap, virtual } = this.#context.cluster.context
    for (const { name, startedMs, process } of tap.openRequests) {
      if (!process.isAlive || process.isPaused) continue
      const waitedMs = virtual.clock.nowMs() - Math.max(startedMs, process.resumedMs)
      if (waitedMs > callMaxMs) yield `${process.host} waits for ${name} beyond any deadline`
    }
  }

  /** A disk that answers keeps moving, whatever another one does. */
  *#stuckDisks(): Generator<string, void> {
    const { cluster, injector } = this.#context
    const { clock } = cluster.context.virtual
    for (const worker of cluster.workers) {
      if (!worker.isUp || worker.process.isJustResumed) continue
      const disk = cluster.context.virtual.disk(worker.host)
      for (const directory of worker.running!.store.directories) {
        const name = `${worker.host} ${String(worker.starts)} ${directory.path}`
        const endedMs = disk.lastEndedMs(directory.path)
        const known = this.#queues.get(name)
        if (directory.queue.waitingCount === 0 || known?.endedMs !== endedMs) {
          this.#queues.set(name, { endedMs, sinceMs: clock.nowMs() })
          continue
        }
        const isSick = injector.isDiskTouched(worker.host, directory.path)
        if (clock.nowMs() - known.sinceMs > latenessMs && !isSick) {
          yield `${worker.host}: operations wait and none ends on the healthy disk of ${directory.path}`
        }
      }
    }
  }

  *#workersAndMasters(): Generator<string, void> {
    const { jobs, cluster, injector, truth } = this.#context
    const held = new Map<string, SimJob>()
    for (const job of jobs()) for (const name of job.heldKeys) held.set(name, job)
    for (const life of jobs().flatMap((job) => job.untold)) {
      yield `${life} was replaced and does not know it`
    }
    const stored = new Set<string>()
    for (const worker of cluster.workers) {
      if (!worker.isUp) {
        yield `${worker.host} is not up after the faults: ${String(worker.startError)}`
        continue
      }
      for (const { key, state } of worker.running!.store.list()) {
        const name = partitionKeyText(key)
        if (!held.has(name)) yield `${worker.host} has ${name} (${state}), which nobody holds`
        else if (state === 'committed') stored.add(name)
        else yield `${worker.host} has ${name} as ${state}`
      }
    }
    for (const [name, { jobId }] of held) {
      if (stored.has(name)) continue
      const host = truth.attempts.get(name)?.host ?? ''
      if (injector.lostHosts.has(host) || this.#expired.has(jobId)) this.#unheard.add(name)
      else yield `${name} is held and on no worker`
    }
  }

  async #watching<T>(look: (client: ManagerClient) => Promise<T>): Promise<T> {
    const { virtual, tap, plan } = this.#context.cluster.context
    const process = new SimProcess(virtual, 'watcher', tap)
    const client = new ManagerClient({
      world: process.world,
      logger: this.#context.logger,
      url: managerUrl,
      clusterId: parseClusterId(clusterId),
      ...(plan.isTokenWanted ? { token: clusterToken } : {}),
    })
    try {
      return await look(client)
    } finally {
      await virtual.drive(client.close())
      process.kill()
    }
  }

  async #noteExpired(client: ManagerClient): Promise<void> {
    const { virtual } = this.#context.cluster.context
    const call = client
      .call(managerApi.listEvents, { params: {}, query: {}, body: undefined })
      .catch((error: unknown) => {
        if (!isShuffleError(error)) throw error
        return { events: [] }
      })
    const answer: { readonly events: readonly EventRecord[] } = await virtual.drive(call, 60_000)
    for (const { type, jobId } of answer.events) {
      if (type === 'job-expired') this.#expired.add(String(jobId))
    }
  }

  /** What the manager would tell an operator. */
  async #managerAndMasters(client: ManagerClient): Promise<readonly string[]> {
    const wrong: string[] = []
    for (const job of this.#context.jobs()) {
      if (!job.isAbandoned) wrong.push(...(await this.#managerAndMaster(client, job)))
    }
    return wrong
  }

  async #managerAndMaster(client: ManagerClient, job: SimJob): Promise<readonly string[]> {
    const { virtual } = this.#context.cluster.context
    const wrong: string[] = []
    const known = new Set<string>()
    const { jobId } = job
    const call = client
      .call(managerApi.listPartitions, { params: { jobId }, query: {}, body: undefined })
      .catch((error: unknown) => {
        // One that has just started hears of the job when its master comes.
        if (!isShuffleError(error)) throw error
        return error.code
      })
    const held = new Set(job.heldKeys)
    const answer = await virtual.drive(call, 60_000)
    if (typeof answer === 'string') return [`the manager says ${answer} of ${jobId}`]
    for (const { dataSetId, partitionIndex, attemptId, state } of answer.partitions) {
      const name = `${jobId} ${dataSetId} ${String(partitionIndex)} ${attemptId}`
      known.add(name)
      const wanted = this.#unheard.has(name) ? 'allocated' : 'committed'
      if (state !== wanted) wrong.push(`the manager has ${name} as ${state}, not ${wanted}`)
      if (!held.has(name)) wrong.push(`the manager has ${name}, which nobody holds`)
    }
    for (const name of held) {
      if (!known.has(name)) wrong.push(`the manager does not know ${name}`)
    }
    return wrong
  }

  *#workerAtRest(host: string, status: Record<string, unknown>): Generator<string, void> {
    for (const name of ['channels', 'creditOutstanding', 'heldBuffers'] as const) {
      const { write, read } = status[name] as { write: number; read: number }
      if (write !== 0 || read !== 0) {
        yield `${host}: ${name} ${String(write)} and ${String(read)} at rest`
      }
    }
    for (const name of ['waiters', 'waitingRegions', 'listedPartitions', 'connections'] as const) {
      if (status[name] !== 0) yield `${host}: ${String(status[name])} ${name} at rest`
    }
  }
}
