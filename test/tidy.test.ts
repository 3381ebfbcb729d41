// The rules of this code base that a machine can check and a linter does not. Each test gathers every
// violation before it fails, so that one run shows all. An exception is an entry in a list here, with
// its reason; an entry that is no longer needed is a violation too.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { errorTable } from '../client/common/errors.ts'
import { filesBelow, projectRoot, readSourceFiles, readText } from './support/source-tree.ts'
import type { SourceFile } from './support/source-tree.ts'

const sources = readSourceFiles()
const tests = readSourceFiles(['test'])

/**
 * Import layers: what each area may import besides itself. An area is a folder or a file; a file
 * belongs to the longest name that is its beginning. Imports point down only.
 */
const contracts = ['client/common', 'client/protocol', 'client/manager']
const clientParts = [
  ...contracts,
  'client/transport',
  'client/write',
  'client/read',
  'client/master',
  'client/master/shuffle-descriptor.ts',
]
const workerFacts = ['shuffle-worker/options.ts', 'shuffle-worker/metrics.ts']
const layers: Readonly<Record<string, readonly string[]>> = {
  'client/common': [],
  'client/protocol': ['client/common'],
  'client/manager': ['client/common'],
  // Constants for the Java plugin, made from the contracts by one tool.
  'client/flink': contracts,
  'client/protocol/generate.ts': [...contracts, 'client/flink'],
  'client/transport': contracts,
  // What a descriptor says is for all three of its neighbours.
  'client/master/shuffle-descriptor.ts': contracts,
  'client/write': [...contracts, 'client/transport', 'client/master/shuffle-descriptor.ts'],
  'client/read': [...contracts, 'client/transport', 'client/master/shuffle-descriptor.ts'],
  'client/master': [...contracts, 'client/transport', 'client/master/shuffle-descriptor.ts'],
  client: clientParts,
  'shuffle-worker/options.ts': contracts,
  'shuffle-worker/metrics.ts': [...contracts, 'shuffle-worker/memory'],
  'shuffle-worker/memory': contracts,
  'shuffle-worker/storage': [...contracts, 'shuffle-worker/memory'],
  'shuffle-worker/write': [...contracts, 'shuffle-worker/memory', 'shuffle-worker/storage'],
  'shuffle-worker/read': [...contracts, 'shuffle-worker/memory', 'shuffle-worker/storage'],
  'shuffle-worker/transport': [
    ...contracts,
    ...workerFacts,
    'shuffle-worker/memory',
    'shuffle-worker/storage',
    'shuffle-worker/write',
    'shuffle-worker/read',
  ],
  'shuffle-worker/control': [...contracts, 'shuffle-worker/storage'],
  'shuffle-worker/http': [...contracts, ...workerFacts, 'shuffle-worker/storage'],
  'shuffle-worker': [
    ...contracts,
    ...workerFacts,
    'shuffle-worker/memory',
    'shuffle-worker/storage',
    'shuffle-worker/write',
    'shuffle-worker/read',
    'shuffle-worker/transport',
    'shuffle-worker/control',
    'shuffle-worker/http',
  ],
  'shuffle-manager': contracts,
  // An embedding runtime has what is published, and nothing else.
  runtime: ['client/index.ts'],
  'client/index.ts': ['client', ...clientParts],
  cli: [
    'client',
    'client/index.ts',
    ...clientParts,
    'shuffle-manager',
    'shuffle-worker',
    'shuffle-worker/options.ts',
    'runtime',
  ],
  // Measures the services from outside, as a runtime and as a starter of processes.
  bench: ['cli', 'client/index.ts', 'client/common', 'client/protocol'],
}

/** Areas that carry payload: no HTTP in them. */
const dataPath = [
  'client/protocol',
  'client/transport',
  'client/write',
  'client/read',
  'shuffle-worker/memory',
  'shuffle-worker/storage',
  'shuffle-worker/write',
  'shuffle-worker/read',
  'shuffle-worker/transport',
]
const httpPackages = ['fastify', '@fastify/swagger', 'undici', 'node:http', 'node:https']

