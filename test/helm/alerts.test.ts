// The alerts that matter most, seen to fire on a real Prometheus that scrapes real processes, each for
// an honest cause: a disk that is nearly full, one whose calls are slow, processes that were stopped or
// killed, producers that wait for memory, a byte that was flipped. The rules are the chart's; only
// their waits are shortened.

import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ShuffleDescriptor } from '../../client/index.ts'
import { ChildRun, ClusterProcess, TestCluster, until } from '../support/cluster.ts'
import { freePorts } from '../support/deploy/chart-pod.ts'
import { toolPath } from '../support/deploy/chart-tools.ts'
import { EmbeddedClient } from '../support/embedded-client.ts'
import { projectRoot } from '../support/source-tree.ts'

const alertsMs = 180_000
/** One call in each of these waits so long before it is made. */
const slowCallsUs = 1_500_000

let cluster: TestCluster
let crowded: ClusterProcess
let tight: ClusterProcess
let disk = ''
let prometheus: ChildRun | undefined
let prometheusPort = 0
let strace: ChildRun | undefined

beforeAll(async () => {
  cluster = await TestCluster.start({
    workers: 2,
    managerOptions: [
      '--heartbeat-interval=500ms',
      '--worker-suspect-after=1500ms',
      '--worker-recovery-time=8s',
      '--start-grace=1s',
      '--settle-time=500ms',
    ],
    workerOptions: ['--min-reserved-space=1mb'],
  })
  // A file system of its own, nine tenths of it taken by someone else.
  disk = join(cluster.directory, 'small-disk')
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', disk])
  writeFileSync(join(disk, 'of-someone-else'), Buffer.alloc(58 * 1024 * 1024))
  crowded = workerOn(disk, ['--min-reserved-space=1mb'])
  // Its producers will lack memory, once its disk is slow.
  tight = workerOn(join(cluster.directory, 'tight'), [
    '--min-reserved-space=1mb',
    '--memory=8mb',
    '--disk-probe-interval=1s',
  ])
  await Promise.all([crowded.start(), tight.start()])
  ;[prometheusPort = 0] = await freePorts(1)
  prometheus = startPrometheus()
}, 240_000)

afterAll(async () => {
  await strace?.kill('SIGKILL')
  await Promise.all([crowded, tight].map((one) => one.kill()))
  await prometheus?.kill('SIGKILL')
  execFileSync('umount', ['--lazy', disk])
  await cluster.stop()
})

function workerOn(directory: string, options: readonly string[]): ClusterProcess {
  const place = ['--data-directories', join(directory, 'sluice'), '--manager', cluster.managerUrl]
  return new ClusterProcess(['worker', '--host=127.0.0.1', ...place, ...options])
}

function startPrometheus(): ChildRun {
  const scrape = (job: string, processes: readonly ClusterProcess[]) => ({
    job_name: job,
    static_configs: [
      {
        targets: processes.map((one) => one.httpUrl.replace('http://', '')),
        labels: { namespace: 'n' },
      },
    ],
  })
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '900ms', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: [
      scrape('manager', [cluster.manager]),
      scrape('worker', [...cluster.workers, crowded, tight]),
    ],
  }
  const rules = readFileSync(join(projectRoot, 'helm/files/rules.yaml'), 'utf8')
  const soon = rules.replaceAll(/\bfor: \w+/g, 'for: 1s').replaceAll(/\[(5m|10m|2m)\]/g, '[10s]')
  writeFileSync(join(cluster.directory, 'rules.yaml'), soon)
  const configFile = join(cluster.directory, 'prometheus.json')
  writeFileSync(configFile, JSON.stringify(config))
  return new ChildRun(join(toolPath('prometheus-'), 'usr/bin/prometheus'), [
    `--config.file=${configFile}`,
    `--storage.tsdb.path=${join(cluster.directory, 'prometheus')}`,
    `--web.listen-address=127.0.0.1:${String(prometheusPort)}`,
  ])
}

