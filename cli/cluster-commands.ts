// The commands that ask a manager or tell it something: `status`, `jobs`, `workers`, `partitions`,
// `release`.

import {
  isShuffleError,
  parseJobId,
  silentLogger,
  ShuffleError,
  type JobId,
} from '../client/index.ts'
import { declareOptions, type OptionValues } from '../client/common/options.ts'
import { parseClusterId } from '../client/common/ids.ts'
import { realWorld } from '../client/common/real-world.ts'
import { managerApi } from '../client/manager/api.ts'
import { ManagerClient } from '../client/manager/manager-client.ts'
import type { CallAnswer } from '../client/manager/route.ts'
import { exitCodes, type Command, type CommandContext } from './command.ts'
import { optionCommand } from './option-command.ts'
import { humanBytes, humanDuration, textTable } from './text-table.ts'
import { readToken } from './token-file.ts'

export const clusterCommandOptions = declareOptions('command', {
  manager: {
    name: 'manager',
    type: 'string',
    default: 'http://127.0.0.1:9700',
    pattern: /^https?:\/\/[^\s/]+\/?$/,
    allowed: 'an address such as http://127.0.0.1:9700',
    about: "Address of the manager's HTTP port.",
  },
  clusterId: {
    name: 'cluster-id',
    type: 'string',
    default: 'sluice',
    lengthMax: 200,
    about: 'Name of the cluster; a manager of another one refuses.',
  },
  tokenFile: {
    name: 'token-file',
    type: 'path',
    about: 'File with the secret shared by the cluster, where it has one.',
  },
  json: { name: 'json', type: 'boolean', default: false, about: 'Print JSON, for programs.' },
})

type Values = OptionValues<typeof clusterCommandOptions>
type Cluster = CallAnswer<typeof managerApi.describeCluster>
type Jobs = CallAnswer<typeof managerApi.listJobs>['jobs']
type Workers = CallAnswer<typeof managerApi.listWorkers>['workers']
type Partitions = CallAnswer<typeof managerApi.listPartitions>['partitions']

/** One try and a few more: a person waits. */
const retryForMs = 2000

export const statusCommand = command({
  usage: 'sluice status [options]',
  about: 'Shows whether the cluster is ready, and how much it holds.',
  run: async (client, { json }, context) => {
    const cluster = await client.call(managerApi.describeCluster, nothing)
    context.print(json ? asJson(cluster) : describeCluster(cluster))
  },
})

export const jobsCommand = command({
  usage: 'sluice jobs [options]',
  about:
    'Lists the jobs: how much they hold, when they were last heard of, and when they will be released if they stay silent.',
  run: async (client, { json }, context) => {
    const { jobs } = await client.call(managerApi.listJobs, nothing)
    context.print(json ? asJson(jobs) : describeJobs(jobs))
  },
})

export const workersCommand = command({
  usage: 'sluice workers [options]',
  about: 'Lists the workers: where they are, in which state, what they hold and have free.',
  run: async (client, { json }, context) => {
    const { workers } = await client.call(managerApi.listWorkers, nothing)
    context.print(json ? asJson(workers) : describeWorkers(workers))
  },
})

export const partitionsCommand = command({
  usage: 'sluice partitions JOB [options]',
  about: "Lists a job's partitions: where they are, in which state, and their bytes.",
  argument: 'JOB',
  run: async (client, { json }, context, jobId) => {
    const partitions = await allPartitions(client, jobId)
    context.print(json ? asJson(partitions) : describePartitions(partitions))
  },
})

export const releaseCommand = command({
  usage: 'sluice release JOB [options]',
  about: 'Releases everything of a job, at once and for ever. A job that still runs will fail.',
  argument: 'JOB',
  run: async (client, { json }, context, jobId) => {
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

const nothing = { params: {}, query: {}, body: undefined }

interface ClusterCommandParts {
  readonly usage: string
  readonly about: string
  /** Name of its one argument, where it takes one. */
  readonly argument?: string
  readonly run: (
    client: ManagerClient,
    values: Values,
    context: CommandContext,
    jobId: JobId,
  ) => Promise<void>
}

function command(parts: ClusterCommandParts): Command {
  return optionCommand({
    declaration: clusterCommandOptions,
    usage: parts.usage,
    about: parts.about,
    positionalsMax: parts.argument === undefined ? 0 : 1,
    run: async ({ values, positionals }, context) => {
      const [argument] = positionals
      if (parts.argument !== undefined && argument === undefined) {
        throw new ShuffleError(
          'INVALID_ARGUMENT',
          `${parts.argument} is missing; usage: ${parts.usage}`,
        )
      }
      const token = readToken(values.tokenFile, context)
      const client = new ManagerClient({
        world: realWorld(),
        logger: silentLogger,
        url: values.manager,
        clusterId: parseClusterId(values.clusterId),
        retryForMs,
        ...(token === undefined ? {} : { token }),
      })
      try {
        const jobId = argument === undefined ? ('' as JobId) : parseJobId(argument)
        await parts.run(client, values, context, jobId)
        return exitCodes.success
      } catch (error) {
        throw withAdvice(error, values.manager)
      } finally {
        await client.close()
      }
    },
  })
}

/** What a person can do about it. */
function withAdvice(error: unknown, manager: string): unknown {
  if (isShuffleError(error, 'NO_MANAGER')) {
    return new ShuffleError(
      'NO_MANAGER',
      `no manager answers at ${manager}; start one with \`sluice local\`, or give its address with --manager`,
      { cause: error },
    )
  }
  if (isShuffleError(error, 'UNAUTHENTICATED')) {
    return new ShuffleError(
      'UNAUTHENTICATED',
      `${error.message}; give the secret of the cluster with --token-file, its name with --cluster-id`,
      { cause: error },
    )
  }
  return error
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

function asJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
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
      worker.isDraining ? `${worker.state}, draining` : worker.state,
      String(worker.partitionCount),
      humanBytes(worker.byteCount),
      humanBytes(worker.directories.reduce((sum, directory) => sum + directory.freeBytes, 0)),
      `${humanDuration(worker.silentMs)} ago`,
    ]),
  )
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
