// What the chart deploys, run: its processes with its configuration and environment, its probes, its
// `helm test`, and a real Prometheus with the chart's rules that scrapes them.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ChildRun, until } from '../support/cluster.ts'
import { ChartPod, freePorts } from '../support/deploy/chart-pod.ts'
import {
  at,
  find,
  helms,
  helmTemplate,
  parse,
  run,
  toolPath,
} from '../support/deploy/chart-tools.ts'
import { dashboards, expressionsOf } from '../support/deploy/dashboards.ts'
import { managerMetrics, workerMetrics } from '../support/deploy/metrics-reference.ts'
import { projectRoot } from '../support/source-tree.ts'

const directory = mkdtempSync(join(tmpdir(), 'sluice-chart-'))
const prometheusFolder = join(toolPath('prometheus-'), 'usr/bin')
const alertsMs = 180_000

let manager: ChartPod
let workers: readonly ChartPod[] = []
let helmTest: ChartPod
let prometheus: ChildRun | undefined
let prometheusPort = 0

beforeAll(async () => {
  const [port = 0, ...ports] = await freePorts(8)
  prometheusPort = ports.pop()!
  const { code, stdout, stderr } = await helmTemplate({
    helm: helms['helm 3'],
    set: {
      'manager.port': port,
      // Short, so that a lost worker is lost while the test waits.
      'manager.options': {
        'heartbeat-interval': '500ms',
        'worker-suspect-after': '3s',
        'worker-recovery-time': '12s',
        'start-grace': '1s',
        'settle-time': '500ms',
      },
      pools: [
        { name: 'one', replicas: 1, dataPort: ports[0], httpPort: ports[1] },
        { name: 'two', replicas: 1, dataPort: ports[2], httpPort: ports[3] },
        // Nothing of its disk may be used, from the beginning.
        {
          name: 'full',
          replicas: 1,
          dataPort: ports[4],
          httpPort: ports[5],
          options: { 'min-reserved-space': '1024tb' },
        },
      ],
      'worker.memory': '64mb',
      'worker.disks': [{ name: 'scratch', kind: 'ssd', emptyDir: {} }],
      'worker.options': { 'min-reserved-space': '1mb' },
      'tests.lines': 100_000,
    },
  })
  if (code !== 0) throw new Error(stderr)
  const manifests = parse(stdout)
  const pod = (kind: string, object: string, name: string) =>
    new ChartPod(manifests, { manifest: find(manifests, kind, object), name, directory })
  manager = pod('Deployment', 'rel-sluice-manager', 'rel-sluice-manager-0')
  workers = ['one', 'two', 'full'].map((pool) =>
    pod('StatefulSet', `rel-sluice-${pool}`, `rel-sluice-${pool}-0`),
  )
  helmTest = pod('Pod', 'rel-sluice-test', 'rel-sluice-test')
  // Workers first: the order of the start does not matter.
  for (const worker of workers) worker.start()
  manager.start()
  await Promise.all([manager, ...workers].map((one) => one.ready()))
  prometheus = startPrometheus()
}, 120_000)

afterAll(async () => {
  await Promise.all([manager, ...workers].map((one) => one.end('SIGKILL')))
  await prometheus?.kill('SIGTERM')
  rmSync(directory, { recursive: true, force: true })
})

function startPrometheus(): ChildRun {
  const scrape = (job: string, pods: readonly ChartPod[]) => ({
    job_name: job,
    static_configs: [
      {
        targets: pods.map((pod) => `127.0.0.1:${String(pod.port('http'))}`),
        labels: { namespace: 'n' },
      },
    ],
  })
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '900ms', evaluation_interval: '1s' },
    rule_files: ['rules.json'],
    scrape_configs: [scrape('manager', [manager]), scrape('worker', workers)],
  }
  // The waits of the alerts are shortened, nothing else; JSON is YAML, too.
  const rules = readFileSync(join(projectRoot, 'helm/files/rules.yaml'), 'utf8')
  const soon = rules.replaceAll(/\bfor: \w+/g, 'for: 1s').replace('[2m]', '[5s]')
  writeFileSync(join(directory, 'rules.json'), soon)
  const configFile = join(directory, 'prometheus.json')
  writeFileSync(configFile, JSON.stringify(config))
  return new ChildRun(join(prometheusFolder, 'prometheus'), [
    `--config.file=${configFile}`,
    `--storage.tsdb.path=${join(directory, 'prometheus')}`,
    `--web.listen-address=127.0.0.1:${String(prometheusPort)}`,
  ])
}

