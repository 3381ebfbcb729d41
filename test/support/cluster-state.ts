// What a manager knows of a cluster, without ports: tests say by hand what workers and job masters
// would say.

import { Cluster, type ClusterSettings } from '../../shuffle-manager/cluster/cluster.ts'
import { managerOptions } from '../../shuffle-manager/options.ts'
import { optionValues } from '../../client/common/options.ts'
import {
  parseAttemptId,
  parseClusterId,
  parseDataSetId,
  parseJobId,
  parseWorkerId,
  type JobId,
} from '../../client/common/ids.ts'
import type { JobBeat, JobCommand } from '../../client/manager/api-jobs.ts'
import { encodeAttempts, encodeKeys, type DataSetKey } from '../../client/manager/key-columns.ts'
import type {
  DataSetFacts,
  DirectoryStatus,
  ReportGroup,
  ReportState,
  ServiceRecord,
} from '../../client/manager/schemas.ts'
import type { WorkerRecord } from '../../shuffle-manager/cluster/worker-registry.ts'
import type { JobRecord } from '../../shuffle-manager/cluster/job-registry.ts'
import { VirtualClock } from './virtual-clock.ts'
import { VirtualRandom } from './virtual-random.ts'

export const managerEpoch = 1000
export const jobId: JobId = parseJobId('job')

export const healthyDirectory: DirectoryStatus = {
  name: '/data',
  kind: 'ssd',
  health: 'healthy',
  isFull: false,
  freeBytes: 100e9,
  totalBytes: 200e9,
}

export function key(index: number, attempt = `a_${String(index)}`, dataSet = 'd'): DataSetKey {
  return {
    dataSetId: parseDataSetId(dataSet),
    partitionIndex: index,
    attemptId: parseAttemptId(attempt),
  }
}

export function facts(change: Partial<DataSetFacts> = {}): DataSetFacts {
  return {
    dataSetId: 'd',
    totalPartitions: 1000,
    subpartitionCount: 10,
    isBroadcast: false,
    ...change,
  }
}

export function reported(
  keys: readonly DataSetKey[],
  state: ReportState,
  change: Partial<ReportGroup> = {},
): ReportGroup {
  return {
    jobId,
    dataSetId: keys[0]?.dataSetId ?? 'd',
    ...encodeAttempts(keys),
    state,
    managerEpoch,
    jobEpoch: 1,
    sequences: keys.map((_, index) => index + 1),
    byteCounts: keys.map(() => 100),
    ...change,
  }
}

export class ClusterState {
  readonly clock = new VirtualClock()
  readonly cluster: Cluster
  #registrations = 0

  constructor(change: Partial<ClusterSettings['options']> = {}) {
    this.cluster = new Cluster({
      clock: this.clock,
      random: new VirtualRandom(1),
      clusterId: parseClusterId('test'),
      managerEpoch,
      options: { ...optionValues(managerOptions), ...change },
      placement: 'round-robin',
      onLook: () => undefined,
    })
  }

  register(
    name: string,
    groups: readonly ReportGroup[] = [],
    change: {
      readonly workerEpoch?: number
      readonly page?: number
      readonly last?: boolean
      readonly registration?: string
      readonly number?: number
      readonly directories?: DirectoryStatus[]
      readonly isDraining?: boolean
      readonly service?: ServiceRecord
    } = {},
  ): WorkerRecord {
    const nowMs = this.clock.nowMs()
    const worker = this.cluster.workers.getOrAdd(parseWorkerId(name), nowMs)
    const page = {
      workerEpoch: 1,
      registration: `r-${String(this.#registrations++)}`,
      page: 0,
      last: true,
      host: `${name}.host`,
      port: 9710,
      version: 'test',
      isDraining: false,
      directories: [healthyDirectory],
      groups: [...groups],
      ...change,
    }
    this.cluster.workerLists.register(worker, page, nowMs)
    return worker
  }

