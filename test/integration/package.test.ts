// What npm would publish, installed into an empty project in plain JavaScript.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repositoryRoot } from '../support/cluster.ts'

const directory = mkdtempSync(join(tmpdir(), 'sluice-package-'))

function npm(args: readonly string[], cwd: string): string {
  return execFileSync('npm', [...args, '--no-audit', '--no-fund'], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

beforeAll(() => {
  npm(['pack', '--ignore-scripts', '--pack-destination', directory], repositoryRoot)
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({ name: 'embedder', private: true, type: 'module' }),
  )
  const version = (
    JSON.parse(
      execFileSync('node', ['-p', "JSON.stringify(require('./package.json'))"], {
        cwd: repositoryRoot,
        encoding: 'utf8',
      }),
    ) as { version: string }
  ).version
  npm(['install', '--prefer-offline', `./sluice-${version}.tgz`], directory)
}, 240_000)

afterAll(() => {
  rmSync(directory, { recursive: true, force: true })
})

function run(file: string, source: string): string {
  writeFileSync(join(directory, file), source)
  return execFileSync(process.execPath, [file], { cwd: directory, encoding: 'utf8' })
}

it('loads by its name and offers the service provider interface', () => {
  const printed = run(
    'embed.js',
    `import { loadShuffleServiceFactory, ShuffleError } from 'sluice'
     const factory = await loadShuffleServiceFactory('sluice')
     const environment = factory.createShuffleEnvironment({ managerUrl: 'http://127.0.0.1:1', clusterId: 'none' })
     const before = environment.statistics()
     await environment.close()
     console.log(JSON.stringify({
       methods: [typeof factory.createShuffleMaster, typeof environment.createResultPartition, typeof environment.createInputGate],
       error: new ShuffleError('BUSY', 'x').action,
       connections: before.connections,
     }))`,
  )
  expect(JSON.parse(printed)).toEqual({
    methods: ['function', 'function', 'function'],
    error: 'retry-here',
    connections: 0,
  })
})

it('hides what is not public', () => {
  expect(() => run('deep.js', `import 'sluice/dist/client/common/assert.js'`)).toThrow(
    /ERR_PACKAGE_PATH_NOT_EXPORTED/,
  )
})

it('runs as a command', () => {
  const printed = execFileSync(join(directory, 'node_modules/.bin/sluice'), ['--help'], {
    cwd: directory,
    encoding: 'utf8',
  })
  expect(printed).toMatch(/sluice local/)
})

it('ships types that a strict consumer compiles against', () => {
  writeFileSync(
    join(directory, 'consumer.ts'),
    `import type { InputGate, ResultPartition, ShuffleEnvironment } from 'sluice'
     export async function copy(from: InputGate, to: ResultPartition): Promise<number> {
       for await (const batch of from) batch.recycle()
       return (await to.finish()).recordCount
     }
     // @ts-expect-error an environment has no such method
     export const wrong = (environment: ShuffleEnvironment) => environment.createNothing()
    `,
  )
  const compiler = join(repositoryRoot, 'node_modules/typescript/bin/tsc')
  execFileSync(
    process.execPath,
    [
      compiler,
      '--noEmit',
      '--strict',
      '--target',
      'es2023',
      '--module',
      'node20',
      '--typeRoots',
      join(repositoryRoot, 'node_modules/@types'),
      '--types',
      'node',
      '--skipLibCheck',
      'consumer.ts',
    ],
    { cwd: directory, encoding: 'utf8' },
  )
}, 60_000)
