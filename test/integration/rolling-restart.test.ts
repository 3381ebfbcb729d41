// Every worker and the manager are restarted one after the other, as an upgrade does it, while jobs
// run: nothing fails, nothing committed is produced again, readers resume, and only producers that
// take longer than the drain time run again.

import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ShuffleDescriptor } from '../../client/index.ts'
import { scrape, startSluice, TestCluster, until, type ClusterProcess } from '../support/cluster.ts'
import { EmbeddedClient } from '../support/embedded-client.ts'
import { writeTextLines } from '../support/line-data.ts'

const workerCount = 3
const mapCount = 16
/** Producers that a sort runs at a time. */
const openAtOnceMax = 2

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start({
    workers: workerCount,
    managerOptions: [
      '--heartbeat-interval=500ms',
      '--worker-suspect-after=2s',
      '--start-grace=2s',
      '--settle-time=1s',
    ],
    // Long enough for the producers of a sort, on a busy machine too.
    workerOptions: ['--drain-timeout=10s'],
  })
  writeTextLines({ path: join(cluster.directory, 'input'), sizeBytes: 8_000_000, seed: 11 })
})
afterAll(async () => {
  await cluster.stop()
})

async function ready(process: ClusterProcess): Promise<void> {
  await until('it is ready', async () => {
    const answer = await fetch(`${process.httpUrl}/readyz`).catch(() => undefined)
    return answer?.status === 200
  })
}

interface Probes {
  /** Status of /readyz and /healthz, each time they answered while the process stopped. */
  readonly ready: number[]
  readonly alive: number[]
}

/** As Kubernetes or systemd does it: SIGTERM, wait for the end, start again, wait until it is ready. */
async function restart(process: ClusterProcess): Promise<Probes> {
  const seen: Probes = { ready: [], alive: [] }
  const ended = process.kill('SIGTERM')
  while (process.run?.isRunning === true) {
    const status = async (path: string) =>
      (await fetch(`${process.httpUrl}${path}`).catch(() => undefined))?.status
    const [isReady, isAlive] = [await status('/readyz'), await status('/healthz')]
    if (isReady !== undefined) seen.ready.push(isReady)
    if (isAlive !== undefined) seen.alive.push(isAlive)
  }
  await ended
  await process.start()
  await ready(process)
  return seen
}

interface Summary {
  readonly producerAttempts: number
  readonly consumerAttempts: number
}

async function sort(name: string): Promise<Summary> {
  const run = startSluice([
    'sort',
    '--json',
    `--manager=${cluster.managerUrl}`,
    `--input=${join(cluster.directory, 'input')}`,
    `--output=${join(cluster.directory, name)}`,
    `--maps=${String(mapCount)}`,
    '--reduces=4',
    `--task-processes=${String(openAtOnceMax)}`,
  ])
  run.child.stdin?.end()
  const finished = await run.finished
  expect(finished.code, finished.stderr.slice(-4000)).toBe(0)
  return JSON.parse(finished.stdout) as Summary
}

/** Sorts one after the other until `isOver`; the summaries of all. */
async function sortUntil(isOver: () => boolean): Promise<Summary[]> {
  const summaries: Summary[] = []
  do summaries.push(await sort(`output-${String(summaries.length)}`))
  while (!isOver())
  return summaries
}

