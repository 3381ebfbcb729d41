// The program behind `npm run simulate`: seeds, planted faults, or every point of the fixed scripts.
// Prints what it reached; exits with 1 when something was found.

import './shared-validators.ts'
import { parseArgs } from 'node:util'
import { runBatch, serveParts, type BatchTotals, type FailedSeed } from './batch.ts'
import { everyPoint, scripts } from './every-point.ts'
import { huntAll, quickMutants } from './mutant-hunt.ts'
import { mutants } from './mutants.ts'
import { simulate } from './simulation.ts'
import { readReports, reportOf, sumLines, totalLines, writeReport } from './totals.ts'

const { values, positionals } = parseArgs({
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

const first = Number(values.seed)
const count = Number(values.count)
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
  if (values['every-point']) return runEveryPoint(Number(values.step), Number(values.offset))
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
    jobs: Number(values.jobs),
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

async function runEveryPoint(step: number, offset: number): Promise<boolean> {
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
