// The set-up of a clean clone, on a small project of its own whose one dependency is a folder beside
// it: a compiler that writes what it was asked to compile.

import { spawn } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { projectRoot } from '../support/source-tree.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

const setUpModule = new URL('../../cli/set-up.mjs', import.meta.url).href

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const compiler = `
const fs = require('fs')
const out = process.argv[process.argv.indexOf('--outDir') + 1]
const source = fs.readFileSync('cli/main.ts', 'utf8')
if (source.includes('type error')) { console.log('cli/main.ts: type error'); process.exit(2) }
fs.mkdirSync(out + '/cli', { recursive: true })
fs.writeFileSync(out + '/cli/main.js', source)
fs.appendFileSync('compiled', 'x')
`

const main = `
console.log(JSON.stringify({ arguments: process.argv.slice(2), directory: process.cwd() }))
`

async function makeProject(root: string): Promise<void> {
  await mkdir(join(root, 'compiler', 'bin'), { recursive: true })
  await mkdir(join(root, 'cli'))
  await mkdir(join(root, 'client'))
  for (const name of ['set-up.mjs', 'start.mjs']) {
    await cp(join(projectRoot, 'cli', name), join(root, 'cli', name))
  }
  const compilerManifest = { name: 'typescript', version: '1.0.0' }
  const manifest = {
    name: 'project',
    version: '1.0.0',
    type: 'module',
    dependencies: { typescript: 'file:compiler' },
  }
  const lock = {
    name: 'project',
    version: '1.0.0',
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': manifest,
      compiler: compilerManifest,
      'node_modules/typescript': { resolved: 'compiler', link: true },
    },
  }
  await Promise.all([
    writeFile(join(root, 'compiler', 'package.json'), JSON.stringify(compilerManifest)),
    writeFile(join(root, 'compiler', 'bin', 'tsc'), compiler),
    writeFile(join(root, 'package.json'), JSON.stringify(manifest)),
    writeFile(join(root, 'package-lock.json'), JSON.stringify(lock)),
    writeFile(join(root, 'tsconfig.json'), '{}'),
    writeFile(join(root, 'tsconfig.build.json'), '{}'),
    writeFile(join(root, 'cli', 'main.ts'), main),
    writeFile(join(root, 'client', 'index.ts'), ''),
  ])
}

function run(root: string, script: string, args: readonly string[] = []): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, 'cli', script), ...args], {
      cwd: root,
      env: { ...process.env, INIT_CWD: join(root, 'client') },
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
    child.on('error', reject)
    child.on('close', (code) => {
      resolve({ code, out, err })
    })
  })
}

function withProject(use: (root: string) => Promise<void>): Promise<void> {
  return withTemporaryDirectory(async (root) => {
    await makeProject(root)
    await use(root)
  })
}

/** How often the compiler has run. */
async function compileCount(root: string): Promise<number> {
  return (await readFile(join(root, 'compiled'), 'utf8').catch(() => '')).length
}

test('start sets a clean clone up, then runs the command where the caller stands', async () => {
  await withProject(async (root) => {
    const first = await run(root, 'start.mjs', ['sort', '--input', 'a b'])
    expect(first.code).toBe(0)
    expect(JSON.parse(first.out)).toEqual({
      arguments: ['sort', '--input', 'a b'],
      directory: join(root, 'client'),
    })
    expect(first.err).toMatch(/installing/)
    expect(first.err).toMatch(/compiling/)
    const second = await run(root, 'start.mjs')
    expect([second.code, second.err]).toEqual([0, ''])
    expect(await compileCount(root)).toBe(1)
    expect(await readdir(root)).not.toContain('.cache')
  })
})

test('a changed source is compiled again, a changed lock file installed again', async () => {
  await withProject(async (root) => {
    await run(root, 'set-up.mjs')
    await writeFile(join(root, 'client', 'more.ts'), 'new')
    expect((await run(root, 'set-up.mjs')).err).toMatch(/compiling/)
    await utimes(join(root, 'client', 'more.ts'), 1, 1)
    expect((await run(root, 'set-up.mjs')).err).toMatch(/compiling/)
    await rm(join(root, 'client', 'more.ts'))
    expect((await run(root, 'set-up.mjs')).err).toMatch(/compiling/)
    const lock = await readFile(join(root, 'package-lock.json'), 'utf8')
    await writeFile(join(root, 'package-lock.json'), `${lock}\n`)
    expect((await run(root, 'set-up.mjs')).err).toMatch(/installing/)
    expect((await run(root, 'set-up.mjs')).err).toBe('')
  })
})

test('modules that were installed by hand from the same lock file are kept', async () => {
  await withProject(async (root) => {
    await run(root, 'set-up.mjs')
    await rm(join(root, 'node_modules', '.sluice-installed'))
    expect((await run(root, 'set-up.mjs')).err).not.toMatch(/installing/)
    await rm(join(root, 'node_modules', '.sluice-installed'))
    await rm(join(root, 'node_modules', '.package-lock.json'))
    expect((await run(root, 'set-up.mjs')).err).toMatch(/installing/)
  })
})

test('a source that does not compile is an error on standard error and leaves no dist', async () => {
  await withProject(async (root) => {
    await writeFile(join(root, 'cli', 'main.ts'), 'type error')
    const failed = await run(root, 'start.mjs')
    expect([failed.code, failed.out]).toEqual([1, ''])
    expect(failed.err).toMatch(/cli\/main\.ts: type error/)
    expect(await readdir(root)).not.toContain('dist')
    await writeFile(join(root, 'cli', 'main.ts'), main)
    expect((await run(root, 'start.mjs')).code).toBe(0)
  })
})

test('of two at once one works and the other waits for it', async () => {
  await withProject(async (root) => {
    const both = await Promise.all([run(root, 'start.mjs', ['a']), run(root, 'start.mjs', ['b'])])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(await compileCount(root)).toBe(1)
  })
})

test('the lock of a process that is gone does not hold, half-made parts are made again', async () => {
  await withProject(async (root) => {
    const gone = spawn(process.execPath, ['-e', ''])
    await new Promise((resolve) => gone.on('exit', resolve))
    await mkdir(join(root, '.cache', 'set-up.lock'), { recursive: true })
    await writeFile(join(root, '.cache', 'set-up.lock', String(gone.pid)), '')
    await mkdir(join(root, '.cache', 'dist', 'half'), { recursive: true })
    await mkdir(join(root, 'node_modules', 'half'), { recursive: true })
    await mkdir(join(root, 'dist', 'cli'), { recursive: true })
    await writeFile(join(root, 'dist', 'cli', 'main.js'), 'half')
    const ended = await run(root, 'start.mjs')
    expect(ended.code).toBe(0)
    expect(await readdir(join(root, 'node_modules'))).not.toContain('half')
    expect(await readdir(join(root, 'dist'))).not.toContain('half')
    expect(await readdir(root)).not.toContain('.cache')
  })
})

test('an old Node is refused by its version', async () => {
  const module = (await import(setUpModule)) as {
    checkNodeVersion(version: string): void
  }
  for (const version of ['18.20.4', '20.19.9', '6.0.0']) {
    expect(() => {
      module.checkNodeVersion(version)
    }).toThrow(`needs Node 20.20 or newer; this is Node ${version}`)
  }
  for (const version of ['20.20.0', '20.21.3', '22.0.0', '100.1.0']) {
    module.checkNodeVersion(version)
  }
})
