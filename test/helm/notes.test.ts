// What a person reads: NOTES.txt after an install, and helm/README.md, name things that exist.

import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commands } from '../../cli/commands.ts'
import {
  at,
  chartFolder,
  helms,
  helmTemplate,
  parse,
  render,
} from '../support/deploy/chart-tools.ts'
import { filesBelow, readText } from '../support/source-tree.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

const flinkOptions = readText('client/flink/src/main/java/org/sluice/flink/SluiceOptions.java')
const flinkClasses = filesBelow('client/flink/src/main/java', ['.java']).map((path) =>
  path
    .replace(/^.*\/java\//, '')
    .replace(/\.java$/, '')
    .replaceAll('/', '.'),
)

/** Helm shows the notes of a real install only: here they are a template like the others. */
async function notes(
  files: readonly string[],
  set: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  return await withTemporaryDirectory(async (directory) => {
    const chart = join(directory, 'sluice')
    cpSync(chartFolder, chart, { recursive: true })
    const text = readFileSync(join(chart, 'templates/NOTES.txt'), 'utf8')
    rmSync(join(chart, 'templates/NOTES.txt'))
    writeFileSync(
      join(chart, 'templates/notes.yaml'),
      `{{- define "notes" -}}\n${text}{{- end -}}\napiVersion: v1\nkind: Notes\nmetadata:\n  name: notes\ntext: {{ include "notes" . | quote }}\n`,
    )
    const { code, stdout, stderr } = await helmTemplate({
      helm: helms['helm 3'],
      chart,
      files,
      set,
    })
    if (code !== 0) throw new Error(stderr)
    return at(
      parse(stdout).find(({ kind }) => kind === 'Notes'),
      'text',
    ) as string
  })
}

/** Names in a text that are not there: Flink's options and classes, and our commands. */
function unknownNames(text: string): string[] {
  const options = [...text.matchAll(/\bremote-shuffle\.[a-z.-]+[a-z]/g)].map(([name]) => name)
  const classes = [...text.matchAll(/\borg\.sluice\.[\w.]+\w/g)].map(([name]) => name)
  const called = [...text.matchAll(/-- sluice (\w[\w-]*)/g)].map(([, name]) => name ?? '')
  return [
    ...options.filter((name) => !flinkOptions.includes(`"${name}"`)),
    ...classes.filter((name) => !flinkClasses.includes(name)),
    ...called.filter((name) => !(name in commands)),
  ]
}

test('the notes name what exists, and the release’s own objects', async () => {
  const text = await notes(['defaults'])
  expect(text).toContain('remote-shuffle.manager.address: http://rel-sluice-manager.')
  expect(unknownNames(text)).toEqual([])
  const names = (await render()).map(({ metadata }) => metadata.name)
  for (const [, name = ''] of text.matchAll(/(?:deploy\/|Secret )([\w-]+)/g))
    expect(names).toContain(name)
})

test('the notes warn where there is no token, and of nothing where there is one', async () => {
  expect(await notes(['open'])).toContain('THERE IS NO TOKEN')
  expect(await notes(['defaults'])).not.toContain('THERE IS NO TOKEN')
})

test('the notes say what is not scraped', async () => {
  expect(await notes(['defaults'])).toContain('Nothing scrapes the metrics yet')
  expect(await notes(['defaults'], { 'monitoring.podMonitor.enabled': true })).not.toContain(
    'Nothing scrapes',
  )
})

test('the notes say what the loss of the manager means', async () => {
  expect(await notes(['defaults'])).toMatch(
    /allocations wait for it; running writes and reads go on/,
  )
})

test('the guide of the chart names what exists', async () => {
  const text = readText('helm/README.md')
  expect(unknownNames(text)).toEqual([])
  expect(unknownNames(readText('deploy/README.md'))).toEqual([])
  const names = (await render({ release: 'shuffle' })).map(({ metadata }) => metadata.name)
  for (const [name] of text.matchAll(/\bshuffle-sluice-[a-z]+\b/g)) expect(names).toContain(name)
})

test('the pod template of the guide mounts what is there', () => {
  const [, indented = ''] =
    /\n {7}spec:\n((?: {9}.*\n)+)/.exec(readText('helm/README.template.md')) ?? []
  const [template] = parse(`spec:\n${indented.replaceAll(/^ {7}/gm, '')}`)
  const volumes = at(template, 'spec', 'volumes') as readonly { readonly name: string }[]
  const containers = ['initContainers', 'containers'].map((kind) => at(template, 'spec', kind, '0'))
  const mounts = containers.flatMap((one) => at(one, 'volumeMounts') as { readonly name: string }[])
  const names = (list: readonly { readonly name: string }[]) =>
    [...new Set(list.map(({ name }) => name))].sort()
  expect(names(mounts)).toEqual(names(volumes))
  const [, from = '', to = ''] = at(containers[0], 'command') as string[]
  expect(readText('Dockerfile')).toContain('COPY --from=flink /jars ./flink')
  expect(readText('client/flink/README.md')).toContain(from.replace('/opt/sluice/flink/', ''))
  expect(at(containers[1], 'volumeMounts', '0', 'subPath')).toBe(to.replace('/jar/', ''))
})

test('the trial without volumes that the guide names is rendered', async () => {
  const [, json = ''] =
    /--set-json 'worker\.disks=(.*)'/.exec(readText('helm/README.template.md')) ?? []
  const manifests = await render({ set: { 'worker.disks': JSON.parse(json) as unknown } })
  const workers = manifests.find(({ kind }) => kind === 'StatefulSet')
  expect(at(workers, 'spec', 'volumeClaimTemplates')).toBeUndefined()
})
