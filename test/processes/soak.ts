// `npm run soak -- --minutes M`: jobs without end on real processes, while every half minute one of them is
// ended, by SIGTERM and by SIGKILL in turn, and started again. One worker and this process, the client, are
// never restarted: their figures in the second half must be at most a tenth above those of the first half.
// Every result is compared; what had to be run again is reported. Each job goes through all of its life:
// registration, partitions of every size, broadcast ones, an attempt that is aborted, a reader that stops
// early, release, the job's end; when all have ended nothing may be left anywhere. Exits with 1 when
// something was wrong. Linux only: it looks into /proc.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  isShuffleError,
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  type ShuffleDescriptor,
} from '../../client/index.ts'
import { Arguments } from '../support/arguments.ts'
import { TestCluster, scrape, until, type ClusterProcess } from '../support/cluster.ts'
import { EmbeddedClient } from '../support/embedded-client.ts'
import { SoakFigures } from './soak-figures.ts'
import { recordsByPartition, SoakJob, subpartitions } from './soak-job.ts'

const commandLine = new Arguments(`npm run soak -- [options]

  --minutes M         how long (60)
  --restart-every S   seconds between two restarts (30)`)
const { values } = commandLine.parse({
  options: {
    minutes: { type: 'string', default: '60' },
    'restart-every': { type: 'string', default: '30' },
  },
})
const lengthMs = commandLine.count('minutes', values.minutes, 1) * 60_000
const restartEveryMs = commandLine.count('restart-every', values['restart-every'], 1) * 1_000
const sampleEveryMs = 2_000
const progressEveryMs = 60_000
/** So that a machine that others use too stays usable. */
const pauseBetweenJobsMs = 100
const attemptsMax = 40
/**
 * Shown, not judged: how many waits, each with its timer, a sample meets is chance, and that each ends in
 * time is looked at instead; so is how much of its own records the soak has in hand, and how much garbage
 * the worker. Between two jobs the client has neither, and its heap and timers are judged then; the
 * worker's heap where it is lowest in half a minute.
 */
const ofTheMoment = [
  'worker waiters',
  'client waiters',
  'client timers of a job',
  'client heap with its records',
  'worker heap with garbage',
]
/** For a process to end by itself; it drains first. */
const endForMs = 90_000

const cluster = await TestCluster.start({
  workers: 3,
  managerOptions: [
    '--heartbeat-interval=1s',
    '--worker-suspect-after=3s',
    '--worker-recovery-time=20s',
    '--start-grace=5s',
    '--settle-time=1s',
    '--job-timeout=60s',
  ],
})
const client = await EmbeddedClient.start({ managerUrl: cluster.managerUrl, jobId: 'soak' })
const figures = new SoakFigures({
  worker: cluster.worker(0),
  environment: client.environment,
  middleMs: lengthMs / 2,
})
const neverRestarted = cluster.worker(0).run?.pid
const startedMs = performance.now()
const counts = {
  jobs: 0,
  records: 0,
  attemptsAgain: 0,
  readsAgain: 0,
  restarts: { SIGTERM: 0, SIGKILL: 0 },
}
/** Failed attempts and reads, by code. */
const failures: Record<string, number> = {}
const wrong = figures.wrong

try {
  await Promise.all([runJobs(), restartOthers(), sample()].map(watched))
  if (wrong.length === 0) await watched(nothingIsLeft())
} finally {
  await client[Symbol.asyncDispose]()
  await cluster.stop()
}
judge()
process.stdout.write(`${JSON.stringify({ ...counts, failures, samples: figures.sampleCount })}\n`)
for (const each of new Set(wrong)) process.stdout.write(`WRONG: ${each}\n`)
process.exit(wrong.length > 0 ? 1 : 0)

/** Whatever goes wrong ends the run, with the figures so far. */
async function watched(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    wrong.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
}

function isOver(): boolean {
  return performance.now() - startedMs > lengthMs || wrong.length > 0
}

