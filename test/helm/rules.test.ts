// The recording and alerting rules, by promtool.

import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { projectRoot, readText } from '../support/source-tree.ts'
import { run, toolPath } from '../support/deploy/chart-tools.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

const promtool = join(toolPath('prometheus-'), 'usr/bin/promtool')
const rulesFile = join(projectRoot, 'helm/files/rules.yaml')

test('the rules are what Prometheus takes', async () => {
  const outcome = await run(promtool, ['check', 'rules', rulesFile])
  expect(outcome).toMatchObject({ code: 0 })
  expect(outcome.stdout).toMatch(/SUCCESS: \d+ rules found/)
})

test('alerts fire when they must and are quiet on a healthy cluster', async () => {
  await withTemporaryDirectory(async (directory) => {
    copyFileSync(rulesFile, join(directory, 'rules.yaml'))
    copyFileSync(join(projectRoot, 'test/helm/rules-test.yaml'), join(directory, 'test.yaml'))
    const outcome = await run(promtool, ['test', 'rules', 'test.yaml'], { cwd: directory })
    expect(outcome).toMatchObject({ code: 0 })
  })
})

test('every alert is seen to fire', () => {
  const alerts = readText('helm/files/rules.yaml').match(/(?<=alert: )\w+/g) ?? []
  const tests = readText('test/helm/rules-test.yaml')
  const isFired = (alert: string) =>
    tests.includes(`alertname="${alert}",alertstate="firing"`) ||
    tests.includes(`alertname: ${alert}`)
  expect(alerts.length).toBeGreaterThan(10)
  expect(alerts.filter((alert) => !isFired(alert))).toEqual([])
})
