// A running sort, and processes killed under it at chosen moments. The output is right each time,
// and the summary says what had to be run again.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import {
  scrape,
  startSluice,
  TestCluster,
  until,
  type ChildRun,
  type ClusterProcess,
} from '../support/cluster.ts'
import { EmbeddedClient } from '../support/embedded-client.ts'
import { writeTextLines } from '../support/line-data.ts'

const mapCount = 24
const inputBytes = 12_000_000
/** Silence is judged in seconds, so that a test sees a verdict. */
const verdicts = (recoveryTime: string): readonly string[] => [
  '--heartbeat-interval=500ms',
  '--worker-suspect-after=1500ms',
  `--worker-recovery-time=${recoveryTime}`,
  '--start-grace=2s',
  '--settle-time=1s',
]

let cluster: TestCluster | undefined
let job: ChildRun | undefined
afterEach(async () => {
  await job?.kill()
  await cluster?.stop()
  job = undefined
  cluster = undefined
})

interface Summary {
  readonly producerAttempts: number
  readonly consumerAttempts: number
}

async function startCluster(workers: number, recoveryTime = '4s'): Promise<TestCluster> {
  cluster = await TestCluster.start({ workers, managerOptions: verdicts(recoveryTime) })
  writeTextLines({ path: join(cluster.directory, 'input'), sizeBytes: inputBytes, seed: 7 })
  return cluster
}

function startSort(on: TestCluster, options: readonly string[] = []): ChildRun {
  job = startSluice([
    'sort',
    '--manager',
    on.managerUrl,
    '--input',
    join(on.directory, 'input'),
    '--output',
    join(on.directory, 'output'),
    `--maps=${String(mapCount)}`,
    '--reduces=6',
    '--json',
    ...options,
  ])
  job.child.stdin?.end()
  return job
}

async function finishSort(on: TestCluster, run: ChildRun): Promise<Summary> {
  const finished = await run.finished
  expect(finished.code, finished.stderr.slice(-4000)).toBe(0)
  const expected = join(on.directory, 'expected')
  execFileSync('sort', ['-o', expected, join(on.directory, 'input')], {
    env: { ...process.env, LC_ALL: 'C' },
  })
  expect(readFileSync(join(on.directory, 'output')).equals(readFileSync(expected))).toBe(true)
  return JSON.parse(finished.stdout) as Summary
}

async function metric(process: ClusterProcess, name: string): Promise<number> {
  const samples = await scrape(process.httpUrl)
  return samples.get(name) ?? 0
}

const committed = 'sluice_worker_partitions_committed_total'
const writing = 'sluice_worker_partitions{state="writing"}'
const readChannels = 'sluice_worker_channels{kind="read"}'
const framesOut = 'sluice_worker_data_frames_total{direction="out"}'

/** Ids of the task processes of a job: its children. */
function taskProcesses(run: ChildRun): readonly number[] {
  const children = readFileSync(`/proc/${String(run.pid)}/task/${String(run.pid)}/children`, 'utf8')
  return children.trim().split(' ').map(Number)
}

