// `npm run soak -- --minutes M`: jobs without end on real processes, while every half minute one of them is
// ended, by SIGTERM and by SIGKILL in turn, and started again. One worker and this process, the client, are
// never restarted: their figures in the second half must be at most a tenth above those of the first half.
// Every result is compared; what had to be run again is reported. Exits with 1 when something was wrong.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { parseArgs } from 'node:util'
import {
  isShuffleError,
  parseAttemptId,
  parseDataSetId,
  type ShuffleDescriptor,
} from '../../client/index.ts'
import { TestCluster, type ClusterProcess } from '../support/cluster.ts'
import { EmbeddedClient } from '../support/embedded-client.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    'restart-every': { type: 'string', default: '30' },
  },
})
const lengthMs = Number(values.minutes) * 60_000
const restartEveryMs = Number(values['restart-every']) * 1_000
const sampleEveryMs = 2_000
const partitions = 6
const subpartitions = 4
const recordsEach = 400
const attemptsMax = 40

type Figures = Readonly<Record<string, number>>

const cluster = await TestCluster.start({
  workers: 3,
  managerOptions: [
    '--heartbeat-interval=1s',
    '--worker-suspect-after=3s',
    '--worker-recovery-time=20s',
    '--start-grace=5s',
    '--settle-time=1s',
  ],
})
const client = await EmbeddedClient.start({ managerUrl: cluster.managerUrl, jobId: 'soak' })
const startedMs = performance.now()
const samples: { readonly atMs: number; readonly figures: Figures }[] = []
const counts = { rounds: 0, records: 0, attemptsAgain: 0, readsAgain: 0, restarts: 0 }
const wrong: string[] = []

try {
  await Promise.all([runJobs(), restartOthers(), sample()])
} finally {
  await client[Symbol.asyncDispose]()
  await cluster.stop()
}
judge()
process.stdout.write(`${JSON.stringify(counts)}\n`)
for (const each of wrong) process.stdout.write(`WRONG: ${each}\n`)
process.exit(wrong.length > 0 ? 1 : 0)

function isOver(): boolean {
  return performance.now() - startedMs > lengthMs || wrong.length > 0
}

async function runJobs(): Promise<void> {
  for (let round = 0; !isOver(); round += 1) {
    const descriptors = await Promise.all(
      Array.from({ length: partitions }, (_, index) => produce(round, index, 0)),
    )
    await Promise.all([consume(round, descriptors, 0, 1), consume(round, descriptors, 2, 3)])
    for (const descriptor of descriptors) client.master.releasePartitionExternally(descriptor)
    counts.rounds += 1
  }
}

/** Until an attempt has committed. */
async function produce(round: number, index: number, from: number): Promise<ShuffleDescriptor> {
  for (let attempt = from; attempt < from + attemptsMax; attempt += 1) {
    let descriptor: ShuffleDescriptor | undefined
    try {
      descriptor = await client.master.registerPartitionWithProducer(
        client.jobId,
        {
          dataSetId: parseDataSetId(`round-${String(round)}`),
          partitionIndex: index,
          totalPartitions: partitions,
          subpartitionCount: subpartitions,
          isBroadcast: false,
        },
        { attemptId: parseAttemptId(`attempt-${String(attempt)}`) },
      )
      await client.write(descriptor, recordsOf(round, index))
      return descriptor
    } catch (error) {
      if (!isShuffleError(error)) throw error
      counts.attemptsAgain += 1
      if (descriptor !== undefined) client.master.releasePartitionExternally(descriptor)
      await pause(200)
    }
  }
  throw new Error(`partition ${String(index)} of round ${String(round)} cannot be produced`)
}

