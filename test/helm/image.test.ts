// The image: what hadolint says of its Dockerfile, and both roles run from it, as its user, with its
// root read-only.

import { mkdirSync, mkdtempSync, chownSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../support/cluster.ts'
import type { ChildRun } from '../support/cluster.ts'
import { run, toolPath } from '../support/deploy/chart-tools.ts'
import { parseDockerfile, textOf } from '../support/deploy/dockerfile.ts'
import { exposedPorts, Image } from '../support/deploy/image.ts'
import { projectRoot, readText } from '../support/source-tree.ts'

const dockerfile = parseDockerfile(readText('Dockerfile'))
const last = dockerfile.at(-1)!

test('hadolint has nothing to say', async () => {
  const hadolint = join(toolPath('python-kubernetes-'), 'bin/hadolint')
  const outcome = await run(hadolint, [join(projectRoot, 'Dockerfile')])
  expect(outcome).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('the image runs as nobody special, on ports that are the services’', () => {
  expect(textOf(last, 'USER')).toMatch(/^[1-9]\d{3,}:[1-9]\d{3,}$/)
  expect(exposedPorts()).toEqual([9700, 9710, 9711])
  expect(textOf(last, 'STOPSIGNAL')).toBe('SIGTERM')
})

test('the jars of every line of Flink are copied, by the names that Maven gives them', () => {
  const lines = [...readText('client/flink/pom.xml').matchAll(/<id>flink-([\d.]+)<\/id>/g)]
  const flink = dockerfile.find(({ name }) => name === 'flink')!
  const text = textOf(flink, 'RUN')
  expect(lines.length).toBeGreaterThan(0)
  expect(/for line in ([\d. ]+);/.exec(text)?.[1]?.trim().split(' ')).toEqual(
    lines.map(([, line]) => line),
  )
  expect(readText('client/flink/pom.xml')).toContain('<finalName>sluice-flink-')
  expect(text).toContain('target/*/sluice-flink-*.jar')
})

describe('built', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-image-'))
  const running: ChildRun[] = []
  let image: Image

  beforeAll(async () => {
    image = await Image.build(directory)
  }, 600_000)

  afterAll(async () => {
    await Promise.all(running.map((one) => one.kill('SIGKILL')))
    await image.remove()
  })

  function volume(name: string): string {
    const path = join(directory, name)
    mkdirSync(path)
    chownSync(path, 10001, 10001)
    return path
  }

  test('says its version, and cannot write to its root', async () => {
    const { version } = JSON.parse(readText('package.json')) as { version: string }
    const said = await image.start(['--version']).finished
    expect(said).toMatchObject({ code: 0, stdout: `sluice ${version}\n` })
    const wrote = await image.run(['sh', '-c', 'id -u && touch /opt/sluice/file']).finished
    expect(wrote.code).not.toBe(0)
    expect(wrote.stdout).toBe('10001\n')
    expect(wrote.stderr).toContain('Read-only file system')
  })

  test('has the dependencies that it needs and no compiler', async () => {
    const { stdout } = await image.run(['sh', '-c', 'cd /opt/sluice && ls node_modules flink dist'])
      .finished
    expect(stdout).toContain('fastify')
    expect(stdout).not.toMatch(/^(typescript|vitest|eslint)$/m)
  })

  test('runs both roles until their probes answer, is healthy, and stops on SIGTERM', async () => {
    expect(await image.isHealthy()).toBe(false)
    const manager = image.start(['manager', '--settle-time', '100ms'], {
      [volume('state')]: '/var/lib/sluice',
    })
    running.push(manager)
    const worker = image.start(['worker', '--data-directories', '/data/disk'], {
      [volume('data')]: '/data',
    })
    running.push(worker)
    for (const port of [9700, 9711]) {
      await until(`${String(port)} is ready`, async () => {
        const ended = [manager, worker].find((one) => !one.isRunning)
        if (ended !== undefined) throw new Error(ended.stderr)
        return (await image.request(`http://127.0.0.1:${String(port)}/readyz`)) === 200
      })
    }
    expect(await image.isHealthy()).toBe(true)
    expect((await worker.kill('SIGTERM')).code).toBe(0)
    expect((await manager.kill('SIGTERM')).code).toBe(0)
  })
})
