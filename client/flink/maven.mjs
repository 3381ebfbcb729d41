// Builds and tests the Flink plugin with Maven, one Flink line after another.
//
//     node client/flink/maven.mjs build [--line 1.20|2.2|2.3]
//     node client/flink/maven.mjs test [--line 1.20|2.2|2.3] [--quick] [--only WordCountIT,…]
//
// Without --line all lines. Jars end up in client/flink/target.

import { spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const folder = dirname(fileURLToPath(import.meta.url))
const allLines = ['1.20', '2.2', '2.3']

function main() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      line: { type: 'string' },
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  })
  const [goal] = positionals
  if (goal !== 'build' && goal !== 'test') fail('say build or test')
  if (values.line !== undefined && !allLines.includes(values.line)) {
    fail(`there is no line ${values.line}; the lines are ${allLines.join(', ')}`)
  }
  const lines = values.line === undefined ? allLines : [values.line]
  const failed = lines.filter((line) => !run(goal, line, values))
  if (failed.length > 0) fail(`${goal} failed for Flink ${failed.join(', ')}`)
}

function run(goal, line, { quick, only }) {
  const began = Date.now()
  const goals =
    goal === 'build'
      ? ['package', '-DskipTests']
      : [
          'verify',
          ...(quick ? ['-Dit.groups=quick'] : []),
          ...(only === undefined ? [] : [`-Dit.test=${only}`, '-Dunit.tests.skipped=true']),
        ]
  const { status, error } = spawnSync(
    'mvn',
    ['-q', '-B', '-ntp', '-P', `flink-${line}`, ...goals],
    {
      cwd: folder,
      stdio: 'inherit',
    },
  )
  if (error !== undefined) fail(`mvn can't be run: ${error.message}`)
  const isDone = status === 0
  if (isDone && goal === 'build') copyJar(line)
  const seconds = Math.round((Date.now() - began) / 1000)
  process.stdout.write(`Flink ${line}: ${goal} ${isDone ? 'ok' : 'FAILED'} after ${seconds} s\n`)
  return isDone
}

function copyJar(line) {
  const built = join(folder, 'target', line)
  for (const name of readdirSync(built).filter((file) => file.endsWith('.jar'))) {
    copyFileSync(join(built, name), join(folder, 'target', name))
    process.stdout.write(`client/flink/target/${name}\n`)
  }
}

function fail(message) {
  process.stderr.write(`client/flink/maven.mjs: ${message}\n`)
  process.exit(1)
}

main()
