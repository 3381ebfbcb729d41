import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const script = join(import.meta.dirname, '../../../client/flink/maven.mjs')

function run(goals: string[], path = process.env['PATH']) {
  return spawnSync(process.execPath, [script, ...goals], {
    encoding: 'utf8',
    env: { ...process.env, PATH: path },
  })
}

describe('the Java wire tests', () => {
  it('pass where a JDK, Maven and the libraries are at hand; else a line says why they were not run', () => {
    const { status, stdout, stderr } = run(['wire'])
    process.stdout.write(stdout)
    expect(stderr).toBe('')
    expect(status).toBe(0)
    expect(stdout).toMatch(/^Java wire tests: (\d+ passed, with Flink|not run, for want of) .+\n$/)
  })
})

describe('with a Maven that answers as the test says', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-maven-'))
  })
  afterEach(() => {
    rmSync(folder, { recursive: true })
  })

  /** Answers every call with these words and this status. */
  function maven(words: string, status: number) {
    const lines = ['#!/bin/sh', `echo '${words}'`, `exit ${String(status)}`, '']
    writeFileSync(join(folder, 'mvn'), lines.join('\n'), { mode: 0o755 })
    return [folder, '/usr/bin', '/bin'].join(delimiter)
  }

  it.each([
    ['Cannot access central in offline mode', 'libraries'],
    ['Plugin org.x:y:1 has not been downloaded from it before', 'libraries'],
    ['COMPILATION ERROR : No compiler is provided in this environment', 'a JDK'],
    ['The JAVA_HOME environment variable is not defined correctly', 'a JDK'],
  ])('"%s" is a want of %s, and no failure', (words, want) => {
    const { status, stdout } = run(['wire'], maven(words, 1))
    expect(status).toBe(0)
    expect(stdout).toContain('not run, for want of')
    expect(stdout).toContain(want)
  })

  it('what else goes wrong fails, with the words of Maven', () => {
    for (const words of ['Could not find it. There are test failures.', 'COMPILATION ERROR']) {
      const { status, stderr } = run(['wire'], maven(words, 1))
      expect(status).toBe(1)
      expect(stderr).toContain(words)
    }
  })

  it('a want of Maven is no failure of the wire tests, but one of the other goals', () => {
    const nowhere = dirname(folder) + '/no-such-folder'
    expect(run(['wire'], nowhere).stdout).toBe('Java wire tests: not run, for want of Maven\n')
    const built = run(['build', '--line', '2.2'], nowhere)
    expect(built.status).toBe(1)
    expect(built.stderr).toContain("mvn can't be run")
  })

  it('a line or a goal that there is not is refused by name', () => {
    const path = maven('', 0)
    expect(run(['test', '--line', '1.7'], path).stderr).toContain('there is no line 1.7')
    expect(run(['dance'], path).stderr).toContain('say build, test, bench or wire')
  })

  it('every line is tested, and what fails is named', () => {
    const { status, stdout, stderr } = run(['test', '--quick'], maven('', 1))
    expect(status).toBe(1)
    for (const line of ['1.20', '2.2', '2.3']) {
      expect(stdout).toContain(`Flink ${line}: test FAILED`)
      expect(stderr).toContain(line)
    }
  })
})