async function consume(
  round: number,
  descriptors: ShuffleDescriptor[],
  first: number,
  last: number,
): Promise<void> {
  const expected = descriptors
    .flatMap((_, index) => recordsOf(round, index).slice(first, last + 1))
    .flat()
    .sort()
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    try {
      const texts = (await client.read(descriptors, { first, last })).sort()
      if (texts.length !== expected.length || texts.some((text, at) => text !== expected[at])) {
        wrong.push(`round ${String(round)}: other records were read than were written`)
      }
      counts.records += texts.length
      return
    } catch (error) {
      const index = isShuffleError(error) ? error.fields['inputIndex'] : undefined
      if (typeof index !== 'number') throw error
      counts.readsAgain += 1
      const old = descriptors[index]
      if (old !== undefined) client.master.releasePartitionExternally(old)
      descriptors[index] = await produce(round, index, attempt * 1_000 + first * 100)
    }
  }
  throw new Error(`round ${String(round)} cannot be read`)
}

async function restartOthers(): Promise<void> {
  const others: ClusterProcess[] = [cluster.worker(1), cluster.worker(2), cluster.manager]
  for (let turn = 0; !isOver(); turn += 1) {
    await pause(restartEveryMs)
    if (isOver()) return
    const other = others[turn % others.length]
    // By both signals in turn, also when the number of processes is even.
    const isHard = Math.floor(turn / others.length + turn) % 2 === 0
    await other?.kill(isHard ? 'SIGKILL' : 'SIGTERM')
    await other?.start()
    counts.restarts += 1
  }
}

async function sample(): Promise<void> {
  while (!isOver()) {
    await pause(sampleEveryMs)
    global.gc?.()
    const { heapUsed } = process.memoryUsage()
    const { text, heap } = await workerMetrics()
    samples.push({
      atMs: performance.now() - startedMs,
      figures: {
        ...ofProcess('worker', cluster.worker(0).run?.pid ?? 0),
        'worker heap': heap,
        'worker series': text.split('\n').filter((line) => /^[a-z]/.test(line)).length,
        ...ofProcess('client', process.pid),
        'client heap': heapUsed,
        'client timers': process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
          .length,
        'client waiters': client.environment.statistics().waiters.length,
      },
    })
  }
}

async function workerMetrics(): Promise<{ readonly text: string; readonly heap: number }> {
  const text = await (await fetch(`${cluster.worker(0).httpUrl}/metrics`)).text()
  const heap = /^sluice_worker_heap_used_bytes (\S+)/m.exec(text)?.[1]
  return { text, heap: Number(heap ?? 0) }
}

function ofProcess(name: string, pid: number): Figures {
  const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8')
  const links = readdirSync(`/proc/${String(pid)}/fd`).map((fd) => linkOf(pid, fd))
  return {
    [`${name} resident`]: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024,
    [`${name} descriptors`]: links.length,
    [`${name} sockets`]: links.filter((link) => link.startsWith('socket:')).length,
  }
}

function linkOf(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${String(pid)}/fd/${fd}`)
  } catch {
    return 'closed meanwhile'
  }
}

/** The highest of the second half against the highest of the first. */
function judge(): void {
  const middleMs = (performance.now() - startedMs) / 2
  const highest = (name: string, isFirst: boolean) =>
    Math.max(
      0,
      ...samples
        .filter(({ atMs }) => atMs < middleMs === isFirst)
        .map(({ figures }) => figures[name] ?? 0),
    )
  for (const name of Object.keys(samples[0]?.figures ?? {})) {
    const first = highest(name, true)
    const second = highest(name, false)
    const ratio = first === 0 ? (second === 0 ? 1 : Infinity) : second / first
    process.stdout.write(
      `${name}: ${String(first)} in the first half, ${String(second)} in the second, ${ratio.toFixed(3)}\n`,
    )
    if (ratio > 1.1) wrong.push(`${name} grew by ${((ratio - 1) * 100).toFixed(0)} %`)
  }
}

function recordsOf(round: number, index: number): string[][] {
  return Array.from({ length: subpartitions }, (_, subpartition) =>
    Array.from({ length: recordsEach }, (__, at) =>
      `${String(round)}/${String(index)}/${String(subpartition)}/${String(at)} `.repeat(
        1 + (at % 9),
      ),
    ),
  )
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
