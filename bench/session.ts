// All processes of one case, and one measurement over them.

import path from 'node:path'
import { BenchCluster, type BenchClusterOptions } from './bench-cluster.ts'
import { Probe, probeEnvironment } from './probe-report.ts'
import {
  deviceCounters,
  peakResidentBytes,
  processCounters,
  resetPeak,
  type DeviceCounters,
  type ProcessCounters,
} from './process-figures.ts'
import { RoleProcess } from './role-process.ts'
import type { Party, Sample } from './series.ts'

export interface SessionOptions extends BenchClusterOptions {
  readonly producerProcesses: number
  readonly consumerProcesses: number
}

/** What was measured around a piece of work; what it moved is the case's to say. */
export type Measured = Omit<Sample, 'bytes' | 'references' | 'figures'>

const operationsPattern =
  /^sluice_worker_disk_operations_total\{.*operation="([a-z-]+)".*outcome="ok"/

export class Session {
  readonly cluster: BenchCluster
  readonly producers: readonly RoleProcess[]
  readonly consumers: readonly RoleProcess[]
  readonly reference: RoleProcess
  /** The other end of the loopback pump, and of what references do at the same time. */
  readonly sink: RoleProcess
  readonly #idle: RoleProcess
  readonly #idleProbe: Probe

  private constructor(options: SessionOptions, cluster: BenchCluster) {
    this.cluster = cluster
    const idlePath = path.join(options.directory, 'idle.probe')
    this.#idle = new RoleProcess('idle', probeEnvironment(idlePath, undefined))
    this.#idleProbe = new Probe(this.#idle.pid, idlePath)
    const many = (name: string, count: number) =>
      Array.from({ length: count }, (_, index) => {
        const path_ = path.join(options.directory, `${name}-${String(index)}.probe`)
        const isProfiled = options.profileDirectory !== undefined
        const environment = isProfiled ? probeEnvironment(path_, options.profileDirectory) : {}
        return new RoleProcess(`${name}-${String(index)}`, environment)
      })
    this.producers = many('producers', options.producerProcesses)
    this.consumers = many('consumers', options.consumerProcesses)
    this.reference = new RoleProcess('reference')
    this.sink = new RoleProcess('sink')
  }

  static async start(options: SessionOptions): Promise<Session> {
    const cluster = await BenchCluster.start(options)
    const session = new Session(options, cluster)
    const clients = [...session.producers, ...session.consumers]
    // Answered when they are up.
    await session.#idle.call('rest', undefined)
    await session.reference.call('rest', undefined)
    await session.sink.call('rest', undefined)
    await Promise.all(clients.map((client) => client.call('open', cluster.place)))
    return session
  }

  async measure(work: () => Promise<void>): Promise<Measured> {
    const parties = this.#parties()
    for (const [, pids] of parties) for (const pid of pids) resetPeak(pid)
    const { cluster } = this
    const operationsBefore = operationsOf(await cluster.counters())
    await Promise.all([cluster.workerProbe.next(), this.#idleProbe.next()])
    const device = deviceCounters(cluster.dataDirectory)
    const before = new Map(parties.map(([party, pids]) => [party, countersOf(pids)]))
    const startMs = performance.now()
    await work()
    const seconds = (performance.now() - startMs) / 1000
    const after = new Map(parties.map(([party, pids]) => [party, countersOf(pids)]))
    const deviceAfter = deviceCounters(cluster.dataDirectory)
    const [probe, idle] = await Promise.all([cluster.workerProbe.next(), this.#idleProbe.next()])
    const operations = operationsOf(await cluster.counters())
    const difference = (party: Party) => minus(after.get(party), before.get(party))
    return {
      seconds,
      cpuSeconds: Object.fromEntries(
        parties.map(([party]) => [party, difference(party).cpuSeconds]),
      ),
      peakBytes: Object.fromEntries(
        parties.map(([party, pids]) => [party, Math.max(0, ...pids.map(peakResidentBytes))]),
      ),
      loopDelayP99Ms: probe.loopDelayP99Ms,
      idleLoopDelayP99Ms: idle.loopDelayP99Ms,
      worker: difference('worker'),
      device: minusDevice(deviceAfter, device),
      diskOperations: Object.fromEntries(
        [...operations].map(([kind, count]) => [kind, count - (operationsBefore.get(kind) ?? 0)]),
      ),
    }
  }

  async stop(): Promise<void> {
    const processes = [...this.producers, ...this.consumers, this.reference, this.sink, this.#idle]
    await Promise.all(processes.map((each) => each.stop()))
    await this.cluster.stop()
  }

  #parties(): (readonly [Party, readonly number[]])[] {
    return [
      ['worker', [this.cluster.workerPid]],
      ['manager', [this.cluster.managerPid]],
      ['producers', this.producers.map(({ pid }) => pid)],
      ['consumers', this.consumers.map(({ pid }) => pid)],
    ]
  }
}

function operationsOf(counters: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const operations = new Map<string, number>()
  for (const [name, count] of counters) {
    const kind = operationsPattern.exec(name)?.[1]
    if (kind !== undefined) operations.set(kind, count)
  }
  return operations
}

function countersOf(pids: readonly number[]): ProcessCounters {
  const all = pids.map(processCounters)
  const sum = (of: (counters: ProcessCounters) => number) =>
    all.reduce((total, counters) => total + of(counters), 0)
  return {
    cpuSeconds: sum((each) => each.cpuSeconds),
    readBytes: sum((each) => each.readBytes),
    writtenBytes: sum((each) => each.writtenBytes),
  }
}

function minus(
  after: ProcessCounters | undefined,
  before: ProcessCounters | undefined,
): ProcessCounters {
  const of = (name: keyof ProcessCounters) => (after?.[name] ?? 0) - (before?.[name] ?? 0)
  return {
    cpuSeconds: of('cpuSeconds'),
    readBytes: of('readBytes'),
    writtenBytes: of('writtenBytes'),
  }
}

function minusDevice(after: DeviceCounters, before: DeviceCounters): DeviceCounters {
  return {
    readBytes: after.readBytes - before.readBytes,
    writtenBytes: after.writtenBytes - before.writtenBytes,
  }
}
