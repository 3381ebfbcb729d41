// What many seeds came to, as a file: parts that ran at different times, or on different machines, sum
// up to one print.

import { renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Coverage, type CoverageParts } from './coverage.ts'
import { figureNames, type BatchTotals, type FailedSeed, type Sums } from './batch.ts'

/** The JSON of one part. */
export interface PartReport {
  readonly first: number
  readonly doneCount: number
  readonly failedCount: number
  readonly minutes: number
  readonly processorSeconds: number
  readonly sums: Sums
  readonly coverage: CoverageParts
  readonly failures: readonly Omit<FailedSeed, 'events'>[]
}

/** What the faults were worth: an average seed must have so much of each. */
const averagesMin: Partial<Record<(typeof figureNames)[number], number>> = {
  jobs: 2,
  records: 2_000,
  partitions: 3,
  messages: 200,
  faultsHit: 3,
  faultsAfterCommit: 1,
}

/** Again and again while the part runs: what is stopped has counted for what it did. */
export function writeReport(path: string, report: PartReport): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(report)}\n`)
  renameSync(`${path}.new`, path)
}

export async function readReports(paths: readonly string[]): Promise<readonly PartReport[]> {
  const reports = await Promise.all(
    paths.map(async (path) => JSON.parse(await readFile(path, 'utf8')) as PartReport),
  )
  return reports.sort((a, b) => a.first - b.first)
}

export function reportOf(
  totals: BatchTotals,
  facts: Pick<PartReport, 'first' | 'minutes' | 'failures'>,
): PartReport {
  const { doneCount, failedCount, sums, coverage, processorSeconds } = totals
  return { ...facts, doneCount, failedCount, sums, processorSeconds, coverage: coverage.parts() }
}

/** For people: one line for each part, then the whole. */
export function* sumLines(reports: readonly PartReport[]): Generator<string, void> {
  for (const report of reports) {
    yield headLine(report, `${String(report.doneCount)} seeds from ${String(report.first)} on`)
    for (const { seed, findings } of report.failures) {
      yield `  seed ${String(seed)}: ${findings[0]?.slice(0, 300) ?? ''}`
    }
  }
  yield* totalLines(reports)
}

/** Averages and coverage. */
export function* totalLines(reports: readonly PartReport[]): Generator<string, void> {
  const coverage = new Coverage()
  const sums = Object.fromEntries(figureNames.map((name) => [name, 0])) as Sums
  const whole = { doneCount: 0, failedCount: 0, minutes: 0, processorSeconds: 0 }
  for (const report of reports) {
    coverage.add(report.coverage)
    for (const name of figureNames) sums[name] += report.sums[name]
    for (const name of ['doneCount', 'failedCount', 'minutes', 'processorSeconds'] as const) {
      whole[name] += report[name]
    }
  }
  const parts =
    reports.length === 1
      ? `from ${String(reports[0]?.first)} on`
      : `in ${String(reports.length)} parts`
  yield headLine(whole, `${String(whole.doneCount)} seeds ${parts}`)
  const averages = figureNames.map((name) => `${name} ${(sums[name] / whole.doneCount).toFixed(2)}`)
  yield `on average: ${averages.join(', ')}`
  for (const name of figureNames) {
    const min = averagesMin[name] ?? 0
    if (sums[name] < min * whole.doneCount) yield `  less than ${String(min)} ${name} a seed`
  }
  yield* coverage.lines()
}

function headLine(
  report: Pick<PartReport, 'doneCount' | 'failedCount' | 'minutes' | 'processorSeconds'>,
  what: string,
): string {
  const { doneCount, failedCount, minutes, processorSeconds } = report
  const perMinute = (doneCount / minutes).toFixed(0)
  const each = (processorSeconds / doneCount).toFixed(3)
  return `${what}, ${String(failedCount)} failed, ${perMinute} a minute, ${each} processor seconds each`
}