  /** A heartbeat with the next delta; answers whether it was taken. */
  tell(worker: WorkerRecord, groups: readonly ReportGroup[], sequence?: number): boolean {
    return this.cluster.workerLists.heartbeat(
      worker,
      {
        workerEpoch: worker.workerEpoch,
        registration: worker.registration,
        waitMs: 0,
        sequence: sequence ?? worker.sequence + 1,
        delta: [...groups],
        commandsSeen: Number.MAX_SAFE_INTEGER,
      },
      this.clock.nowMs(),
    )
  }

  /** A job with an empty list. */
  registerJob(clientId = 'client'): JobRecord {
    const now = { nowMs: this.clock.nowMs(), wallMs: 1 }
    this.cluster.jobLists.register(jobId, { clientId }, now)
    this.list([])
    return this.cluster.job(jobId)
  }

  /** The job master's list: keys at workers, committed as far as it knows. */
  list(
    entries: readonly {
      readonly key: DataSetKey
      readonly worker: string
      readonly isCommitted?: boolean
      readonly managerEpoch?: number
    }[],
  ): void {
    const job = this.cluster.job(jobId)
    const body = {
      jobEpoch: job.jobEpoch,
      report: 'report',
      page: 0,
      last: true,
      dataSets: [],
      workers: [],
      groups: entries.map((entry, index) => ({
        dataSetId: entry.key.dataSetId,
        ...encodeAttempts([entry.key]),
        workerId: entry.worker,
        managerEpoch: entry.managerEpoch ?? managerEpoch - 1,
        jobEpoch: 1,
        isCommitted: entry.isCommitted === true,
        sequences: [index + 1],
      })),
    }
    this.cluster.jobLists.report(job, body, this.clock.nowMs())
  }

  allocate(keys: readonly DataSetKey[], change: Partial<DataSetFacts> = {}): string[] {
    const answer = this.cluster.allocator.allocate(this.cluster.job(jobId), {
      jobEpoch: this.cluster.job(jobId).jobEpoch,
      dataSet: facts({ dataSetId: keys[0]?.dataSetId ?? 'd', ...change }),
      ...encodeAttempts(keys),
    })
    return answer.holders.map((holder) => answer.workers[holder]?.workerId ?? 'none')
  }

  /** A heartbeat of the job; answers the commands, or that the list is wanted. */
  beat(change: Partial<JobBeat> = {}): JobCommand[] | 'resync' {
    const job = this.cluster.job(jobId)
    const beat = { jobId, jobEpoch: job.jobEpoch, sequence: job.sequence, newsSeen: 0, ...change }
    const isTaken = this.cluster.jobNews.take(job, beat, this.clock.nowMs())
    return isTaken ? this.cluster.jobNews.commands(job) : 'resync'
  }

  /** Drops keys from the list by heartbeat. */
  drop(keys: readonly DataSetKey[]): void {
    const job = this.cluster.job(jobId)
    const sequence = job.sequence + 1
    this.beat({ sequence, dropped: encodeKeys(keys) })
  }

  state(one: DataSetKey): string {
    const job = this.cluster.jobs.get(jobId)
    const at = job && this.cluster.ledger.find(job, one)
    return at === undefined ? 'gone' : at.table.state(at.row)
  }

  /** What the worker is told, as text. */
  commandsFor(worker: WorkerRecord): string[] {
    const { commands, number } = worker.commands.next((ref) => this.cluster.ledger.keyOf(ref))
    worker.commands.seen(number)
    return commands.flatMap((command) => {
      if (command.type === 'service') return [`service ${command.service.state}`]
      return command.jobs.flatMap((job) =>
        job.dataSets.flatMap((group) =>
          group.attempts.map((attempt) => `${command.type} ${group.attemptPrefix}${attempt}`),
        ),
      )
    })
  }

  /** Types of all events, oldest first. */
  eventTypes(): string[] {
    return this.cluster.events.list({ after: 0, limit: 10_000 }).events.map((event) => event.type)
  }
}