/** Single edges against the table, `from -> to`, each with its reason. */
const edgesAllowed: Readonly<Record<string, string>> = {}

const benchProcesses = 'works on processes: the end-to-end suite runs the bench once, small'
const processEntry = 'the entry of a process: the end-to-end suite starts it'

/** Source files with logic and without a test at the mirrored path, each with its reason. */
const filesWithoutTest: Readonly<Record<string, string>> = {
  'client/common/real-world.ts': 'puts five objects into one; the end-to-end suite runs on it',
  'cli/main.ts': processEntry,
  'shuffle-manager/main.ts': processEntry,
  'shuffle-worker/main.ts': processEntry,
  'runtime/task-process-main.ts': processEntry,
  'bench/main.ts': processEntry,
  'bench/role-main.ts': processEntry,
  'bench/bench-cluster.ts': benchProcesses,
  'bench/control-plane.ts': benchProcesses,
  'bench/life-cycles.ts': benchProcesses,
  'bench/list-watch.ts': benchProcesses,
  'bench/load-tasks.ts': benchProcesses,
  'bench/loop-probe.ts': benchProcesses,
  'bench/role-process.ts': benchProcesses,
  'bench/session.ts': benchProcesses,
  'bench/shuffle-case.ts': benchProcesses,
  'bench/small-shuffles.ts': benchProcesses,
  'bench/suite.ts': benchProcesses,
  'bench/tracked-partitions.ts': benchProcesses,
}

/** Packages of `dependencies` that no source imports, each with its reason. */
const packagesNotImported: Readonly<Record<string, string>> = {}

/** Names that say nothing, or say what the style calls otherwise. */
const fileNameForbidden = /(^|[/-])(utils?|helpers?|impl|misc|common-\w+|base-\w+)(-|\.|\/)/

function areaOf(path: string): string | undefined {
  let found: string | undefined
  for (const area of Object.keys(layers)) {
    const isIn = path === area || path.startsWith(`${area}/`)
    if (isIn && area.length > (found?.length ?? 0)) found = area
  }
  return found
}

function report(violations: readonly string[]): void {
  expect([...new Set(violations)].sort()).toEqual([])
}

/** `entries` that were not needed, as violations. */
function unused(what: string, entries: object, used: ReadonlySet<string>): string[] {
  return Object.keys(entries)
    .filter((entry) => !used.has(entry))
    .map((entry) => `${what}: ${entry} is listed and needs no exception`)
}

test('imports point down the layers only', () => {
  const violations: string[] = []
  const used = new Set<string>()
  for (const file of sources) {
    const from = areaOf(file.path)
    for (const { path } of file.imports) {
      if (path === undefined) continue
      const to = areaOf(path)
      const isAllowed = to === from || (to !== undefined && layers[from ?? '']?.includes(to))
      if (isAllowed === true) continue
      const edge = `${file.path} -> ${path}`
      if (edge in edgesAllowed) used.add(edge)
      else violations.push(edge)
    }
  }
  report([...violations, ...unused('edgesAllowed', edgesAllowed, used)])
})

test('every source file belongs to a layer', () => {
  report(sources.map((file) => file.path).filter((path) => areaOf(path) === undefined))
})

test('no HTTP in the data path', () => {
  report(
    sources
      .filter((file) => dataPath.includes(areaOf(file.path) ?? ''))
      .flatMap((file) =>
        file.imports
          .filter(({ specifier, isTypeOnly }) => !isTypeOnly && httpPackages.includes(specifier))
          .map(({ specifier }) => `${file.path} imports ${specifier}`),
      ),
  )
})