async function runJobs(): Promise<void> {
  for (let number = 0; !isOver(); number += 1) {
    const jobId = parseJobId(`soak-${String(number)}`)
    await again(() =>
      client.master.registerJob({
        jobId,
        onPartitionsLost: () => undefined,
        onJobFailed: ({ message }) => wrong.push(`job ${jobId} failed: ${message}`),
      }),
    )
    await runJob(new SoakJob(jobId, number))
    await client.master.unregisterJob(jobId)
    counts.jobs += 1
    await pause(pauseBetweenJobsMs)
    figures.sampleBetweenJobs(performance.now() - startedMs)
  }
}

async function runJob(job: SoakJob): Promise<void> {
  const descriptors = await Promise.all(
    recordsByPartition.map((_, index) => produce(job, index, 'first')),
  )
  await abortOne(job)
  await stopReadingEarly(descriptors)
  await Promise.all([consume(job, descriptors, 0, 1), consume(job, descriptors, 2, 3)])
  for (const descriptor of descriptors) client.master.releasePartitionExternally(descriptor)
}

async function allocate(job: SoakJob, index: number, attempt: string): Promise<ShuffleDescriptor> {
  return await client.master.registerPartitionWithProducer(
    job.jobId,
    {
      dataSetId: parseDataSetId('data'),
      partitionIndex: index,
      totalPartitions: recordsByPartition.length,
      subpartitionCount: subpartitions,
      isBroadcast: job.isBroadcast,
    },
    { attemptId: parseAttemptId(attempt) },
  )
}

/** Until an attempt has committed. */
async function produce(job: SoakJob, index: number, name: string): Promise<ShuffleDescriptor> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    let descriptor: ShuffleDescriptor | undefined
    try {
      descriptor = await allocate(job, index, `${name}-${String(attempt)}`)
      if (job.isBroadcast) await broadcast(descriptor, job.records(index)[0] ?? [])
      else await client.write(descriptor, job.records(index))
      return descriptor
    } catch (error) {
      note(error)
      counts.attemptsAgain += 1
      if (descriptor !== undefined) client.master.releasePartitionExternally(descriptor)
      await pause(200)
    }
  }
  throw new Error(`partition ${String(index)} of ${job.jobId} cannot be produced`)
}

async function broadcast(descriptor: ShuffleDescriptor, texts: readonly string[]): Promise<void> {
  const partition = client.environment.createResultPartition({ descriptor })
  try {
    for (const text of texts) await partition.broadcastRecord(Buffer.from(text))
    await partition.finish()
  } catch (error) {
    partition.abort(error)
    throw error
  }
}

/** An attempt that is given up inside a region. */
async function abortOne(job: SoakJob): Promise<void> {
  try {
    const descriptor = await allocate(job, 0, 'aborted')
    const partition = client.environment.createResultPartition({ descriptor })
    for (let at = 0; at < 30; at += 1) {
      await partition.emitRecord(Buffer.alloc(40_000, at), at % subpartitions)
    }
    partition.abort()
    client.master.releasePartitionExternally(descriptor)
  } catch (error) {
    note(error)
  }
}

async function stopReadingEarly(descriptors: readonly ShuffleDescriptor[]): Promise<void> {
  const gate = client.gate(descriptors, { first: 0, last: subpartitions - 1 })
  try {
    const batch = await gate.nextBatch()
    batch?.recycle()
  } catch (error) {
    note(error)
  } finally {
    await gate.close()
  }
}

async function consume(
  job: SoakJob,
  descriptors: ShuffleDescriptor[],
  first: number,
  last: number,
): Promise<void> {
  const expected = job.expected(first, last)
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    try {
      const texts = (await client.read(descriptors, { first, last })).sort()
      if (texts.length !== expected.length || texts.some((text, at) => text !== expected[at])) {
        wrong.push(`${job.jobId}: other records were read than were written`)
      }
      counts.records += texts.length
      return
    } catch (error) {
      const index = note(error).fields['inputIndex']
      if (typeof index !== 'number') throw error
      counts.readsAgain += 1
      process.stdout.write(`${new Date().toISOString()} read again: ${String(error)}\n`)
      const old = descriptors[index]
      if (old !== undefined) client.master.releasePartitionExternally(old)
      descriptors[index] = await produce(job, index, `${String(first)}-${String(attempt)}`)
    }
  }
  throw new Error(`${job.jobId} cannot be read`)
}