async function query(
  expression: string,
): Promise<readonly { readonly metric: Record<string, string> }[]> {
  const address = new URL(`http://127.0.0.1:${String(prometheusPort)}/api/v1/query`)
  address.searchParams.set('query', expression)
  const answer = await fetch(address).catch(() => undefined)
  if (answer === undefined || answer.status === 503) return []
  const body = (await answer.json()) as { readonly error?: string }
  if (body.error !== undefined) throw new Error(`${expression}: ${body.error}`)
  return at(body, 'data', 'result') as readonly { readonly metric: Record<string, string> }[]
}

describe('the chart, deployed', () => {
  test('answers every probe', async () => {
    for (const pod of [manager, ...workers]) {
      expect(await pod.probe('startupProbe')).toBe(200)
      expect(await pod.probe('livenessProbe')).toBe(200)
      expect(await pod.probe('readinessProbe')).toBe(200)
    }
  })

  test('passes its own helm test, which moves real data through the workers', async () => {
    const { code, output } = await helmTest.runCommand()
    expect({ code, output }).toMatchObject({ code: 0 })
    expect(output).toContain('sorted 100000 lines through the shuffle: they are right')
  })

  test('serves the metrics that the reference names, in a form that promtool likes', async () => {
    const expected = [managerMetrics(), workerMetrics()]
    for (const [index, pod] of [manager, workers[0]!].entries()) {
      const answer = await fetch(`http://127.0.0.1:${String(pod.port('http'))}/metrics`)
      const text = await answer.text()
      const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
      expect(names.sort()).toEqual(expected[index]!.map(({ name }) => name))
      const outcome = await run(join(prometheusFolder, 'promtool'), ['check', 'metrics'], {
        input: text,
      })
      expect(outcome).toMatchObject({ code: 0, stderr: '' })
    }
  })

  test.each(Object.entries(dashboards()))(
    'fills every panel of the dashboard %s',
    async (_name, dashboard) => {
      // A rate needs two scrapes with something between them.
      expect(await helmTest.runCommand()).toMatchObject({ code: 0 })
      for (const expression of expressionsOf(dashboard)) {
        const asked = expression
          .replaceAll('$__rate_interval', '1m')
          .replaceAll(/\$\w+/g, '.*')
          // Panels of errors leave out those that have not happened.
          .replace(/ > 0$/, '')
        await until(`${asked} has data`, async () => (await query(asked)).length > 0)
      }
    },
  )

  test('raises no alert but that of the disk without room', async () => {
    const expected = ['SluiceDiskNearlyFull']
    const firing = async () => {
      const alerts = await query('ALERTS{alertstate="firing",alertname!="SluiceDiskSlow"}')
      const full = `127.0.0.1:${String(workers[2]!.port('http'))}`
      // The machine's own disk may be nearly full, too: the others' disks are not looked at.
      const others = alerts.filter(
        ({ metric }) =>
          !metric['alertname']!.startsWith('SluiceDisk') || metric['instance'] === full,
      )
      return others.map(({ metric }) => metric['alertname']!).sort()
    }
    await until(
      'the alert of the disk',
      async () => (await firing()).length >= expected.length,
      alertsMs,
    )
    expect(await firing()).toEqual(expected)
  })

  test('stops a worker that drains within its grace period', async () => {
    const [worker] = workers
    const code = await Promise.race([
      worker!.end('SIGTERM'),
      new Promise((resolve) => setTimeout(resolve, worker!.gracePeriodMs).unref()),
    ])
    expect(code).toBe(0)
    expect(await worker!.probe('readinessProbe')).toBeUndefined()
  })

  test('raises the alerts of a worker that is silent and then lost', async () => {
    const isFiring = async (name: string) =>
      (await query(`ALERTS{alertstate="firing",alertname="${name}"}`)).length > 0
    await workers[1]!.end('SIGKILL')
    await until('the alert of late heartbeats', () => isFiring('SluiceHeartbeatsLate'), alertsMs)
    await until('the alert of a lost worker', () => isFiring('SluiceWorkerLost'), alertsMs)
  })

  test('raises the alert of a manager that is gone', async () => {
    expect(await manager.end('SIGTERM')).toBe(0)
    const isGone = async () => (await query('ALERTS{alertname="SluiceManagerDown"}')).length > 0
    await until('the alert of the manager', isGone, alertsMs)
  })
})
