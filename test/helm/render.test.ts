// What the chart renders, by helm 3 and helm 4: valid for every supported Kubernetes, the same as
// before, refused where it must be.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { projectRoot } from '../support/source-tree.ts'
import {
  at,
  chartFolder,
  helms,
  helmTemplate,
  parse,
  render,
  run,
  toolPath,
} from '../support/deploy/chart-tools.ts'
import type { Manifest } from '../support/deploy/chart-tools.ts'

const here = join(projectRoot, 'test/helm')
const cases = readdirSync(join(here, 'values')).map((name) => name.replace(/\.yaml$/, ''))
/** The oldest that the chart takes, each that is supported today, and the newest there is. */
const kubernetesVersions = ['1.27', '1.30', '1.34', '1.35', '1.36', '1.37']

describe.each(Object.entries(helms))('%s', (_name, helm) => {
  test.each(cases)('finds nothing to complain about with the values %s', async (name) => {
    const values = join(here, 'values', `${name}.yaml`)
    const outcome = await run(toolPath(helm), [
      'lint',
      chartFolder,
      '--strict',
      '--kube-version',
      '1.37.0',
      '--values',
      values,
    ])
    expect(outcome).toMatchObject({ code: 0 })
    expect(outcome.stdout).not.toMatch(/\[(WARNING|ERROR)\]/)
  })

  test.each(cases)('renders the values %s as it did before', async (name) => {
    const { code, stdout, stderr } = await helmTemplate({
      helm,
      files: [name],
      // Copies of files that a test of their own compares.
      set: { 'monitoring.dashboards.enabled': false },
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const file = join(here, 'golden', `${name}.yaml`)
    const sorted = inOrder(stdout)
    // UPDATE_GOLDEN=1 npm run test:chart writes the files anew; read what changed before it is committed.
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, sorted)
    expect(sorted).toBe(readFileSync(file, 'utf8'))
  })
})

test('everything that is rendered is valid for every supported Kubernetes and its operators', async () => {
  const objects: { readonly case: string; readonly object: Manifest }[] = []
  for (const name of cases) {
    for (const object of await render({ files: [name] })) objects.push({ case: name, object })
  }
  expect(objects.length).toBeGreaterThan(50)
  const { code, stdout, stderr } = await run(
    join(toolPath('python-kubernetes-'), 'bin/python'),
    [join(here, 'validate.py'), toolPath('operator-schemas-'), ...kubernetesVersions],
    { input: JSON.stringify(objects) },
  )
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual([])
})

test('the validation finds a field that is not there, in an object and in a custom resource', async () => {
  const objects = ['ServiceMonitor', 'StatefulSet'].map(async (kind) => {
    const manifests = await render({ files: ['everything'] })
    const found = manifests.find((one) => one.kind === kind)!
    return { case: 'wrong', object: { ...found, spec: { ...(found['spec'] as object), wrong: 1 } } }
  })
  const { stdout } = await run(
    join(toolPath('python-kubernetes-'), 'bin/python'),
    [join(here, 'validate.py'), toolPath('operator-schemas-'), '1.37'],
    { input: JSON.stringify(await Promise.all(objects)) },
  )
  const problems = JSON.parse(stdout) as string[]
  expect(problems.join('\n')).toMatch(/ServiceMonitor.*wrong/)
  expect(problems.join('\n')).toMatch(/StatefulSet.*wrong/)
})

describe('an upgrade from a released chart changes no field that Kubernetes keeps', () => {
  test.each(readdirSync(join(here, 'released')))('%s', async (file) => {
    const before = parse(readFileSync(join(here, 'released', file), 'utf8'))
    const after = await render()
    for (const old of before) {
      const now = after.find(
        ({ kind, metadata }) => kind === old.kind && metadata.name === old.metadata.name,
      )
      // An object that is gone is deleted by Helm: fine but for what holds data.
      if (now === undefined) expect(old.kind).not.toBe('StatefulSet')
      else expect(immutable(now)).toEqual(immutable(old))
    }
  })
})

test('two releases in one namespace have no object, selector or cluster in common', async () => {
  const [one, other] = await Promise.all([
    render({ release: 'left', files: ['everything'], set: { clusterId: '' } }),
    render({ release: 'right', files: ['everything'], set: { clusterId: '' } }),
  ])
  const names = new Set(one.map(({ kind, metadata }) => `${kind}/${metadata.name}`))
  expect(other.filter(({ kind, metadata }) => names.has(`${kind}/${metadata.name}`))).toEqual([])
  const texts = other.map((manifest) => JSON.stringify(manifest))
  expect(texts.filter((text) => /"left(-sluice[\w-]*)?"|left-sluice/.test(text))).toEqual([])
  for (const manifest of [...one, ...other]) {
    const selector = JSON.stringify(at(manifest, 'spec', 'selector') ?? null)
    if (manifest.kind === 'PersistentVolumeClaim' || selector === 'null') continue
    expect(selector).toContain('app.kubernetes.io/instance')
  }
})

/** Documents by kind and name: the two helms differ in nothing but order and blank lines. */
function inOrder(text: string): string {
  const documents = text
    .split(/^---$/m)
    .map((document) => document.replace(/^# Source:.*\n/m, '').trim())
    .filter((document) => document !== '')
  const keyOf = (document: string) =>
    `${/^kind: (.*)$/m.exec(document)?.[1] ?? ''} ${/^ {2}name: (.*)$/m.exec(document)?.[1] ?? ''}`
  return `${documents.sort((one, two) => (keyOf(one) < keyOf(two) ? -1 : 1)).join('\n---\n')}\n`
}

/** What an update of the object may not change. */
function immutable(manifest: Manifest): unknown {
  const spec = manifest['spec'] as Readonly<Record<string, unknown>> | undefined
  switch (manifest.kind) {
    case 'StatefulSet':
      return [
        spec?.['selector'],
        spec?.['serviceName'],
        spec?.['podManagementPolicy'],
        spec?.['volumeClaimTemplates'],
      ]
    case 'Deployment':
    case 'DaemonSet':
      return spec?.['selector']
    case 'Service':
      return spec?.['clusterIP']
    case 'PersistentVolumeClaim':
      return [spec?.['accessModes'], spec?.['storageClassName']]
    case 'Secret':
      return manifest['type']
    default:
      return manifest.apiVersion
  }
}
