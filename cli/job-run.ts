// Runs a job from the command line: on the cluster that is named, or on one of its own, with progress,
// the workers' counters and a summary.

import { cpus, tmpdir } from 'node:os'

import { parseClusterId } from '../client/common/ids.ts'
import {
  createLogger,
  isShuffleError,
  realWorld,
  shuffleServiceFactory,
  silentLogger,
  type Logger,
} from '../client/index.ts'
import { managerApi } from '../client/manager/api.ts'
import { ManagerClient } from '../client/manager/manager-client.ts'
import { JobMaster } from '../runtime/job-master.ts'
import type { JobResult, JobSummary } from '../runtime/job-result.ts'
import type { JobOutput, PreparedJob } from '../runtime/jobs/prepared-job.ts'
import { forkTaskProcess } from '../runtime/task-process.ts'
import type { CommandContext } from './command.ts'
import { describeStages, describeWait, showProgress } from './job-progress.ts'
import { LocalCluster } from './local-cluster.ts'
import { readToken } from './token-file.ts'
import { untilEnded } from './until-ended.ts'
import {
  countedBetween,
  readCounters,
  type CountersByWorker,
  type WorkerCounters,
} from './worker-counters.ts'

export interface JobRunSettings {
  /** Base address of a manager; undefined for a cluster of its own. */
  readonly manager: string | undefined
  readonly clusterId: string
  readonly tokenFile: string | undefined
  /** Workers of a cluster of its own. */
  readonly workers: number
  /** As many as there are processors unless stated. */
  readonly taskProcesses: number | undefined
  readonly slots: number
  readonly verbose: boolean
}

export interface JobRun {
  readonly summary: JobSummary
  readonly output: JobOutput
  readonly inputBytes: number
  /** What the workers' counters took and gave meanwhile; undefined when they can't be asked any more. */
  readonly counters: WorkerCounters | undefined
}

/** More than this many task processes gain nothing on one machine's disks. */
const taskProcessesDefaultMax = 8

interface Cluster {
  readonly managerUrl: string
  stop(): Promise<void>
}

export async function runJob(
  prepare: () => Promise<PreparedJob>,
  settings: JobRunSettings,
  context: CommandContext,
): Promise<JobRun> {
  context.signal.throwIfAborted()
  const job = await prepare()
  try {
    const cluster = await openCluster(settings, context.signal)
    try {
      return await runJobOn(cluster.managerUrl, job, settings, context)
    } finally {
      await cluster.stop()
    }
  } finally {
    await job.discard()
  }
}

async function openCluster(settings: JobRunSettings, signal: AbortSignal): Promise<Cluster> {
  if (settings.manager !== undefined) {
    return { managerUrl: settings.manager, stop: () => Promise.resolve() }
  }
  return await LocalCluster.start({
    workerCount: settings.workers,
    ports: 'free',
    clusterId: settings.clusterId,
    signal,
  })
}

/** Runs a prepared job on a cluster that runs; the caller discards the job. */
export async function runJobOn(
  managerUrl: string,
  job: PreparedJob,
  settings: JobRunSettings,
  context: CommandContext,
): Promise<JobRun> {
  const token = readToken(settings.tokenFile, context)
  const access = {
    managerUrl,
    clusterId: settings.clusterId,
    ...(token === undefined ? {} : { token }),
  }
  const logger = settings.verbose ? createLogger({ level: 'info', role: 'job' }) : silentLogger
  const shuffleMaster = shuffleServiceFactory.createShuffleMaster({ ...access, logger })
  try {
    await shuffleMaster.start()
    const before = await untilEnded(counters(access), context)
    const master = createMaster(shuffleMaster, job, { managerUrl, settings, logger })
    await job.begin()
    const result = await runShown(master, context)
    const output = await job.commit(result.results)
    const counted = await countedSince(before, access)
    return { summary: result.summary, output, inputBytes: job.inputBytes, counters: counted }
  } finally {
    await shuffleMaster.close()
  }
}

function createMaster(
  shuffleMaster: ReturnType<typeof shuffleServiceFactory.createShuffleMaster>,
  job: PreparedJob,
  of: { readonly managerUrl: string; readonly settings: JobRunSettings; readonly logger: Logger },
): JobMaster {
  const { clusterId, tokenFile, slots, taskProcesses } = of.settings
  return new JobMaster(
    {
      world: realWorld(),
      logger: of.logger,
      shuffleMaster,
      startTaskProcess: forkTaskProcess,
      cluster: {
        managerUrl: of.managerUrl,
        clusterId,
        ...(tokenFile === undefined ? {} : { tokenFile }),
      },
      processCount: taskProcesses ?? Math.min(taskProcessesDefaultMax, cpus().length),
      slotsPerProcess: slots,
      spillDirectory: tmpdir(),
      removeWhenOrphaned: job.temporaryFiles,
    },
    job.plan,
  )
}

async function runShown(master: JobMaster, context: CommandContext): Promise<JobResult> {
  const describe = () =>
    `${describeStages(master.summary().stages)}${describeWait(master.waitsFor)}`
  const stopShowing = showProgress(describe, context)
  try {
    return await master.run(context.signal)
  } finally {
    stopShowing()
  }
}

/** Undefined when the manager is away: the output is in place, what was counted is a detail. */
async function countedSince(
  before: CountersByWorker,
  access: Parameters<typeof counters>[0],
): Promise<WorkerCounters | undefined> {
  try {
    return countedBetween(before, await counters(access))
  } catch (error) {
    if (!isShuffleError(error)) throw error
    return undefined
  }
}

/** Asks the manager for its workers, and these for their counters. */
async function counters(access: {
  readonly managerUrl: string
  readonly clusterId: string
  readonly token?: string
}): Promise<CountersByWorker> {
  const client = new ManagerClient({
    world: realWorld(),
    logger: silentLogger,
    url: access.managerUrl,
    clusterId: parseClusterId(access.clusterId),
    ...(access.token === undefined ? {} : { token: access.token }),
  })
  try {
    const nothing = { params: {}, query: {}, body: undefined }
    const { workers } = await client.call(managerApi.listWorkers, nothing)
    const urls = workers.flatMap(({ host, httpPort }) =>
      httpPort === undefined
        ? []
        : [`http://${host.includes(':') ? `[${host}]` : host}:${httpPort}`],
    )
    return await readCounters(urls, access.token)
  } finally {
    await client.close()
  }
}
