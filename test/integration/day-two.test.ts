// The commands of day two on a cluster of processes.

import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAttemptId } from '../../client/index.ts'
import type { WorkerSummary } from '../../client/manager/api-workers.ts'
import {
  ClusterProcess,
  scrape,
  sluice,
  TestCluster,
  until,
  type FinishedProcess,
} from '../support/cluster.ts'
import { EmbeddedClient } from '../support/embedded-client.ts'

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start({
    workers: 2,
    managerOptions: [
      '--heartbeat-interval=500ms',
      '--worker-suspect-after=1500ms',
      '--start-grace=1s',
      '--settle-time=500ms',
      '--worker-recovery-time=1m',
      '--worker-forget-after=1m',
    ],
    workerOptions: ['--drain-timeout=1s'],
  })
})
afterAll(async () => {
  await cluster.stop()
})

async function command(...args: string[]): Promise<FinishedProcess> {
  return await sluice([...args, '--manager', cluster.managerUrl])
}

async function text(...args: string[]): Promise<string> {
  const run = await command(...args)
  expect(run.code, run.stderr).toBe(0)
  return run.stdout
}

async function told(index: number): Promise<WorkerSummary> {
  return await until(`worker ${String(index)} is known`, async () => {
    const { workers } = await cluster.get<{ workers: WorkerSummary[] }>('/v1/workers')
    return workers.find(({ workerId }) => workerId === idOf(index))
  })
}

const idOf = (index: number) => cluster.worker(index).ready?.workerId ?? ''

const probe = async (index: number, path: string) =>
  (await fetch(`${cluster.worker(index).httpUrl}${path}`)).status

async function placed(client: EmbeddedClient, indices: readonly number[]): Promise<Set<string>> {
  const holders = new Set<string>()
  for (const index of indices) {
    const descriptor = await client.allocate(index, 1)
    holders.add(descriptor.holders[0]?.workerId ?? '')
  }
  return holders
}

describe('a worker out of service', () => {
  it('drains: not ready and alive, its open writes end, nothing new comes, through all restarts', async () => {
    await using client = await EmbeddedClient.start({
      managerUrl: cluster.managerUrl,
      jobId: 'drained',
    })
    const descriptors = [await client.allocate(0, 1), await client.allocate(1, 1)]
    const onFirst = descriptors.find(({ holders }) => holders[0]?.workerId === idOf(0))!
    // A producer that has begun and takes longer than the drain time.
    const late = client.environment.createResultPartition({
      descriptor: onFirst,
      memoryBytes: 256 * 1024,
    })
    for (let count = 0; count < 10; count++) await late.emitRecord(randomBytes(100_000), 0)
    await until('a region of it is written', async () => (await told(0)).openWrites === 1)
    expect(await text('drain', idOf(0), '--reason', 'new disks')).toMatch(/ drains\n/)
    await until('the worker knows it', async () => (await told(0)).isServiceTold)
    expect(await probe(0, '/readyz')).toBe(503)
    expect(await probe(0, '/healthz')).toBe(200)
    expect(await text('workers')).toMatch(/alive, draining \(new disks\)/)
    expect(await placed(client, [2, 3, 4])).toEqual(new Set([idOf(1)]))
    // One that had its place and has not begun is refused at once.
    const begun = client.environment.createResultPartition({
      descriptor: { ...onFirst, key: { ...onFirst.key, attemptId: parseAttemptId('attempt-1') } },
    })
    void begun.emitRecord(Buffer.from('x'), 0)
    await expect(begun.finish()).rejects.toMatchObject({ code: 'WORKER_DRAINING' })
    await until('the drain time is over', async () => (await told(0)).openWrites === 0)
    await expect(late.finish()).rejects.toMatchObject({ code: 'WORKER_DRAINING' })
    expect(
      (await scrape(cluster.worker(0).httpUrl)).get(
        'sluice_worker_errors_total{code="WORKER_DRAINING"}',
      ),
    ).toBe(2)

    await cluster.manager.kill('SIGTERM')
    await cluster.manager.start()
    await cluster.worker(0).kill('SIGKILL')
    await cluster.worker(0).start()
    await until('it is back', async () => (await told(0)).state === 'alive')
    expect(await told(0)).toMatchObject({ service: { state: 'draining', reason: 'new disks' } })
    expect(await probe(0, '/readyz')).toBe(503)
    const metrics = await scrape(cluster.manager.httpUrl)
    expect(metrics.get('sluice_manager_workers_out_of_service{state="draining"}')).toBe(1)
    expect(await text('undrain', idOf(0))).toMatch(/back in service/)
    await until('it serves', async () => (await probe(0, '/readyz')) === 200)
    await until('the manager is told, and that it is kept', async () => {
      const { isDraining, isServiceTold } = await told(0)
      return !isDraining && isServiceTold
    })
    expect(await placed(client, [5, 6, 7, 8])).toContain(idOf(0))
  })
})

