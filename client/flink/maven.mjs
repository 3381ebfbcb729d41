// Builds and tests the Flink plugin with Maven, one Flink line after another.
//
//     node client/flink/maven.mjs build [--line 1.20|2.2|2.3]
//     node client/flink/maven.mjs test [--line 1.20|2.2|2.3] [--quick | --ci | --only WordCountIT,…]
//     node client/flink/maven.mjs bench [--line 1.20|2.2|2.3] [--quick]
//     node client/flink/maven.mjs wire
//
// Without --line all lines; bench: 2.2. Jars end up in client/flink/target. --quick runs what is
// tagged so; --ci runs what that leaves, with fewer jobs in a row. Maven is ended when a line takes
// longer than an hour and a half. `wire` is for npm test: it runs the
// wire tests on the first line whose libraries Maven has, downloads nothing, and says so in one line
// when it can't run them.

import { spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const folder = dirname(fileURLToPath(import.meta.url))
const allLines = ['1.20', '2.2', '2.3']
const benchLine = '2.2'
const lineTimeoutMs = 90 * 60_000

function main() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      line: { type: 'string' },
      quick: { type: 'boolean', default: false },
      ci: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  })
  const [goal] = positionals
  if (!['build', 'test', 'bench', 'wire'].includes(goal)) {
    fail('say build, test, bench or wire')
  }
  if (goal === 'wire') {
    runWireTests()
    return
  }
  if (values.line !== undefined && !allLines.includes(values.line)) {
    fail(`there is no line ${values.line}; the lines are ${allLines.join(', ')}`)
  }
  const defaultLines = goal === 'bench' ? [benchLine] : allLines
  const lines = values.line === undefined ? defaultLines : [values.line]
  const failed = lines.filter((line) => !run(goal, line, values))
  if (failed.length > 0) fail(`${goal} failed for Flink ${failed.join(', ')}`)
}

function run(goal, line, values) {
  const began = Date.now()
  const { status, error } = spawnSync(
    'mvn',
    ['-q', '-B', '-ntp', '-P', `flink-${line}`, ...goalsOf(goal, values)],
    {
      cwd: folder,
      stdio: 'inherit',
      timeout: lineTimeoutMs,
      killSignal: 'SIGKILL',
    },
  )
  if (error !== undefined) fail(`mvn can't be run: ${error.message}`)
  const isDone = status === 0
  if (isDone && goal === 'build') copyJar(line)
  const seconds = Math.round((Date.now() - began) / 1000)
  process.stdout.write(`Flink ${line}: ${goal} ${isDone ? 'ok' : 'FAILED'} after ${seconds} s\n`)
  return isDone
}

/** What Maven says of something that is not on this machine, or of us; the first that fits counts. */
const lacks = [
  [/No compiler is provided|JAVA_HOME/, 'a JDK'],
  [/There are test failures|COMPILATION ERROR/, undefined],
  [
    /offline mode|has not been downloaded|Could not (resolve|find)|was not found in/,
    "the plugin's libraries, which npm run test:flink fetches",
  ],
]

/** For a JVM of a few seconds. */
const shortLived = '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'

function runWireTests() {
  let lacking = 'Maven'
  for (const line of allLines) {
    const { status, error, stdout, stderr } = spawnSync(
      'mvn',
      ['-o', '-B', '-ntp', '-P', `flink-${line},wire`, 'test'],
      { cwd: folder, encoding: 'utf8', env: { ...process.env, MAVEN_OPTS: shortLived } },
    )
    if (error?.code === 'ENOENT') break
    if (error !== undefined) fail(`mvn can't be run: ${error.message}`)
    if (status === 0) {
      process.stdout.write(`Java wire tests: ${countTests(line)} passed, with Flink ${line}\n`)
      return
    }
    const said = `${stdout}${stderr}`
    const lack = lacks.find(([words]) => words.test(said))?.[1]
    if (lack === undefined) fail(`the Java wire tests failed with Flink ${line}:\n${said}`)
    lacking = lack
  }
  process.stdout.write(`Java wire tests: not run, for want of ${lacking}\n`)
}

/** By the reports; there must be some. */
function countTests(line) {
  const reports = join(folder, 'target', `wire-${line}`, 'surefire-reports')
  let count = 0
  for (const name of readdirSync(reports).filter((file) => file.endsWith('.xml'))) {
    count += Number(
      /<testsuite [^>]*\btests="(\d+)"/.exec(readFileSync(join(reports, name), 'utf8'))[1],
    )
  }
  if (count === 0) fail(`no Java wire test ran with Flink ${line}`)
  return count
}

function goalsOf(goal, { quick, ci, only }) {
  if (goal === 'build') return ['package', '-DskipTests']
  const withoutUnitTests = '-Dunit.tests.skipped=true'
  if (goal === 'bench') {
    const size = quick ? ['-Dbench.rounds=2', '-Dbench.orders=50000'] : []
    return ['verify', '-Dit.test=ShuffleBench', withoutUnitTests, ...size]
  }
  if (only !== undefined) return ['verify', `-Dit.test=${only}`, withoutUnitTests]
  if (quick) return ['verify', '-Dit.groups=quick']
  if (ci) return ['verify', '-Dit.groups.excluded=quick', '-Dsluice.jobs=30', withoutUnitTests]
  return ['verify']
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
