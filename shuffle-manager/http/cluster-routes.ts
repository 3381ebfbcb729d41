// Calls for people and tools.

import type { FastifyInstance } from 'fastify'
import { managerApi } from '../../client/manager/api.ts'
import type { JobSummary, WorkerSummary } from '../../client/manager/api-workers.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { JobRecord } from '../cluster/job-registry.ts'
import type { WorkerRecord } from '../cluster/worker-registry.ts'
import { numberOf, registerCall } from './route-registration.ts'

const eventsLimitDefault = 200
const eventsLimitMax = 10_000

export function registerClusterRoutes(
  app: FastifyInstance,
  cluster: Cluster,
  version: string,
): void {
  registerCall(app, { name: 'listJobs', route: managerApi.listJobs }, () => ({
    jobs: [...cluster.jobs.all()].map((job) => summaryOfJob(job, cluster.clock.nowMs())),
  }))

  registerCall(app, { name: 'listWorkers', route: managerApi.listWorkers }, () => ({
    workers: cluster.workers.all().map((one) => summaryOfWorker(one, cluster.clock.nowMs())),
  }))

  registerCall(app, { name: 'describeCluster', route: managerApi.describeCluster }, () => {
    const jobs = [...cluster.jobs.all()]
    const workerCounts: Record<string, number> = {}
    const fileSystems = new Set<string>()
    let freeBytes = 0
    for (const worker of cluster.workers.all()) {
      workerCounts[worker.state] = (workerCounts[worker.state] ?? 0) + 1
      // What a lost worker had is not there.
      for (const directory of worker.state === 'lost' ? [] : worker.directories) {
        if (directory.health !== 'healthy') continue
        // Workers may share a disk: its space is there once.
        const { fileSystem } = directory
        if (fileSystem !== undefined && fileSystems.has(fileSystem)) continue
        if (fileSystem !== undefined) fileSystems.add(fileSystem)
        freeBytes += directory.freeBytes
      }
    }
    return {
      clusterId: cluster.clusterId,
      managerEpoch: cluster.managerEpoch,
      version,
      upMs: Math.round(cluster.settling.upMs),
      isReady: cluster.unreadyReason === undefined,
      reason: cluster.unreadyReason ?? '',
      wallMs: cluster.clock.wallMs(),
      workerCounts,
      jobCount: jobs.length,
      partitionCount: jobs.reduce((sum, job) => sum + job.partitionCount, 0),
      byteCount: jobs.reduce((sum, job) => sum + job.committedBytes, 0),
      freeBytes,
    }
  })

  registerCall(app, { name: 'listEvents', route: managerApi.listEvents }, ({ query }) =>
    cluster.events.list({
      after: numberOf(query.after, 0),
      limit: Math.min(numberOf(query.limit, eventsLimitDefault), eventsLimitMax),
    }),
  )
}

function summaryOfJob(job: JobRecord, nowMs: number): JobSummary {
  const silentMs = Math.round(nowMs - job.heardMs)
  return {
    jobId: job.jobId,
    ...(job.tenant === undefined ? {} : { tenant: job.tenant }),
    ...(job.clientId === undefined ? {} : { clientId: job.clientId }),
    jobEpoch: job.jobEpoch,
    state: job.state,
    dataSetCount: job.tables.size,
    partitionCount: job.partitionCount,
    committedCount: job.counts.committed,
    lostCount: job.counts.lost,
    releasingCount: job.counts.releasing,
    byteCount: job.committedBytes,
    silentMs,
    releaseInMs: Math.max(0, Math.round(job.keepMs) - silentMs),
    timeInStateMs: Object.fromEntries(job.timeInStateMs),
  }
}

export function summaryOfWorker(worker: WorkerRecord, nowMs: number): WorkerSummary {
  return {
    workerId: worker.workerId,
    workerEpoch: worker.workerEpoch,
    host: worker.host,
    port: worker.port,
    ...(worker.httpPort === undefined ? {} : { httpPort: worker.httpPort }),
    version: worker.version,
    state: worker.state,
    isDraining: worker.isDraining,
    service: worker.wantedService,
    isServiceTold: worker.isServiceTold,
    openWrites: worker.openWrites,
    partitionCount: worker.partitionCount,
    byteCount: worker.committedBytes,
    silentMs: Math.max(0, Math.round(nowMs - worker.heardMs)),
    directories: [...worker.directories],
  }
}
