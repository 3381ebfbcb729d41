// Metrics: the reference, the rules and the dashboards speak of what exists, and of all of it.

import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readText } from '../support/source-tree.ts'
import { dashboards, expressionsOf } from '../support/deploy/dashboards.ts'
import { managerMetrics, seriesNames, workerMetrics } from '../support/deploy/metrics-reference.ts'

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert?: string
      readonly record?: string
      readonly expr: string
      readonly labels?: Readonly<Record<string, string>>
      readonly annotations?: Readonly<Record<string, string>>
    }[]
  }[]
}

const rules = (parse(readText('helm/files/rules.yaml')) as Rules).groups.flatMap(
  (group) => group.rules,
)
const recorded = rules.flatMap(({ record }) => (record === undefined ? [] : [record]))
const metrics = [...managerMetrics(), ...workerMetrics()]

/** Names in a query: metrics of ours, and recorded ones. */
function namesIn(expression: string): string[] {
  return expression.match(/\bsluice(?::[a-z0-9_:]+|_[a-z0-9_]+)/g) ?? []
}

function unknownNames(expression: string): string[] {
  const series = seriesNames()
  return namesIn(expression).filter((name) => !series.has(name) && !recorded.includes(name))
}

test('metrics have names of ours with units, and a sentence of help', () => {
  expect(
    metrics.filter(
      ({ name, type, help }) =>
        !/^sluice_(manager|worker)_[a-z0-9]+(_[a-z0-9]+)*$/.test(name) ||
        name.endsWith('_total') !== (type === 'counter') ||
        !/^[A-Z0-9].*\.$/.test(help),
    ),
  ).toEqual([])
})

test('no label could have as many values as there are jobs or clients', () => {
  const closed = ['call', 'cause', 'code', 'direction', 'directory', 'health', 'kind', 'operation']
  const known = [...closed, 'outcome', 'purpose', 'state', 'status']
  expect(metrics.flatMap(({ labels }) => labels).filter((label) => !known.includes(label))).toEqual(
    [],
  )
})

test('a registry is not asked for values while it is described', () => {
  expect(new Registry().getMetricsAsArray()).toEqual([])
  expect(managerMetrics().length).toBeGreaterThan(10)
  expect(workerMetrics().length).toBeGreaterThan(20)
})

test('every query of a dashboard names metrics that exist', () => {
  for (const [name, dashboard] of Object.entries(dashboards())) {
    const expressions = expressionsOf(dashboard)
    expect(expressions.length, name).toBeGreaterThan(5)
    expect(expressions.flatMap(unknownNames), name).toEqual([])
    expect(expressions.filter((expression) => namesIn(expression).length === 0)).toEqual([])
  }
})

test('every rule names metrics that exist', () => {
  expect(rules.flatMap(({ expr }) => unknownNames(expr))).toEqual([])
})

test('every alert says how bad it is, what it is, and what to do', () => {
  const alerts = rules.filter(({ alert }) => alert !== undefined)
  expect(alerts.length).toBeGreaterThan(10)
  for (const { alert, labels, annotations } of alerts) {
    expect(alert).toMatch(/^Sluice[A-Z]\w+$/)
    expect(labels?.['severity']).toMatch(/^(warning|critical)$/)
    expect(annotations?.['summary']).toMatch(/\.$/)
    expect(annotations?.['description']?.length, alert).toBeGreaterThan(40)
  }
})

test('every alert is in the reference, with what to do', () => {
  const text = readText('docs/alerts.md')
  for (const { alert } of rules) {
    if (alert !== undefined) expect(text).toContain(`\n## ${alert}\n`)
  }
})
