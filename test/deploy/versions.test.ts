// The package, the chart, the image, the jar and what the services say of themselves are one version.

import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { workerVersion } from '../../shuffle-worker/worker.ts'
import { readText } from '../support/source-tree.ts'

const { version } = JSON.parse(readText('package.json')) as { readonly version: string }

test('the chart has the version of the package, and installs it', () => {
  expect(parse(readText('helm/Chart.yaml'))).toMatchObject({ version, appVersion: version })
})

test('the image has it', () => {
  expect(readText('Dockerfile')).toContain(`org.opencontainers.image.version="${version}"`)
})

test('the jar has it', () => {
  const [, jar] = /<artifactId>sluice-flink<\/artifactId>\s*<version>(.*?)<\/version>/.exec(
    readText('client/flink/pom.xml'),
  )!
  expect(jar).toBe(version)
})

test('a worker says it', () => {
  expect(workerVersion).toBe(version)
})

test('documents that name a version name this one', () => {
  const texts = ['helm/README.template.md', 'deploy/README.md', 'Dockerfile']
    .map(readText)
    .join('\n')
  const named = [...texts.matchAll(/sluice[:-](\d+\.\d+\.\d+)/g)].map(([, found]) => found)
  expect(named.length).toBeGreaterThan(2)
  expect(named.filter((found) => found !== version)).toEqual([])
})

test('the changelog begins with this version, and says how to upgrade to it', () => {
  const text = readText('CHANGELOG.md')
  const [first = ''] = text.split(/^## /m).slice(1)
  expect(first.split('\n')[0]).toBe(version)
  expect(first).toMatch(/^### Upgrading$/m)
})
