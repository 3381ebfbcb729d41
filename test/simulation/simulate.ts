// The program behind `npm run simulate`: seeds, planted faults, or every point of the fixed scripts.
// Prints what it reached; exits with 1 when something was found.

import './shared-validators.ts'
import { Arguments } from '../support/arguments.ts'
import { runBatch, serveParts, type BatchTotals, type FailedSeed } from './batch.ts'
import { everyPoint, scripts } from './every-point.ts'
import { huntAll, quickMutants } from './mutant-hunt.ts'
import { mutants } from './mutants.ts'
import { simulate } from './simulation.ts'
import { readReports, reportOf, sumLines, totalLines, writeReport } from './totals.ts'

const usage = `npm run simulate -- [options]

  --seed N            the first seed (1)
  --count K           so many seeds from there on (1)
  --jobs J            in so many processes (1)
  --keep-going        goes on after a seed that fails
  --calm              no faults
  --trace             the story of one seed; of many how far it is
  --verbose           each message too
  --report FILE       keeps the totals as JSON, also while it runs
  --sum FILE...       adds up such files
  --mutants           hunts the planted faults, each within 2,000 seeds or --count; --only-quick: some
  --mutant NAME       one of them
  --every-point       every point of the fixed scripts; --step S every S-th, from --offset O on

Exits with 1 when something was found, with 2 where the arguments are wrong.`

const commandLine = new Arguments(usage)
const { values, positionals } = commandLine.parse({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    'only-quick': { type: 'boolean', default: false },
    'every-point': { type: 'boolean', default: false },
    step: { type: 'string', default: '1' },
    offset: { type: 'string', default: '0' },
    report: { type: 'string' },
    sum: { type: 'boolean', default: false },
    'serve-parts': { type: 'boolean', default: false },
  },
})

const first = commandLine.count('seed', values.seed, 0)
const count = commandLine.count('count', values.count, 1)
const jobs = commandLine.count('jobs', values.jobs, 1)
const step = commandLine.count('step', values.step, 1)
const offset = commandLine.count('offset', values.offset, 0)
if (values.sum !== positionals.length > 0) {
  commandLine.refuse('files are named with --sum, and only then')
}
if (values.mutant !== undefined && !mutants.some(({ name }) => name === values.mutant)) {
  commandLine.refuse(
    `there is no planted fault ${values.mutant}; there are ${mutants.map(({ name }) => name).join(', ')}`,
  )
}
/** Errors are made by the thousand in each seed; where they were made is wanted of one seed alone. */
const isHunt = values.mutants || values.mutant !== undefined
const isOneSeed = count === 1 && !isHunt && !values['every-point'] && !values['serve-parts']
if (!isOneSeed) Error.stackTraceLimit = 0

process.exit((await run()) ? 0 : 1)

async function run(): Promise<boolean> {
  if (values['serve-parts']) {
    await serveParts()
    return true
  }
  if (values.sum) {
    for (const line of sumLines(await readReports(positionals))) print(line)
    return true
  }
  if (values['every-point']) return runEveryPoint()
  if (isHunt) return runMutants()
  return isOneSeed ? runOne() : runMany()
}

async function runOne(): Promise<boolean> {
  const isTold = values.trace || values.verbose
  const result = await simulate(first, {
    isCalm: values.calm,
    isVerbose: values.verbose,
    ...(isTold ? { onEvent: print } : {}),
  })
  print(`seed ${String(first)}: trace ${result.digest}`)
  if (result.findings.length > 0) report(result, isTold ? 0 : 60)
  return result.findings.length === 0
}

async function runMany(): Promise<boolean> {
  const startedMs = performance.now()
  const failures: Omit<FailedSeed, 'events'>[] = []
  const madeOf = (totals: BatchTotals) => {
    const minutes = (performance.now() - startedMs) / 60_000
    return reportOf(totals, { first, minutes, failures })
  }
  const totals = await runBatch({
    first,
    count,
    jobs,
    isCalm: values.calm,
    keepsGoing: values['keep-going'],
    onFailure: (failure) => {
      failures.push({ seed: failure.seed, findings: failure.findings.slice(0, 5) })
      report(failure, values['keep-going'] ? 0 : 60)
    },
    onProgress: (soFar) => {
      if (values.report !== undefined) writeReport(values.report, madeOf(soFar))
      if (!values.trace) return
      const { doneCount, processorSeconds } = soFar
      print(`${String(doneCount)} seeds done in ${processorSeconds.toFixed(1)} processor seconds`)
    },
  })
  for (const line of totalLines([madeOf(totals)])) print(line)
  return totals.failedCount === 0
}

function report(failure: FailedSeed, eventCount: number): void {
  print(`seed ${String(failure.seed)} FAILED`)
  if (eventCount > 0) for (const line of failure.events.slice(-eventCount)) print(`  ${line}`)
  for (const finding of failure.findings.slice(0, 5)) print(`  finding: ${finding.slice(0, 1500)}`)
}

async function runMutants(): Promise<boolean> {
  const isOnlyQuick = values['only-quick']
  const wanted = mutants.filter(({ name }) => {
    if (isOnlyQuick) return quickMutants.includes(name)
    return values.mutant === undefined || name === values.mutant
  })
  return huntAll(wanted, { first, count: count === 1 ? 2000 : count, print })
}

async function runEveryPoint(): Promise<boolean> {
  let pointCount = 0
  let failedCount = 0
  for (const script of scripts) {
    const before = pointCount
    for await (const { point, findings } of everyPoint(script, { step, offset })) {
      pointCount += 1
      if (findings.length === 0) continue
      failedCount += 1
      print(`${point} FAILED: ${findings[0]?.slice(0, 400) ?? ''}`)
    }
    print(`${script.name}: ${String(pointCount - before)} points`)
  }
  print(`${String(pointCount)} points, ${String(failedCount)} failed`)
  return failedCount === 0
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