/** An error that a cluster under restarts may give: with a code; anything else is a fault. */
function note(error: unknown) {
  if (!isShuffleError(error)) throw error
  failures[error.code] = (failures[error.code] ?? 0) + 1
  return error
}

async function again(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await work()
      return
    } catch (error) {
      if (attempt === attemptsMax) throw error
      note(error)
      await pause(200)
    }
  }
}

async function restartOthers(): Promise<void> {
  const others: ClusterProcess[] = [cluster.worker(1), cluster.worker(2), cluster.manager]
  for (let turn = 0; !isOver(); turn += 1) {
    await pauseUntil(startedMs + (turn + 1) * restartEveryMs)
    if (isOver()) return
    const other = others[turn % others.length]
    // Their number is odd, so that each of them meets both signals in turn.
    const signal = turn % 2 === 0 ? 'SIGKILL' : 'SIGTERM'
    other?.signal(signal)
    await until('the process has ended', () => other?.run?.isRunning === false, endForMs)
    await other?.start()
    counts.restarts[signal] += 1
  }
}

async function sample(): Promise<void> {
  let toldMs = startedMs
  while (!isOver()) {
    await pause(sampleEveryMs)
    await figures.sample(performance.now() - startedMs)
    for (const { run } of [cluster.manager, ...cluster.workers]) {
      if (run !== undefined) run.stderr = ''
    }
    if (performance.now() - toldMs < progressEveryMs) continue
    toldMs = performance.now()
    const minute = ((toldMs - startedMs) / 60_000).toFixed(0)
    process.stdout.write(`minute ${minute}: ${JSON.stringify({ ...counts, failures })}\n`)
  }
}

/** The end of all jobs leaves no partition, file, buffer, channel, wait or connection behind. */
async function nothingIsLeft(): Promise<void> {
  await client.master.unregisterJob(client.jobId)
  const inUse = () => {
    const { openPartitions, openGates, channels, buffersInUse } = client.environment.statistics()
    return { openPartitions, openGates, channels, buffersInUse }
  }
  await until('the client holds nothing', () => Object.values(inUse()).every((each) => each === 0))
  await until(
    'the manager knows no partition',
    async () => {
      const sums = await scrape(cluster.manager.httpUrl)
      const names = ['sluice_manager_partitions', 'sluice_manager_jobs']
      return names.every((name) => sums.get(name) === 0)
    },
    180_000,
  )
  for (const [index, worker] of cluster.workers.entries()) {
    await until(`worker ${String(index)} holds nothing`, async () => {
      const sums = await scrape(worker.httpUrl)
      const names = ['partitions', 'channels', 'buffers_held', 'credit_outstanding']
      return names.every((name) => sums.get(`sluice_worker_${name}`) === 0)
    })
    const directory = join(cluster.directory, `worker-${String(index)}`, 'partitions')
    await until(`worker ${String(index)} has no file`, () => readdirSync(directory).length === 0)
  }
  if (cluster.worker(0).run?.pid !== neverRestarted) wrong.push('worker 0 was restarted')
}

/** The highest of the second half against the highest of the first. */
function judge(): void {
  for (const { name, first, second, ratio } of figures.compare()) {
    process.stdout.write(
      `${name}: ${String(first)} in the first half, ${String(second)} in the second, ${ratio.toFixed(3)}\n`,
    )
    if (!(ratio <= 1.1) && !ofTheMoment.includes(name))
      wrong.push(`${name} grew to ${ratio.toFixed(2)} times`)
  }
}

function pauseUntil(atMs: number): Promise<void> {
  return pause(Math.max(0, atMs - performance.now()))
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
