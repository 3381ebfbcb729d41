// The commands that ask a manager or tell it something: `status`, `jobs`, `workers`, `partitions`,
// `release`.

import { parseJobId, ShuffleError, type JobId } from '../client/index.ts'
import { managerApi } from '../client/manager/api.ts'
import type { ManagerClient } from '../client/manager/manager-client.ts'
import type { CallAnswer } from '../client/manager/route.ts'
import type { Command } from './command.ts'
import {
  asJson,
  clusterCommandOptions,
  managerCommand,
  nothing,
  type ClusterCall,
  type ClusterValues,
} from './manager-command.ts'
import { humanBytes, humanDuration, textTable } from './text-table.ts'

type Cluster = CallAnswer<typeof managerApi.describeCluster>
type Jobs = CallAnswer<typeof managerApi.listJobs>['jobs']
type Workers = CallAnswer<typeof managerApi.listWorkers>['workers']
type Partitions = CallAnswer<typeof managerApi.listPartitions>['partitions']

export const statusCommand = clusterCommand({
  usage: 'sluice status [options]',
  about: 'Shows whether the cluster is ready, and how much it holds.',
  run: async ({ client, values: { json }, context }) => {
    const cluster = await client.call(managerApi.describeCluster, nothing)
    context.print(json ? asJson(cluster) : describeCluster(cluster))
  },
})

export const jobsCommand = clusterCommand({
  usage: 'sluice jobs [options]',
  about:
    'Lists the jobs: how much they hold, when they were last heard of, and when they will be released if they stay silent.',
  run: async ({ client, values: { json }, context }) => {
    const { jobs } = await client.call(managerApi.listJobs, nothing)
    context.print(json ? asJson(jobs) : describeJobs(jobs))
  },
})

export const workersCommand = clusterCommand({
  usage: 'sluice workers [options]',
  about: 'Lists the workers: where they are, in which state, what they hold and have free.',
  run: async ({ client, values: { json }, context }) => {
    const { workers } = await client.call(managerApi.listWorkers, nothing)
    context.print(json ? asJson(workers) : describeWorkers(workers))
  },
})

export const partitionsCommand = clusterCommand({
  usage: 'sluice partitions JOB [options]',
  about: "Lists a job's partitions: where they are, in which state, and their bytes.",
  argumentNames: ['JOB'],
  run: async ({ client, values: { json }, context, args }) => {
    const jobId = parseJobId(args[0] ?? '')
    const partitions = await allPartitions(client, jobId)
    context.print(json ? asJson(partitions) : describePartitions(partitions))
  },
})

export const releaseCommand = clusterCommand({
  usage: 'sluice release JOB [options]',
  about: 'Releases everything of a job, at once and for ever. A job that still runs will fail.',
  argumentNames: ['JOB'],
  run: async ({ client, values: { json }, context, args }) => {
    const jobId = parseJobId(args[0] ?? '')
    const { jobs } = await client.call(managerApi.listJobs, nothing)
    const names = jobs.map((job) => job.jobId)
    if (!names.includes(jobId)) {
      throw new ShuffleError('JOB_UNKNOWN', `the manager knows no job ${jobId}`, {
        fields: { jobId },
      })
    }
    await client.call(managerApi.deleteJob, { params: { jobId }, query: {}, body: undefined })
    context.print(json ? asJson({ released: jobId }) : `released ${jobId}\n`)
  },
})

function clusterCommand(parts: {
  readonly usage: string
  readonly about: string
  readonly argumentNames?: readonly string[]
  readonly run: (call: ClusterCall<ClusterValues>) => Promise<undefined>
}): Command {
  return managerCommand({ declaration: clusterCommandOptions, ...parts })
}

async function allPartitions(client: ManagerClient, jobId: JobId): Promise<Partitions> {
  const partitions: Partitions[number][] = []
  let after: string | undefined
  for (;;) {
    const page = await client.call(managerApi.listPartitions, {
      params: { jobId },
      query: after === undefined ? {} : { after },
      body: undefined,
    })
    partitions.push(...page.partitions)
    after = page.next
    if (after === undefined) return partitions
  }
}

function describeCluster(cluster: Cluster): string {
  const workers = Object.entries(cluster.workerCounts)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state}`)
  return [
    `cluster     ${cluster.clusterId} (manager ${cluster.version}, epoch ${cluster.managerEpoch})`,
    `ready       ${cluster.isReady ? 'yes' : `no: ${cluster.reason}`}`,
    `up          ${humanDuration(cluster.upMs)}`,
    `workers     ${workers.join(', ') || 'none'}`,
    `jobs        ${cluster.jobCount}`,
    `partitions  ${cluster.partitionCount} (${humanBytes(cluster.byteCount)})`,
    `free        ${humanBytes(cluster.freeBytes)}`,
    '',
  ].join('\n')
}

function describeJobs(jobs: Jobs): string {
  if (jobs.length === 0) return 'no jobs\n'
  return textTable(
    ['JOB', 'STATE', 'PARTITIONS', 'COMMITTED', 'LOST', 'BYTES', 'LAST HEARD', 'RELEASED IN'],
    jobs.map((job) => [
      job.jobId,
      job.state,
      String(job.partitionCount),
      String(job.committedCount),
      String(job.lostCount),
      humanBytes(job.byteCount),
      `${humanDuration(job.silentMs)} ago`,
      humanDuration(job.releaseInMs),
    ]),
  )
}

function describeWorkers(workers: Workers): string {
  if (workers.length === 0) return 'no workers\n'
  return textTable(
    ['WORKER', 'ADDRESS', 'STATE', 'PARTITIONS', 'BYTES', 'FREE', 'LAST HEARD'],
    workers.map((worker) => [
      worker.workerId,
      `${worker.host}:${worker.port}`,
      stateOf(worker),
      String(worker.partitionCount),
      humanBytes(worker.byteCount),
      humanBytes(freeBytesOf(worker)),
      `${humanDuration(worker.silentMs)} ago`,
    ]),
  )
}

/** Directories may share a file system: its space is there once. */
function freeBytesOf({ directories }: Workers[number]): number {
  const seen = new Set<string>()
  let bytes = 0
  for (const { fileSystem, freeBytes } of directories) {
    if (fileSystem !== undefined && seen.has(fileSystem)) continue
    if (fileSystem !== undefined) seen.add(fileSystem)
    bytes += freeBytes
  }
  return bytes
}

/** `alive`, `alive, draining (new disk)`, `suspect, excluded (not told yet)`. */
function stateOf({ state, isDraining, service, isServiceTold }: Workers[number]): string {
  if (service.state === 'serving') {
    if (!isServiceTold) return `${state}, back in service (not told yet)`
    return isDraining ? `${state}, draining` : state
  }
  const why = isServiceTold ? service.reason : 'not told yet'
  return `${state}, ${service.state}${why === '' ? '' : ` (${why})`}`
}

function describePartitions(partitions: Partitions): string {
  if (partitions.length === 0) return 'no partitions\n'
  return textTable(
    ['DATA SET', 'PARTITION', 'ATTEMPT', 'STATE', 'BYTES', 'WORKER'],
    partitions.map((partition) => [
      partition.dataSetId,
      String(partition.partitionIndex),
      partition.attemptId,
      partition.state,
      humanBytes(partition.byteCount),
      partition.workerId,
    ]),
  )
}