/** The instances for which an alert fires. */
async function firing(alert: string): Promise<readonly string[]> {
  const address = new URL(`http://127.0.0.1:${String(prometheusPort)}/api/v1/query`)
  address.searchParams.set('query', `ALERTS{alertstate="firing",alertname="${alert}"}`)
  const answer = await fetch(address).catch(() => undefined)
  if (answer?.status !== 200) return []
  const { data } = (await answer.json()) as {
    readonly data: {
      readonly result: readonly { readonly metric: { readonly instance: string } }[]
    }
  }
  return data.result.map(({ metric }) => metric.instance)
}

async function fires(alert: string, process: ClusterProcess): Promise<void> {
  const instance = process.httpUrl.replace('http://', '')
  await until(
    `${alert} of ${instance}`,
    async () => (await firing(alert)).includes(instance),
    alertsMs,
  )
}

/** Places of partitions on one worker. */
async function placesOn(
  client: EmbeddedClient,
  worker: ClusterProcess,
  count: number,
): Promise<ShuffleDescriptor[]> {
  const places: ShuffleDescriptor[] = []
  for (let index = 0; places.length < count; index++) {
    const descriptor = await client.allocate(index, 1)
    if (descriptor.holders[0]?.workerId === worker.ready?.workerId) places.push(descriptor)
  }
  return places
}

describe('an alert fires in a real run', () => {
  test('when a disk is nearly full', async () => {
    await fires('SluiceDiskNearlyFull', crowded)
  })

  test('when corrupt data is seen', async () => {
    await using client = await EmbeddedClient.start({
      managerUrl: cluster.managerUrl,
      jobId: 'flipped',
    })
    const [worker] = cluster.workers
    const [descriptor] = await placesOn(client, worker!, 1)
    await client.write(descriptor!, [[randomBytes(200_000).toString('latin1')]])
    const folder = join(cluster.directory, 'worker-0', 'partitions')
    const [name = ''] = readdirSync(folder).filter((one) => one.endsWith('.data'))
    const file = openSync(join(folder, name), 'r+')
    const flipped = readFileSync(join(folder, name)).subarray(1000, 1001)
    writeSync(file, Buffer.from([flipped[0]! ^ 1]), 0, 1, 1000)
    closeSync(file)
    await expect(client.read([descriptor!], { first: 0, last: 0 })).rejects.toMatchObject({
      code: 'DATA_CORRUPT',
    })
    await until(
      'SluiceCorruptDataSeen',
      async () => (await firing('SluiceCorruptDataSeen')).length > 0,
      alertsMs,
    )
  })

  test('when an event loop is held up, and when heartbeats are late', async () => {
    const [, worker] = cluster.workers
    worker!.signal('SIGSTOP')
    await fires('SluiceHeartbeatsLate', cluster.manager)
    worker!.signal('SIGCONT')
    await fires('SluiceEventLoopSlow', worker!)
  })

  test('when a disk is slow, and when producers lack memory for long', async () => {
    await using client = await EmbeddedClient.start({
      managerUrl: cluster.managerUrl,
      jobId: 'slow',
    })
    const places = await placesOn(client, tight, 24)
    const folder = toolPath('strace-')
    const writes = 'pwrite64,pwritev'
    strace = new ChildRun(
      join(folder, 'usr/bin/strace'),
      [
        ...['-f', '-qq', '-o', '/dev/null', '-p', String(tight.run?.pid)],
        ...['-e', `trace=${writes}`],
        ...['-e', `inject=${writes}:delay_enter=${String(slowCallsUs)}`],
      ],
      { env: { LD_LIBRARY_PATH: join(folder, 'usr/lib', libraryFolder()) } },
    )
    let isOver = false
    const producers = places.map(async (descriptor) => {
      const partition = client.environment.createResultPartition({ descriptor })
      try {
        while (!isOver) await partition.emitRecord(randomBytes(500_000), 0)
      } catch {
        // A region that makes no progress for too long is given up: it has waited for memory as well.
      }
      partition.abort()
    })
    try {
      await fires('SluiceMemoryPressureLong', tight)
      await fires('SluiceDiskSlow', tight)
    } finally {
      isOver = true
      await strace.kill('SIGKILL')
      await Promise.all(producers)
    }
  })

  test('when a worker is lost', async () => {
    await crowded.kill('SIGKILL')
    await fires('SluiceWorkerLost', cluster.manager)
  })
})

/** Debian's name for this machine's kind. */
function libraryFolder(): string {
  return process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
}