describe('processes while they run', () => {
  it('change the level of their logs, all or one of them', async () => {
    const said = await text('log-level', 'debug', 'workers')
    expect(said.trim().split('\n')).toHaveLength(2)
    expect(await text('log-level', 'warn', 'manager')).toBe('manager: logs from level warn on\n')
    const process = await cluster.get<{ logLevel: string }>('/v1/process')
    expect(process.logLevel).toBe('warn')
    await text('log-level', 'info')
  })

  it('read their configuration again, by command and by SIGHUP', async () => {
    const config = join(cluster.directory, 'reloaded.yaml')
    writeFileSync(config, 'remote-shuffle.worker: { drain-timeout: 1s }\n')
    const directories = join(cluster.directory, 'reloaded')
    const worker = new ClusterProcess([
      'worker',
      '--config',
      config,
      '--data-directories',
      directories,
    ])
    worker.addArguments(['--manager', cluster.managerUrl])
    await worker.start()
    const { workerId = '' } = worker.ready!
    await until('it is known', async () => (await text('workers')).includes(workerId))
    writeFileSync(config, 'remote-shuffle.worker: { drain-timeout: 2s, memory: 65mb }\n')
    const said = await text('reload', workerId)
    expect(said).toContain(`${workerId}: drain-timeout is now 2s (was 1s)`)
    expect(said).toContain(`${workerId}: memory stays 64mb: it needs a restart to become 65mb`)
    writeFileSync(config, 'remote-shuffle.worker: { metrics-allow: [sluice_worker_dr.*] }\n')
    worker.signal('SIGHUP')
    await until('only what is allowed is shown', async () => {
      const names = [...(await scrape(worker.httpUrl)).keys()]
      return names.length === 1 && names[0] === 'sluice_worker_draining'
    })
    writeFileSync(config, 'remote-shuffle.worker: { drain-timeout: soon }\n')
    const refused = await command('reload', workerId)
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.stderr).toMatch(/drain-timeout.*soon/)
    writeFileSync(config, 'remote-shuffle.worker: { leave-for-ever: true }\n')
    expect(await text('reload', workerId)).toContain('leave-for-ever is now true (was false)')
    await worker.kill('SIGTERM')
    await until('it is gone for ever', async () => /lost/.test(await text('workers')))
  })
})

describe('what went wrong', () => {
  it('why names the worker, the time, what happened, who noticed and who was told', async () => {
    await using client = await EmbeddedClient.start({
      managerUrl: cluster.managerUrl,
      jobId: 'unlucky',
    })
    const descriptors = [await client.allocate(0, 1), await client.allocate(1, 1)]
    for (const descriptor of descriptors) await client.write(descriptor, [['x'.repeat(200_000)]])
    const victim = descriptors[0]?.holders[0]?.workerId ?? ''
    const index = [0, 1].find((one) => idOf(one) === victim) ?? 0
    await cluster.worker(index).kill('SIGKILL')
    await until('it is silent', async () => (await told(index)).state === 'suspect')
    expect((await command('exclude', victim)).code).toBe(0)
    expect(await text('exclude', victim, '--lost', '--reason', 'gone')).toMatch(/counts as lost/)
    await until('the job master hears of it', () => client.lost.length > 0)
    const said = await text('why', 'unlucky')
    expect(said).toMatch(
      new RegExp(`data +0 +${victim} +an operator gave it up +the manager, by its silence +\\S+ 2`),
    )
    expect(said).toContain('worker-silent')
    await cluster.worker(index).start()
    // It does not serve again by itself: a person excluded it.
    await until('it is back', async () => (await told(index)).state === 'alive')
    expect(await told(index)).toMatchObject({ service: { state: 'excluded', reason: 'gone' } })
    await text('undrain', victim)
  })

  it('why says where the time goes, and a doctor sees the worker that left for ever and nothing else', async () => {
    await until('both serve', async () => {
      const both = await Promise.all([told(0), told(1)])
      return both.every(({ state, service }) => state === 'alive' && service.state === 'serving')
    })
    await using client = await EmbeddedClient.start({
      managerUrl: cluster.managerUrl,
      jobId: 'timed',
    })
    const descriptor = await client.allocate(0, 1)
    await client.write(descriptor, [['x'.repeat(200_000)]])
    await until('the worker has told of its times', async () =>
      /write\S* +\d/.test(await text('why', 'timed')),
    )
    const doctor = await command('doctor')
    expect(doctor.stdout).toContain('manager: ready')
    expect(doctor.stdout).toContain(`worker ${idOf(1)}: data port`)
    // The one that left for ever is all there is to say; warnings are the machine's own.
    const failures = doctor.stdout.split('\n').filter((line) => line.startsWith('FAIL'))
    expect(failures).toEqual([expect.stringMatching(/lost, silent for/)])
    expect(doctor.code).toBe(1)
  })

  it('a doctor sees a worker that hangs, and a bundle says who did not answer', async () => {
    cluster.worker(0).signal('SIGSTOP')
    await until('it is silent', async () => (await told(0)).state === 'suspect')
    const doctor = await command('doctor')
    expect(doctor.code).toBe(1)
    expect(doctor.stdout).toMatch(new RegExp(`FAIL  worker ${idOf(0)}: HTTP port`))
    const output = join(cluster.directory, 'bundle.tar.gz')
    expect(await text('support-bundle', '--output', output)).toMatch(/1 things are missing/)
    cluster.worker(0).signal('SIGCONT')
    const names = execFileSync('tar', ['-tzf', output], { encoding: 'utf8' })
    expect(names).toContain(`workers/${idOf(1)}/metrics.txt`)
    await until('it is back', async () => (await told(0)).state === 'alive')
  })
})
