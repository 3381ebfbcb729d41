// The `sluice` command against a cluster of processes: what people and scripts see.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EmbeddedClient } from '../support/embedded-client.ts'
import { sluice, startSluice, TestCluster, until } from '../support/cluster.ts'

let cluster: TestCluster
let client: EmbeddedClient
beforeAll(async () => {
  cluster = await TestCluster.start({ workers: 2 })
  client = await EmbeddedClient.start({ managerUrl: cluster.managerUrl, jobId: 'seen-by-people' })
  for (const index of [0, 1, 2]) {
    await client.write(await client.allocate(index, 2), [['left'], ['right']])
  }
})
afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster.stop()
})

async function json(...args: string[]): Promise<unknown> {
  const run = await sluice([...args, '--manager', cluster.managerUrl, '--json'])
  expect(run.code, run.stderr).toBe(0)
  return JSON.parse(run.stdout)
}

async function text(...args: string[]): Promise<string> {
  const run = await sluice([...args, '--manager', cluster.managerUrl])
  expect(run.code, run.stderr).toBe(0)
  return run.stdout
}

describe('the commands that show a cluster', () => {
  it('status, workers, jobs and partitions speak to people', async () => {
    expect(await text('status')).toMatch(/2/)
    expect(await text('workers')).toContain(String(cluster.worker(0).ready?.workerId))
    expect(await text('jobs')).toMatch(/seen-by-people/)
    const lines = (await text('partitions', 'seen-by-people')).trim().split('\n')
    expect(lines.filter((line) => line.includes('committed'))).toHaveLength(3)
  })

  it('the same as JSON', async () => {
    expect(JSON.stringify(await json('status'))).toMatch(/\d/)
    expect(JSON.stringify(await json('workers'))).toContain(cluster.worker(1).ready?.workerId)
    expect(JSON.stringify(await json('jobs'))).toContain('seen-by-people')
    expect(JSON.stringify(await json('partitions', 'seen-by-people'))).toContain('committed')
  })

  it('release gives back all that a job holds', async () => {
    await using other = await EmbeddedClient.start({
      managerUrl: cluster.managerUrl,
      jobId: 'to-release',
    })
    await other.write(await other.allocate(0, 1), [['x']])
    await text('release', 'to-release')
    await until('the job is gone', async () => !(await text('jobs')).includes('to-release'))
  })

  it('a job that nobody knows is an error by name', async () => {
    const run = await sluice(['partitions', 'no-such-job', '--manager', cluster.managerUrl])
    expect(run.code).not.toBe(0)
    expect(run.stderr).toMatch(/no-such-job/)
  })

  it('a manager that is not there is an error that names its address', async () => {
    const run = await sluice(['status', '--manager', 'http://127.0.0.1:9'])
    expect(run.code).not.toBe(0)
    expect(run.stderr).toMatch(/127\.0\.0\.1:9/)
  })
})

describe('help and options', () => {
  const commands = ['local', 'manager', 'worker', 'sort', 'word-count', 'status', 'jobs', 'workers']

  it('every command explains itself', async () => {
    for (const command of commands) {
      const run = await sluice([command, '--help'])
      expect(run.code, run.stderr).toBe(0)
      expect(run.stdout).toMatch(/^Usage: sluice/)
      expect(run.stdout, command).toMatch(/Options:\n {2}--/)
    }
  })

  it('an unknown command and an unknown option are refused by name, with what was meant', async () => {
    const command = await sluice(['wrokers'])
    expect(command.code).not.toBe(0)
    expect(command.stderr).toMatch(/wrokers.*workers/s)
    const option = await sluice(['worker', '--data-prot=1'])
    expect(option.code).not.toBe(0)
    expect(option.stderr).toMatch(/--data-prot.*--data-port/s)
  })

  it('bad values are refused with what is allowed', async () => {
    for (const [args, names] of [
      [['worker', '--data-directories=/tmp/x', '--data-port=99999'], /data-port.*65535.*99999/s],
      [['worker', '--data-directories=/tmp/x', '--memory=lots'], /memory.*lots/s],
      [['worker'], /data-directories/],
      [['sort', '--input=/nonexistent/x', '--output=/tmp/y'], /\/nonexistent\/x/],
    ] as const) {
      const run = await sluice(args)
      expect(run.code, args.join(' ')).not.toBe(0)
      expect(run.stderr).toMatch(names)
      expect(run.stderr).not.toMatch(/\n\s+at /)
    }
  })

  it('print-config says where each value came from', async () => {
    const config = join(cluster.directory, 'config.yaml')
    writeFileSync(config, 'remote-shuffle.worker.memory: 128mb\n')
    const run = await sluice(
      ['worker', '--config', config, '--print-config', '--data-port=1234', '--data-directories=/x'],
      { env: { SLUICE_WORKER_HTTP_PORT: '4321' } },
    )
    expect(run.code, run.stderr).toBe(0)
    expect(run.stdout).toMatch(/memory.*128mb.*config\.yaml/)
    expect(run.stdout).toMatch(/data-port: 1234 # --data-port/)
    expect(run.stdout).toMatch(/http-port.*4321.*SLUICE_WORKER_HTTP_PORT/)
    expect(run.stdout).toMatch(/durability.*none.*default/)
  })
})

describe('jobs of the command line', () => {
  it('a line longer than the task memory is an error that names the line', async () => {
    const input = join(cluster.directory, 'long-line')
    writeFileSync(input, Buffer.concat([Buffer.from('a\nb\n'), Buffer.alloc(3 << 20, 'x')]))
    const run = await sluice([
      'sort',
      `--input=${input}`,
      `--output=${input}.out`,
      '--task-memory=2mb',
      '--manager',
      cluster.managerUrl,
    ])
    expect(run.code).not.toBe(0)
    expect(run.stderr).toMatch(/line 3\b/)
    expect(run.stderr).toContain(input)
    expect(() => readFileSync(`${input}.out`)).toThrow(/ENOENT/)
  })

  it('word-count makes sorted lines of words and counts', async () => {
    const input = join(cluster.directory, 'words')
    writeFileSync(input, 'b a\tb\n\fc\v\xe4 a b\r\n\n', 'latin1')
    const run = await sluice([
      'word-count',
      `--input=${input}`,
      `--output=${input}.out`,
      '--maps=3',
      '--reduces=2',
      '--manager',
      cluster.managerUrl,
    ])
    expect(run.code, run.stderr).toBe(0)
    expect(readFileSync(`${input}.out`, 'latin1')).toBe('a\t2\nb\t3\nc\t1\n\xe4\t1\n')
  })

  it('local starts a cluster, says how to use it, and ends with Ctrl-C', async () => {
    const run = startSluice(['local', '--workers=2', '--free-ports'])
    await until('it tells of a manager', () => /http:\/\/127\.0\.0\.1:\d+/.test(run.stdout))
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(run.stdout)?.[0] ?? ''
    await until('both workers are there', async () => {
      const workers = await sluice(['workers', '--manager', url, '--json'])
      return workers.code === 0 && workers.stdout.split('"workerId"').length - 1 === 2
    })
    const ended = await run.kill('SIGINT')
    expect(ended.code).toBe(130)
    await expect(fetch(`${url}/healthz`)).rejects.toThrow()
  })
})
