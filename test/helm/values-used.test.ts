// Every value of the chart does something: changed alone, it changes what is rendered.

import { expect, test } from 'vitest'
import { chartValues } from '../support/deploy/chart-readme.ts'
import { helmTemplate } from '../support/deploy/chart-tools.ts'
import type { Outcome } from '../support/deploy/chart-tools.ts'
import { readText } from '../support/source-tree.ts'

/** What a value is changed to where no other can be made from its default. */
const changes: Readonly<Record<string, unknown>> = {
  'auth.existingSecret': 'other',
  clusterId: 'another',
  extraManifests: [],
  'image.digest': `sha256:${'0'.repeat(64)}`,
  'image.pullPolicy': 'Never',
  'ingress.pathType': 'Exact',
  'manager.options': { placement: 'random' },
  'manager.service.type': 'LoadBalancer',
  'monitoring.keepMetrics': ['sluice_.*'],
  'monitoring.prometheusRule.disabledAlerts': [],
  'monitoring.prometheusRule.extraGroups': [],
  'networkPolicy.clients': [],
  'networkPolicy.extraEgress': [],
  'networkPolicy.monitoring': [],
  podSecurityContext: { runAsUser: 2 },
  pools: [{ name: 'another' }],
  'priorityClass.preemptionPolicy': 'Never',
  securityContext: { privileged: false },
  'tests.resources': { limits: { cpu: '7' } },
  'worker.dataPort': 9720,
  'worker.autoscaling.metrics': [{ type: 'Pods' }],
  'worker.disks': [{ name: 'other', kind: 'hdd', size: '1Gi' }],
  'worker.options': { durability: 'none' },
  'worker.persistentVolumeClaimRetentionPolicy': { whenDeleted: 'Retain' },
  'worker.podManagementPolicy': 'OrderedReady',
  'worker.spread': 'none',
  'worker.updateStrategy': { type: 'OnDelete' },
}

/** What must be so, for a value to be looked at. */
const conditions: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'manager.persistence.size': { 'manager.persistence.existingClaim': '' },
  'monitoring.podMonitor.enabled': { 'monitoring.serviceMonitor.enabled': false },
  'monitoring.podMonitor.interval': onlyPodMonitor(),
  'monitoring.podMonitor.labels': onlyPodMonitor(),
  'monitoring.podMonitor.scrapeTimeout': onlyPodMonitor(),
}

function onlyPodMonitor(): Readonly<Record<string, unknown>> {
  return { 'monitoring.serviceMonitor.enabled': false, 'monitoring.podMonitor.enabled': true }
}

/** Lists and maps that everything.yaml fills become empty, scalars something else. */
function changed(key: string, standard: string): unknown {
  if (key in changes) return changes[key]
  const value: unknown = JSON.parse(standard)
  if (typeof value === 'number') return value + 1
  if (Array.isArray(value)) return []
  if (typeof value === 'string') return changedText(value)
  return /(Labels|labels|nnotations)$/.test(key) ? { changed: 'yes' } : null
}

function changedText(text: string): string {
  const number = /^\d+/.exec(text)?.[0]
  return number === undefined ? `${text}x` : text.replace(number, String(Number(number) + 1))
}

const renders = new Map<string, Promise<Outcome>>()

/** The same for most values. */
function rendered(set: Readonly<Record<string, unknown>>): Promise<Outcome> {
  const key = JSON.stringify(set)
  const found = renders.get(key) ?? helmTemplate({ files: ['everything'], set })
  renders.set(key, found)
  return found
}

const values = chartValues(readText('helm/values.yaml'))

test.each(values)('$key', async ({ key, standard }) => {
  // A switch is looked at in both positions, whichever everything.yaml has it in.
  const isSwitch = standard === 'true' || standard === 'false'
  const condition = { ...conditions[key], ...(isSwitch ? { [key]: true } : {}) }
  const [before, after] = await Promise.all([
    rendered(condition),
    helmTemplate({
      files: ['everything'],
      set: { ...condition, [key]: isSwitch ? false : changed(key, standard) },
    }),
  ])
  expect(before).toMatchObject({ code: 0 })
  expect(after.stderr).toBe('')
  expect(after.stdout).not.toBe(before.stdout)
})