describe('a sort survives', { timeout: 180_000 }, () => {
  it('a worker that is killed for ever while partitions are committed and one is open', async () => {
    const on = await startCluster(3)
    const run = startSort(on)
    const victim = on.worker(0)
    await until('a third committed and one open', async () => {
      const all = await Promise.all(on.workers.map((worker) => scrape(worker.httpUrl)))
      const total = all.reduce((sum, samples) => sum + (samples.get(committed) ?? 0), 0)
      const own = all[0]
      return (
        total >= mapCount / 3 && (own?.get(committed) ?? 0) >= 1 && (own?.get(writing) ?? 0) >= 1
      )
    })
    await victim.kill()
    const summary = await finishSort(on, run)
    expect(summary.producerAttempts).toBeGreaterThan(mapCount)
  })

  it('a worker that is killed for ever between a buffer received and its PartitionFinish', async () => {
    const on = await startCluster(3)
    const run = startSort(on)
    const victim = on.worker(0)
    await until('a read has begun', async () => (await metric(victim, framesOut)) > 0)
    const tasks = taskProcesses(run)
    for (const task of tasks) process.kill(task, 'SIGSTOP')
    const samples = await scrape(victim.httpUrl)
    expect(samples.get(readChannels)).toBeGreaterThan(0)
    await victim.kill()
    for (const task of tasks) process.kill(task, 'SIGCONT')
    const summary = await finishSort(on, run)
    expect(summary.producerAttempts).toBeGreaterThan(mapCount)
  })

  it('a manager that is killed and restarted between allocation and commit', async () => {
    const on = await startCluster(2)
    const run = startSort(on)
    await until('a partition is open', async () => (await metric(on.worker(0), writing)) > 0)
    await on.manager.kill()
    await on.manager.start()
    const summary = await finishSort(on, run)
    expect(summary.producerAttempts).toBe(mapCount)
  })

  it('a worker that is killed and restarted after the map stage, without running anything again', async () => {
    // On a busy machine a restart takes seconds: the worker is back within the recovery time.
    const on = await startCluster(2, '60s')
    const run = startSort(on)
    const victim = on.worker(1)
    await until('all maps have committed and a read has begun', async () => {
      const [first, second] = await Promise.all(on.workers.map((w) => scrape(w.httpUrl)))
      const total = (first?.get(committed) ?? 0) + (second?.get(committed) ?? 0)
      return total === mapCount && (second?.get(framesOut) ?? 0) > 0
    })
    await victim.kill()
    await victim.start()
    const summary = await finishSort(on, run)
    expect(summary.producerAttempts).toBe(mapCount)
    expect(summary.consumerAttempts).toBe(6)
  })
})

it('a release survives a manager that is killed before it was confirmed', async () => {
  const on = await startCluster(1)
  const worker = on.worker(0)
  await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
  const descriptors = await Promise.all([0, 1].map((index) => client.allocate(index, 2)))
  for (const descriptor of descriptors) await client.write(descriptor, [['a'], ['b']])
  const [released, kept] = descriptors
  if (released === undefined || kept === undefined) throw new Error('two were allocated')
  const stored = 'sluice_worker_partitions{state="committed"}'
  expect(await metric(worker, stored)).toBe(2)
  // The worker can't hear of it: the manager that took the release dies before it could tell.
  worker.signal('SIGSTOP')
  client.master.releasePartitionExternally(released)
  await until('the manager has taken the release', async () => {
    const { partitions } = await on.get<{ partitions: readonly { state: string }[] }>(
      `/v1/jobs/${client.jobId}/partitions`,
    )
    return partitions.some((partition) => partition.state === 'releasing')
  })
  await on.manager.kill()
  worker.signal('SIGCONT')
  await on.manager.start()
  await until('one is stored', async () => (await metric(worker, stored)) === 1)
  expect(await client.read([kept], { first: 0, last: 1 })).toEqual(['a', 'b'])
  await expect(client.read([released], { first: 0, last: 1 })).rejects.toMatchObject({
    action: 'produce-again',
  })
  expect(client.lost).toEqual([])
})

it('a consumer that has a buffer and no PartitionFinish is told which partition its dead worker took', async () => {
  const on = await startCluster(1)
  await using client = await EmbeddedClient.start({
    managerUrl: on.managerUrl,
    options: { readUnreachableTimeoutMs: 2000 },
  })
  const descriptor = await client.allocate(0, 1)
  const record = Array.from({ length: 20_000 }, (_, index) => String(Math.imul(index, 2654435761)))
  await client.write(descriptor, [Array.from({ length: 100 }, () => record.join())])
  const gate = client.gate([descriptor], { first: 0, last: 0 })
  const first = await gate.nextBatch()
  first?.recycle()
  expect(gate.inputs()).toMatchObject([{ state: 'reading', isBegun: true }])
  await on.worker(0).kill()
  const drained = (async () => {
    for await (const batch of gate) batch.recycle()
  })()
  await expect(drained).rejects.toMatchObject({
    code: 'WORKER_UNREACHABLE',
    action: 'produce-again',
    fields: { partitionIndex: 0, attemptId: 'attempt-0' },
  })
  await gate.close()
  expect(client.environment.statistics().buffersInUse).toBe(0)
})
