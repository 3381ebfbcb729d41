// `npm start` with no arguments: right, and nothing is left of it whatever ends it.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ChildRun, repositoryRoot, until } from '../support/cluster.ts'

let temporary = ''
let mark = ''
let run: ChildRun | undefined
beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'sluice-main-job-'))
  mark = `SLUICE_TEST_MARK=${temporary}`
})
afterEach(async () => {
  for (const id of markedProcesses()) process.kill(id, 'SIGKILL')
  await run?.kill()
  rmSync(temporary, { recursive: true, force: true })
})

/** Processes that inherited the mark of this test: all that `npm start` started. */
function markedProcesses(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/environ`, 'latin1').split('\0').includes(mark)
      } catch {
        return false
      }
    })
    .map(Number)
}

function npmStart(): ChildRun {
  run = new ChildRun('npm', ['start'], {
    cwd: repositoryRoot,
    env: { SLUICE_TEST_MARK: temporary, TMPDIR: temporary },
  })
  return run
}

async function expectNothingLeft(): Promise<void> {
  await until('no process is left', () => markedProcesses().length === 0)
  await until('no temporary file is left', () => ownFiles().length === 0)
}

/** npm and the compile cache of Node keep files of their own there. */
function ownFiles(): readonly string[] {
  return readdirSync(temporary).filter((name) => name.startsWith('sluice'))
}

describe('npm start', { timeout: 180_000 }, () => {
  it('counts real words, compares, shows what was shuffled and leaves nothing', async () => {
    const finished = await npmStart().finished
    expect(finished.code, finished.stderr.slice(-4000)).toBe(0)
    expect(finished.stdout).toMatch(/Both agree on \d+ distinct words/)
    expect(finished.stdout).toMatch(/shuffled\s+[1-9][\d.]* MiB/)
    await expectNothingLeft()
  })

  for (const [signal, whom] of [
    ['SIGINT', 'npm and what it started'],
    ['SIGTERM', 'npm'],
    ['SIGKILL', 'npm'],
  ] as const) {
    it(`leaves nothing when ${signal} reaches ${whom} in the middle`, async () => {
      const started = npmStart()
      await until('the job runs', () => started.stdout.includes('Counting the words'))
      if (signal === 'SIGINT') for (const id of markedProcesses()) process.kill(id, signal)
      else started.child.kill(signal)
      await started.finished
      await expectNothingLeft()
    })
  }

  it('leaves nothing when the program itself is killed', async () => {
    const started = npmStart()
    await until('the job runs', () => started.stdout.includes('Counting the words'))
    const main = markedProcesses().find((id) =>
      readFileSync(`/proc/${String(id)}/cmdline`, 'latin1').includes('cli/start.mjs'),
    )
    if (main === undefined) throw new Error('the program runs')
    process.kill(main, 'SIGKILL')
    expect((await started.finished).code).not.toBe(0)
    await expectNothingLeft()
  })
})
