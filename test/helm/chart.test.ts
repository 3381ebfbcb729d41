// What matters in the chart's objects, whichever helm renders them.

import { describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { parseOptions } from '../../client/common/options.ts'
import type { OptionsDeclaration, OptionTable } from '../../client/common/options.ts'
import { managerOptions } from '../../shuffle-manager/options.ts'
import { parseDataDirectories, workerOptions } from '../../shuffle-worker/options.ts'
import { workerNodeFlags } from '../../shuffle-worker/heap-limits.ts'
import { threadsNeeded } from '../../shuffle-worker/process-limits.ts'
import { defaultStoreOptions } from '../../shuffle-worker/storage/data-store-options.ts'
import { diskOperationsInFlightMax } from '../../shuffle-worker/storage/disk-operation.ts'
import {
  at,
  find,
  helmTemplate,
  namespace,
  podSpec,
  render,
} from '../support/deploy/chart-tools.ts'
import type { Container, Manifest, PodSpec } from '../support/deploy/chart-tools.ts'
import { chartOptions } from '../support/deploy/values-schema.ts'

const defaults = await render()
const everything = await render({ files: ['everything'] })
const open = await render({ files: ['open'] })
const given = await render({ files: ['given'] })
const all = [...defaults, ...everything, ...open, ...given]

function podOf(manifests: readonly Manifest[], kind: string, name: string): PodSpec {
  return podSpec(find(manifests, kind, name))!
}

function mainOf(pod: PodSpec): Container {
  return pod.containers[0]!
}

function configOf(manifests: readonly Manifest[], name: string): string {
  return at(find(manifests, 'ConfigMap', name), 'data', 'sluice.yaml') as string
}

function environmentOf(pod: PodSpec, name: string): string | undefined {
  return mainOf(pod).env.find((variable) => variable.name === name)?.value
}

function valuesOf<Table extends OptionTable>(
  declaration: OptionsDeclaration<Table>,
  yamlText: string,
): Record<string, unknown> {
  return parseOptions(declaration, { yamlText }).values
}

describe('configuration', () => {
  test('is what manager and workers accept', () => {
    const configs = all.filter(({ kind }) => kind === 'ConfigMap')
    const texts = configs.flatMap(
      (one) => (at(one, 'data', 'sluice.yaml') as string | undefined) ?? [],
    )
    expect(texts.length).toBeGreaterThan(7)
    for (const text of texts) {
      const { 'remote-shuffle': sections } = parseYaml(text) as Record<string, object>
      const isManager = 'manager' in sections!
      const read = () =>
        isManager ? valuesOf(managerOptions, text) : valuesOf(workerOptions, text)
      expect(read).not.toThrow()
    }
  })

  test.each([
    ['manager', managerOptions, 'rel-sluice-manager', chartOptions.manager],
    ['worker', workerOptions, 'rel-sluice-default', chartOptions.worker],
  ] as const)(
    'takes every option of the %s by its name',
    async (role, declaration, name, ofChart) => {
      const options = Object.fromEntries(
        Object.values(declaration.options as OptionsDeclaration['options'])
          .filter((option) => !(ofChart as readonly string[]).includes(option.name))
          .map((option) => [option.name, 'default' in option ? option.default : 'any']),
      )
      const manifests = await render({ set: { [`${role}.options`]: options } })
      const section = at(parseYaml(configOf(manifests, name)), 'remote-shuffle', role)
      expect(section).toMatchObject(options)
    },
  )

  test('gives all the same cluster, and workers the address of the manager', () => {
    const worker = valuesOf(workerOptions, configOf(defaults, 'rel-sluice-default'))
    const manager = valuesOf(managerOptions, configOf(defaults, 'rel-sluice-manager'))
    expect(worker['clusterId']).toBe(manager['clusterId'])
    expect(worker['manager']).toBe(
      `http://rel-sluice-manager.${namespace}.svc.cluster.local:${String(manager['port'])}`,
    )
    find(defaults, 'Service', 'rel-sluice-manager')
  })

  test('names each worker as its headless service does', () => {
    const set = find(defaults, 'StatefulSet', 'rel-sluice-default')
    const service = at(set, 'spec', 'serviceName') as string
    expect(at(find(defaults, 'Service', service), 'spec', 'clusterIP')).toBe('None')
    expect(environmentOf(podSpec(set)!, 'SLUICE_WORKER_HOST')).toBe(
      `$(POD_NAME).${service}.${namespace}.svc.cluster.local`,
    )
  })

  test('that changes makes new pods, and nothing else does', async () => {
    const changed = await render({ set: { 'worker.drainTimeout': '30s' } })
    const annotations = (manifests: readonly Manifest[], kind: string, name: string) =>
      at(find(manifests, kind, name), 'spec', 'template')
    const worker = ['StatefulSet', 'rel-sluice-default'] as const
    const manager = ['Deployment', 'rel-sluice-manager'] as const
    expect(annotations(changed, ...worker)).not.toEqual(annotations(defaults, ...worker))
    expect(annotations(changed, ...manager)).toEqual(annotations(defaults, ...manager))
  })

  test('tells the manager how many workers to expect', () => {
    const expected = (manifests: readonly Manifest[]) =>
      valuesOf(managerOptions, configOf(manifests, 'rel-sluice-manager'))['expectedWorkers']
    expect(expected(defaults)).toBe(3)
    expect(expected(everything)).toBe(2 + 3 + 3)
  })
})

describe('disks', () => {
  const sets = all.filter(({ kind }) => kind === 'StatefulSet')

  test.each(sets.map((set) => [set.metadata.name, set] as const))(
    'of %s: directories, mounts, volumes and claims agree',
    (name, set) => {
      const manifests = [defaults, everything, open, given].find((each) => each.includes(set))!
      const pod = podSpec(set)!
      const values = valuesOf(workerOptions, configOf(manifests, name))
      const directories = parseDataDirectories(values['dataDirectories'] as string[], '/')
      const mounts = mainOf(pod).volumeMounts.filter(({ mountPath }) =>
        mountPath.startsWith('/data/'),
      )
      expect(directories.map(({ path }) => path)).toEqual(
        mounts.map(({ mountPath }) => `${mountPath}/sluice`),
      )
      const claims = (at(set, 'spec', 'volumeClaimTemplates') ?? []) as readonly Manifest[]
      const sources = [
        ...claims.map(({ metadata }) => metadata.name),
        ...pod.volumes.map((volume) => volume.name),
      ]
      for (const mount of mounts) {
        expect(sources.filter((source) => source === mount.name)).toHaveLength(1)
      }
      const threads = Number(environmentOf(pod, 'UV_THREADPOOL_SIZE'))
      const kinds = directories.map(({ kind }) => kind)
      expect(threads).toBeGreaterThanOrEqual(threadsNeeded(diskOperationsInFlightMax(kinds)))
    },
  )

  test.each([
    ['without a source', [{ name: 'a', kind: 'ssd' }]],
    ['with two sources', [{ name: 'a', kind: 'ssd', size: '1Gi', hostPath: '/a' }]],
    ['of an unknown kind', [{ name: 'a', kind: 'tape', size: '1Gi' }]],
    ['with a class and no claim', [{ name: 'a', kind: 'ssd', hostPath: '/a', storageClass: 'b' }]],
    [
      'with the name of another',
      [
        { name: 'a', kind: 'ssd', size: '1Gi' },
        { name: 'a', kind: 'hdd', size: '1Gi' },
      ],
    ],
    ['that are none', []],
  ])('%s are refused', async (_what, disks) => {
    expect(await helmTemplate({ set: { 'worker.disks': disks } })).toMatchObject({ code: 1 })
  })
})

describe('stopping', () => {
  test('always leaves time to drain', () => {
    const sets = all.filter(({ kind }) => kind === 'StatefulSet')
    for (const set of sets) {
      const manifests = [defaults, everything, open, given].find((each) => each.includes(set))!
      const values = valuesOf(workerOptions, configOf(manifests, set.metadata.name))
      const drainMs =
        (values['drainTimeoutMs'] as number) + (values['drainReadersTimeoutMs'] as number)
      expect(podSpec(set)!.terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(
        drainMs + defaultStoreOptions.cleanStopTimeoutMs,
      )
    }
  })

  test.each([
    [{ 'worker.drainTimeout': '76s' }, 'terminationGracePeriodSeconds'],
    [{ 'worker.drainTimeout': '10m' }, 'terminationGracePeriodSeconds'],
    [
      { 'worker.drainReadersTimeout': '70001ms', 'worker.drainTimeout': '10s' },
      'killed while it drains',
    ],
    [{ 'worker.terminationGracePeriodSeconds': 109 }, 'killed while it drains'],
    [{ pools: [{ name: 'a' }, { name: 'b', drainTimeout: '1h' }] }, 'pool b'],
  ])('longer than the grace period is refused: %j', async (set, text) => {
    const { code, stderr } = await helmTemplate({ set })
    expect(code).toBe(1)
    expect(stderr).toContain(text)
  })

  test('within the grace period is taken', async () => {
    const set = { 'worker.drainTimeout': '64s', 'worker.terminationGracePeriodSeconds': 114 }
    expect(await helmTemplate({ set })).toMatchObject({ code: 0 })
  })

  test('replaces the manager before a new one starts', () => {
    expect(at(find(defaults, 'Deployment', 'rel-sluice-manager'), 'spec')).toMatchObject({
      replicas: 1,
      strategy: { type: 'Recreate' },
    })
  })
})

describe('memory', () => {
  const limitOf = (manifests: readonly Manifest[], name = 'rel-sluice-default') =>
    mainOf(podOf(manifests, 'StatefulSet', name)).resources.limits['memory']

  test('of a worker is the sum of its parts, whatever the units', async () => {
    expect(limitOf(defaults)).toBe(`${String(256 + 512 + 1024 + 192)}Mi`)
    const other = { 'worker.memory': '1gb', 'worker.heap': '1048576kb', 'worker.pageCache': '1tb' }
    expect(limitOf(await render({ set: other }))).toBe(`${String(1024 + 1024 + 1024 ** 2 + 192)}Mi`)
  })

  test('of the heap is what Node is told', () => {
    expect(
      environmentOf(podOf(defaults, 'StatefulSet', 'rel-sluice-default'), 'NODE_OPTIONS'),
    ).toBe(`--max-old-space-size=512 ${workerNodeFlags.join(' ')}`)
  })

  test('that the user gives wins', () => {
    expect(limitOf(given, 'rel-shuffle-default')).toBe('3Gi')
  })
})

describe('pools', () => {
  test('take what they override and nothing of each other', () => {
    const archive = valuesOf(workerOptions, configOf(everything, 'rel-sluice-archive'))
    const nvme = valuesOf(workerOptions, configOf(everything, 'rel-sluice-nvme'))
    expect([archive['memoryBytes'], nvme['memoryBytes']]).toEqual([
      512 * 1024 ** 2,
      256 * 1024 ** 2,
    ])
    expect(archive['durability']).toBe('sync')
  })

  test('can switch off what the defaults switch on', async () => {
    const pools = [
      { name: 'a', podDisruptionBudget: { enabled: false }, replicas: 0, tolerations: [] },
      { name: 'b' },
    ]
    const manifests = await render({ set: { pools, 'worker.tolerations': [{ key: 'k' }] } })
    expect(manifests.filter(({ kind }) => kind === 'PodDisruptionBudget')).toHaveLength(1)
    expect(at(find(manifests, 'StatefulSet', 'rel-sluice-a'), 'spec', 'replicas')).toBe(0)
    expect(podOf(manifests, 'StatefulSet', 'rel-sluice-a')['tolerations']).toBeUndefined()
    expect(podOf(manifests, 'StatefulSet', 'rel-sluice-b')['tolerations']).toEqual([{ key: 'k' }])
  })

  test.each([
    ['two of one name', [{ name: 'a' }, { name: 'a' }]],
    ['a name that an object has', [{ name: 'manager' }]],
    ['no name', [{ replicas: 1 }]],
    ['an unknown key', [{ name: 'a', replica: 1 }]],
    [
      'more replicas at least than at most',
      [{ name: 'a', autoscaling: { enabled: true, minReplicas: 9, maxReplicas: 2 } }],
    ],
  ])('with %s are refused', async (_what, pools) => {
    expect(await helmTemplate({ set: { pools } })).toMatchObject({ code: 1 })
  })

  test('that scale by themselves only grow, and leave the count to the autoscaler', () => {
    const scaler = find(everything, 'HorizontalPodAutoscaler', 'rel-sluice-scaled')
    expect(at(scaler, 'spec', 'behavior', 'scaleDown', 'selectPolicy')).toBe('Disabled')
    expect(at(scaler, 'spec', 'scaleTargetRef')).toMatchObject({
      kind: 'StatefulSet',
      name: 'rel-sluice-scaled',
    })
    expect(
      at(find(everything, 'StatefulSet', 'rel-sluice-scaled'), 'spec', 'replicas'),
    ).toBeUndefined()
  })
})

describe('security', () => {
  const pods = [...defaults, ...given].filter((one) => podSpec(one) !== undefined)

  test.each(pods.map((one) => [one.kind, one.metadata.name, one] as const))(
    '%s %s satisfies the restricted standard',
    (_kind, _name, manifest) => {
      const pod = podSpec(manifest)!
      expect(pod['securityContext']).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(at(pod, 'securityContext', 'runAsUser')).toBeGreaterThan(0)
      expect(
        ['hostNetwork', 'hostPID', 'hostIPC', 'initContainers'].filter((key) => key in pod),
      ).toEqual([])
      expect(pod['automountServiceAccountToken']).toBe(false)
      for (const container of pod.containers) {
        expect(container['securityContext']).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
      }
      const kinds = pod.volumes.map((volume) => Object.keys(volume).find((key) => key !== 'name'))
      const allowed = ['configMap', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'secret']
      expect(kinds.filter((kind) => !allowed.includes(kind ?? ''))).toEqual([])
    },
  )

  test('gives no role to anybody', () => {
    expect(all.filter(({ kind }) => /Role/.test(kind))).toEqual([])
  })

  test('hands the token to every process as a file, and to none in its environment', () => {
    for (const manifest of pods) {
      const pod = podSpec(manifest)!
      expect(mainOf(pod).volumeMounts.map(({ mountPath }) => mountPath)).toContain(
        '/etc/sluice-token',
      )
    }
    expect(JSON.stringify(defaults.filter(({ kind }) => kind !== 'Secret'))).not.toContain(
      'a-token-for-tests',
    )
    expect(given.filter(({ kind }) => kind === 'Secret')).toEqual([])
    expect(JSON.stringify(open)).not.toContain('token-file')
  })

  test('makes a token that nobody knows, unless it is given', async () => {
    const tokens = await Promise.all(
      [1, 2].map(async () => {
        const manifests = await render({ files: [], set: {} })
        return at(find(manifests, 'Secret', 'rel-sluice-token'), 'data', 'token') as string
      }),
    )
    expect(new Set(tokens).size).toBe(2)
    expect(Buffer.from(tokens[0]!, 'base64').toString()).toMatch(/^[A-Za-z0-9]{48}$/)
  })

  test('lets in by network policy only who is named, and its own', () => {
    const workers = find(everything, 'NetworkPolicy', 'rel-sluice-workers')
    const ingress = at(workers, 'spec', 'ingress') as readonly {
      readonly from: unknown[]
      readonly ports: unknown[]
    }[]
    expect(ingress.map(({ ports }) => ports)).toEqual([
      [{ port: 'data' }],
      [{ port: 'http' }],
      [{ port: 'http' }],
    ])
    expect(ingress.every(({ from }) => from.length > 0)).toBe(true)
  })
})

describe('services and probes', () => {
  test('publish addresses that are not ready', () => {
    const services = all.filter(({ kind }) => kind === 'Service')
    expect(services.length).toBeGreaterThan(6)
    expect(services.every((one) => at(one, 'spec', 'publishNotReadyAddresses') === true)).toBe(true)
  })

  test('ask liveness of the process, readiness of the service', () => {
    for (const pod of all.flatMap((one) => (one.kind === 'Pod' ? [] : (podSpec(one) ?? [])))) {
      const container = mainOf(pod)
      expect(at(container, 'livenessProbe', 'httpGet', 'path')).toBe('/healthz')
      expect(at(container, 'startupProbe', 'httpGet', 'path')).toBe('/healthz')
      expect(at(container, 'readinessProbe', 'httpGet', 'path')).toBe('/readyz')
      const ports = (container['ports'] as readonly { readonly name: string }[]).map(
        ({ name }) => name,
      )
      expect(ports).toContain(at(container, 'livenessProbe', 'httpGet', 'port'))
    }
  })

  test('select the pods that are there', () => {
    const labels = everything.flatMap((one) => {
      const found =
        one.kind === 'Pod' ? one.metadata.labels : at(one, 'spec', 'template', 'metadata', 'labels')
      return found === undefined ? [] : [found as Readonly<Record<string, string>>]
    })
    const selectors = everything
      .filter(({ kind }) => ['Service', 'PodDisruptionBudget', 'NetworkPolicy'].includes(kind))
      .map(
        (one) =>
          (at(one, 'spec', 'podSelector', 'matchLabels') ??
            at(one, 'spec', 'selector', 'matchLabels') ??
            at(one, 'spec', 'selector')) as Record<string, string>,
      )
    expect(selectors.length).toBeGreaterThan(8)
    for (const selector of selectors) {
      expect(
        labels.some((each) =>
          Object.entries(selector).every(([key, value]) => each[key] === value),
        ),
      ).toBe(true)
    }
  })
})

describe('monitoring', () => {
  test('scrapes what the services offer, once, and lets them show what is asked for', async () => {
    const monitor = find(everything, 'ServiceMonitor', 'rel-sluice')
    expect(at(monitor, 'spec', 'endpoints', 0)).toMatchObject({
      port: 'http',
      path: '/metrics',
    })
    const metricsAllow = ['sluice_worker_disk_.*', 'sluice_manager_.*']
    const manager = valuesOf(managerOptions, configOf(everything, 'rel-sluice-manager'))
    expect(manager).toMatchObject({ metricsAllow })
    const pools = everything.filter(({ kind }) => kind === 'StatefulSet')
    expect(pools.length).toBeGreaterThan(0)
    for (const { metadata } of pools) {
      const worker = valuesOf(workerOptions, configOf(everything, metadata.name))
      expect(worker).toMatchObject({ metricsAllow })
    }
    const both = {
      'monitoring.serviceMonitor.enabled': true,
      'monitoring.podMonitor.enabled': true,
    }
    expect((await helmTemplate({ set: both })).stderr).toContain('not both')
  })

  test('has every rule but those left out, and labels of the user on alerts', () => {
    const rules = (
      at(find(everything, 'PrometheusRule', 'rel-sluice'), 'spec', 'groups') as readonly {
        readonly rules: readonly Record<string, unknown>[]
      }[]
    ).flatMap((group) => group.rules)
    const alerts = rules.filter((rule) => 'alert' in rule)
    expect(alerts.map((rule) => rule['alert'])).toContain('SluiceWorkerLost')
    expect(alerts.map((rule) => rule['alert'])).not.toContain('SluiceDrainLong')
    expect(alerts.every((rule) => at(rule, 'labels', 'team') === 'shuffle')).toBe(true)
    expect(alerts.every((rule) => at(rule, 'labels', 'severity') !== undefined)).toBe(true)
  })

  test('has three dashboards, each its own JSON', () => {
    const maps = everything.filter(({ metadata }) => metadata.labels?.['grafana_dashboard'] === '1')
    const uids = maps
      .flatMap((one) => Object.values(one['data'] as Record<string, string>))
      .map((text) => at(JSON.parse(text), 'uid'))
    expect(uids.sort()).toEqual(['sluice-cluster', 'sluice-pressure', 'sluice-worker'])
  })
})

describe('values', () => {
  test.each([
    ['wrong', 1],
    ['worker.wrong', 1],
    ['manager.options', { 'wrong-option': 1 }],
    ['manager.options', { port: 1 }],
    ['worker.options', { 'data-directories': ['/a'] }],
    ['worker.options', { durability: 'maybe' }],
    ['worker.memory', '64'],
    ['worker.memory', 64],
    ['worker.drainTimeout', '1.5m'],
    ['worker.dataPort', 0],
    ['worker.replicas', -1],
    ['worker.startupProbe', { initialDelaySeconds: 1 }],
    ['image', { digest: 'sha256:short' }],
    ['monitoring.keepMetrics', 'all'],
    ['pools', []],
    ['auth.secretKey', ''],
  ])('%s = %j is refused', async (path, value) => {
    const { code, stderr } = await helmTemplate({ set: { [path]: value } })
    expect(code).toBe(1)
    expect(stderr).toMatch(/schema|don't meet/)
  })
})
