// `sluice sort` against `LC_ALL=C sort`, on a cluster of processes. A hundredth of the size by
// default; SLUICE_TEST_SCALE=100 runs the full sizes (`npm run test:large`).

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sluice, TestCluster } from '../support/cluster.ts'
import { writeBinaryLines, writeSkewedLines, writeTextLines } from '../support/line-data.ts'

const scale = Number(process.env['SLUICE_TEST_SCALE'] ?? '1')
const megabyte = 1_000_000
/** Bytes of one task process beyond the task memory: the engine, the libraries and their code. */
const processAllowanceBytes = 150 * 1024 * 1024
const taskMemoryBytes = 64 * 1024 * 1024
const workerPoolBytes = 64 * 1024 * 1024
const runTimeoutMs = scale === 1 ? 120_000 : 1_800_000

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sluice-sort-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true, force: true })
})

interface SortSummary {
  readonly inputBytes: number
  readonly outputBytes: number
  readonly producerAttempts: number
  readonly taskProcesses: readonly { readonly peakMemoryBytes: number }[]
  readonly workers: {
    readonly takenBytes: number
    readonly takenUncompressedBytes: number
    readonly givenBytes: number
  }
}

async function sort(options: readonly string[]): Promise<SortSummary> {
  const run = await sluice([
    'sort',
    '--input',
    join(directory, 'input'),
    '--output',
    join(directory, 'output'),
    '--json',
    ...options,
  ])
  expect(run.code, run.stderr.slice(-4000)).toBe(0)
  return JSON.parse(run.stdout) as SortSummary
}

async function digest(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

/** Compares the output with what the system's sort makes of the input. */
async function expectSorted(): Promise<void> {
  const expected = join(directory, 'expected')
  execFileSync('sort', ['-o', expected, '-T', directory, join(directory, 'input')], {
    env: { ...process.env, LC_ALL: 'C' },
  })
  expect(await digest(join(directory, 'output'))).toBe(await digest(expected))
}

/** Every byte of the input went into the workers and came out again. */
function expectShuffled(summary: SortSummary): void {
  expect(summary.workers.takenUncompressedBytes).toBeGreaterThanOrEqual(summary.inputBytes)
  expect(summary.workers.givenBytes).toBeGreaterThanOrEqual(summary.workers.takenBytes)
}

/** The most that a process has had resident, from the system. */
function peakMemoryBytes(pid: number): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8')
  return Number(/VmHWM:\s*(\d+) kB/.exec(status)?.[1]) * 1024
}

function expectSmallProcesses(summary: SortSummary): void {
  for (const { peakMemoryBytes } of summary.taskProcesses) {
    expect(peakMemoryBytes).toBeGreaterThan(0)
    expect(peakMemoryBytes).toBeLessThan(taskMemoryBytes + processAllowanceBytes)
  }
}

describe('sluice sort makes what LC_ALL=C sort makes', { timeout: runTimeoutMs }, () => {
  it('of text by eight maps and eight reduces, in bounded memory', async () => {
    writeTextLines({
      path: join(directory, 'input'),
      sizeBytes: 10 * megabyte * scale,
      seed: 1,
    })
    await using cluster = await TestCluster.start({ workers: 2 })
    const summary = await sort([
      '--manager',
      cluster.managerUrl,
      '--maps=8',
      '--reduces=8',
      '--task-memory=64mb',
      '--slots=1',
    ])
    await expectSorted()
    expectShuffled(summary)
    expectSmallProcesses(summary)
    expect(summary.producerAttempts).toBe(8)
    for (const { run } of cluster.workers) {
      const peakBytes = peakMemoryBytes(run?.pid ?? 0)
      expect(peakBytes).toBeLessThan(workerPoolBytes + 100 * 1024 * 1024)
      process.stdout.write(`worker: ${(peakBytes / 1048576).toFixed(1)} MiB at most\n`)
    }
  })

  it('of random bytes with empty lines, long lines and no newline at the end', async () => {
    writeBinaryLines(
      { path: join(directory, 'input'), sizeBytes: 3 * megabyte * scale, seed: 2 },
      300_000,
    )
    const summary = await sort(['--maps=8', '--reduces=8'])
    await expectSorted()
    expectShuffled(summary)
  })

  it('of an empty file', async () => {
    writeFileSync(join(directory, 'input'), '')
    const summary = await sort([])
    await expectSorted()
    expect(summary.outputBytes).toBe(0)
  })

  it('of one line without a newline', async () => {
    writeFileSync(join(directory, 'input'), 'no newline')
    await sort(['--maps=3', '--reduces=5'])
    await expectSorted()
  })

  it('of many small tasks', async () => {
    writeTextLines({ path: join(directory, 'input'), sizeBytes: megabyte * scale, seed: 3 })
    const count = String(scale === 1 ? 20 : 200)
    const summary = await sort([`--maps=${count}`, `--reduces=${count}`])
    await expectSorted()
    expectShuffled(summary)
  })

  it('of one key with nine records in ten, in bounded memory', async () => {
    writeSkewedLines({
      path: join(directory, 'input'),
      sizeBytes: 10 * megabyte * scale,
      seed: 4,
    })
    const summary = await sort(['--maps=8', '--reduces=8', '--task-memory=64mb', '--slots=1'])
    await expectSorted()
    expectShuffled(summary)
    expectSmallProcesses(summary)
  })

  it('of data that spills, because the task memory is far smaller than a task’s share', async () => {
    writeTextLines({ path: join(directory, 'input'), sizeBytes: 20 * megabyte, seed: 5 })
    await sort(['--maps=2', '--reduces=1', '--task-memory=2mb'])
    await expectSorted()
  })
})