describe('a rolling restart under jobs', { timeout: 300_000 }, () => {
  it('fails no job, produces nothing committed again, and readers resume', async () => {
    await using client = await EmbeddedClient.start({
      managerUrl: cluster.managerUrl,
      jobId: 'reader',
    })
    // Committed before: what is read through all restarts. Every worker holds some of it.
    const records = Array.from(
      { length: 9 },
      (_, index) => `${String(index)} ${'r'.repeat(300_000)}`,
    )
    const descriptors: ShuffleDescriptor[] = []
    for (const [index, record] of records.entries()) {
      const descriptor = await client.allocate(index, 1)
      await client.write(descriptor, [[record]])
      descriptors.push(descriptor)
    }
    expect(new Set(descriptors.map(({ holders }) => holders[0]?.workerId)).size).toBe(workerCount)
    const gate = client.gate(descriptors, { first: 0, last: 0 })
    const received: string[] = []
    const readOn = async () => {
      const batch = await gate.nextBatch()
      if (batch?.kind === 'records') {
        batch.forEach((bytes, start, end) => {
          received.push(Buffer.from(bytes.subarray(start, end)).toString())
        })
      }
      batch?.recycle()
      return batch !== undefined
    }
    await readOn()

    let isOver = false
    const sorts = sortUntil(() => isOver)
    for (const worker of cluster.workers) {
      const { ready: readiness, alive } = await restart(worker)
      expect(readiness.filter((status) => status === 200).length).toBeLessThanOrEqual(1)
      expect(new Set(alive)).toEqual(new Set(alive.length === 0 ? [] : [200]))
      await readOn()
    }
    await restart(cluster.manager)
    isOver = true
    const summaries = await sorts
    for (let hasMore = true; hasMore;) hasMore = await readOn()
    await gate.close()
    expect(received.sort()).toEqual(records)
    expect(client.lost).toEqual([])

    const expected = join(cluster.directory, 'expected')
    execFileSync('sort', ['-o', expected, join(cluster.directory, 'input')], {
      env: { ...process.env, LC_ALL: 'C' },
    })
    for (const index of summaries.keys()) {
      const output = readFileSync(join(cluster.directory, `output-${String(index)}`))
      expect(output.equals(readFileSync(expected))).toBe(true)
    }
    // What was committed was never run again: each further attempt is one that its worker refused.
    const { events } = await cluster.get<{ events: { type: string; code?: string }[] }>(
      '/v1/events?limit=10000',
    )
    expect(events.filter(({ type }) => type === 'partitions-lost')).toEqual([])
    const attempts = summaries.reduce((sum, one) => sum + one.producerAttempts, 0)
    expect(attempts - mapCount * summaries.length).toBeLessThanOrEqual(workerCount * openAtOnceMax)
    const consumers = summaries.reduce((sum, one) => sum + one.consumerAttempts, 0)
    expect(consumers).toBe(summaries.length * 4)
  })

  it('a producer shorter than the drain time commits, a longer one fails with WORKER_DRAINING and is counted', async () => {
    await using client = await EmbeddedClient.start({
      managerUrl: cluster.managerUrl,
      jobId: 'producers',
    })
    const [worker] = cluster.workers
    const holder = worker?.ready?.workerId
    const descriptors: ShuffleDescriptor[] = []
    for (let index = 0; descriptors.length < 2; index++) {
      const descriptor = await client.allocate(index, 1)
      if (descriptor.holders[0]?.workerId === holder) descriptors.push(descriptor)
    }
    const [short, long] = descriptors.map((descriptor) =>
      client.environment.createResultPartition({ descriptor, memoryBytes: 256 * 1024 }),
    )
    for (const producer of [short, long]) {
      for (let count = 0; count < 8; count++) await producer?.emitRecord(randomBytes(100_000), 0)
    }
    const writing = 'sluice_worker_partitions{state="writing"}'
    await until('both are open', async () => (await scrape(worker!.httpUrl)).get(writing) === 2)
    const drained = worker!.kill('SIGTERM')
    await until('it drains', async () => {
      const answer = await fetch(`${worker!.httpUrl}/readyz`)
      return answer.status === 503
    })
    await short?.finish()
    await drained
    await expect(long!.finish()).rejects.toMatchObject({ code: 'WORKER_DRAINING' })
    await worker!.start()
    await ready(worker!)
    expect(await client.read([descriptors[0]!], { first: 0, last: 0 })).toHaveLength(8)
    // The worker that counted is gone; the manager has the producer's own report.
    await until('the manager has heard of it', async () => {
      const samples = await scrape(cluster.managerUrl)
      return samples.get('sluice_manager_client_reports_total{code="WORKER_DRAINING"}') === 1
    })
  })
})