test('no circle of imports', () => {
  const byPath = new Map(sources.map((file) => [file.path, file]))
  const done = new Set<string>()
  const violations: string[] = []
  const visit = (file: SourceFile, above: readonly string[]): void => {
    const start = above.indexOf(file.path)
    if (start >= 0) {
      violations.push([...above.slice(start), file.path].join(' -> '))
      return
    }
    if (done.has(file.path)) return
    for (const { path, isTypeOnly } of file.imports) {
      const next = path === undefined || isTypeOnly ? undefined : byPath.get(path)
      if (next !== undefined) visit(next, [...above, file.path])
    }
    done.add(file.path)
  }
  for (const file of sources) visit(file, [])
  report(violations)
})

test('sources import only declared dependencies, and each dependency is imported', () => {
  const { dependencies } = JSON.parse(readText('package.json')) as {
    dependencies: Record<string, string>
  }
  const imported = new Set<string>()
  const violations: string[] = []
  for (const file of sources) {
    for (const { specifier, path } of file.imports) {
      if (path !== undefined || specifier.startsWith('node:')) continue
      const name = specifier
        .split('/')
        .slice(0, specifier.startsWith('@') ? 2 : 1)
        .join('/')
      imported.add(name)
      if (!(name in dependencies)) violations.push(`${file.path} imports ${specifier}`)
    }
  }
  for (const name of Object.keys(dependencies)) {
    if (!imported.has(name) && !(name in packagesNotImported)) violations.push(`${name} is unused`)
  }
  report(violations)
})

test('every dependency has an exact version and is explained in CONTRIBUTING.md', () => {
  const manifest = JSON.parse(readText('package.json')) as {
    dependencies: Record<string, string>
    devDependencies: Record<string, string>
  }
  const document = readText('CONTRIBUTING.md')
  const violations: string[] = []
  for (const [name, version] of Object.entries({
    ...manifest.dependencies,
    ...manifest.devDependencies,
  })) {
    if (!/^\d+\.\d+\.\d+$/.test(version)) violations.push(`${name} has version ${version}`)
    const isTypes = name.startsWith('@types/')
    if (!isTypes && !document.includes(name)) violations.push(`${name} is not in CONTRIBUTING.md`)
  }
  report(violations)
})

test('every source file with logic has a test at the mirrored path', () => {
  const violations: string[] = []
  const used = new Set<string>()
  for (const { path, hasLogic } of sources) {
    const mirrored = `test/${path.replace(/\.ts$/, '.test.ts')}`
    if (!hasLogic || existsSync(join(projectRoot, mirrored))) continue
    if (path in filesWithoutTest) used.add(path)
    else violations.push(`${path} has no ${mirrored}`)
  }
  report([...violations, ...unused('filesWithoutTest', filesWithoutTest, used)])
})

test('there is one barrel, client/index.ts', () => {
  report(
    sources
      .filter(({ path, isBarrel }) => isBarrel || path.endsWith('/index.ts'))
      .map(({ path }) => path)
      .filter((path) => path !== 'client/index.ts'),
  )
})

test('no rule is switched off without a reason, no test is skipped, no line is left uncovered by comment', () => {
  const rules: readonly (readonly [pattern: RegExp, what: string])[] = [
    [/eslint-disable(?!.* -- .{8,})/, 'eslint-disable without "-- reason"'],
    [/@ts-(ignore|nocheck)/, '@ts-ignore'],
    [/@ts-expect-error\s*$/m, '@ts-expect-error without a reason'],
    [/prettier-ignore(?!.*\w{3,} \w+)/, 'prettier-ignore without a reason'],
    [/(v8|c8|istanbul) ignore/, 'a coverage comment'],
    [/\b(test|it|describe)\.(skip|only|todo|fails)\b/, 'a test that does not count'],
    [/\b(test|it|describe)\.(skipIf|runIf)\b/, 'a test that does not always count'],
  ]
  report(
    [...sources, ...tests]
      .filter(({ path }) => path !== 'test/tidy.test.ts')
      .flatMap(({ path, text }) =>
        text
          .split('\n')
          .flatMap((line, index) =>
            rules
              .filter(([pattern]) => pattern.test(line))
              .map(([, what]) => `${path}:${String(index + 1)} ${what}`),
          ),
      ),
  )
})

test('every error code is raised somewhere and documented', () => {
  const documents = ['ARCHITECTURE.md', 'WIRE.md', 'README.md']
    .filter((path) => existsSync(join(projectRoot, path)))
    .map(readText)
    .join('\n')
  const code = sources
    .filter(({ path }) => path !== 'client/common/errors.ts')
    .flatMap(({ text }) => text.split('\n'))
    // A line that only asks for a code doesn't raise it.
    .filter((line) => !/isShuffleError|\bcase '|[!=]== '/.test(line))
    .join('\n')
  const violations: string[] = []
  for (const name of Object.keys(errorTable)) {
    if (!code.includes(`'${name}'`)) violations.push(`${name} is never raised`)
    if (!new RegExp(`\\b${name}\\b`).test(documents)) violations.push(`${name} is not documented`)
  }
  report(violations)
})

test('wire codes of errors are unique', () => {
  const codes = Object.values(errorTable).map(({ wireCode }) => wireCode)
  expect(new Set(codes).size).toBe(codes.length)
})

test('every option, metric and message is documented', () => {
  const documents = filesBelow('', ['.md']).map(readText).join('\n')
  const named = (pattern: RegExp, include: (path: string) => boolean): string[] =>
    sources
      .filter(({ path }) => include(path))
      .flatMap(({ text }) => [...text.matchAll(pattern)].map(([, name]) => name ?? ''))
  const options = named(/\bname: '([a-z][a-z0-9-]*)'/g, (path) => /(^|[/-])options\.ts$/.test(path))
  const metrics = named(/'(sluice_[a-z0-9_]+)'/g, () => true)
  const messages = named(/defineMessage\(\{\s*name: '(\w+)'/g, () => true)
  const isDocumented = (name: string) => new RegExp(`\\b${name}\\b`).test(documents)
  report([
    ...options.filter((name) => !isDocumented(name)).map((name) => `option ${name}`),
    ...metrics.filter((name) => !isDocumented(name)).map((name) => `metric ${name}`),
    ...messages.filter((name) => !isDocumented(name)).map((name) => `message ${name}`),
  ])
})

test('names follow the style', () => {
  const violations: string[] = []
  for (const { path, text } of [...sources, ...tests]) {
    if (!/^[a-z0-9/.-]+$/.test(path)) violations.push(`${path} is not in kebab-case`)
    if (fileNameForbidden.test(path)) violations.push(`${path} has a name that says nothing`)
    for (const [, name = ''] of text.matchAll(/\b(?:class|interface|type) (\w+)/g)) {
      const isForbidden =
        /Impl$|^Base[A-Z]|Utils?$|Helpers?$|^I[A-Z][a-z]/.test(name) ||
        (/Manager$/.test(name) && name !== 'ShuffleManager')
      if (isForbidden) violations.push(`${path} declares ${name}`)
    }
  }
  report(violations)
})

test('only errors are inherited from, and nobody emits events', () => {
  const violations: string[] = []
  for (const { path, text } of sources) {
    for (const [, parent = ''] of text.matchAll(/\bclass \w+(?:<[^>]*>)? extends ([\w.]+)/g)) {
      if (!/Error$/.test(parent)) violations.push(`${path} extends ${parent}`)
    }
    if (/\bEventEmitter\b/.test(text)) violations.push(`${path} uses EventEmitter`)
  }
  report(violations)
})

test('every file begins with what it is', () => {
  report(sources.filter(({ text }) => !/^(#!.*\n)?(\/\/ |\/\*)/.test(text)).map(({ path }) => path))
})
