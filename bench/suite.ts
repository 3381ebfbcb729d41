// The order of the workloads, and what they have in common.

import { mkdir } from 'node:fs/promises'
import { cpus, release, totalmem } from 'node:os'
import path from 'node:path'
import type { BenchOptions } from './bench-options.ts'
import { isFioInstalled } from './fio.ts'
import { type BenchResult, gigabyte, type Series } from './series.ts'
import { type CaseSettings, runShuffleCase, type ShuffleCase } from './shuffle-case.ts'
import { runSmallShuffles } from './small-shuffles.ts'
import { runControlPlane } from './control-plane.ts'
import { runTrackedPartitions } from './tracked-partitions.ts'
import {
  broadcastCase,
  openChannelsCase,
  optionCases,
  shuffleReadCases,
  skewCase,
  togetherCase,
  writeCases,
} from './workloads.ts'

export interface SuiteContext {
  readonly directory: string
  readonly say: (line: string) => void
}

export async function runSuite(options: BenchOptions, context: SuiteContext): Promise<BenchResult> {
  const startedAt = new Date().toISOString()
  const settings = await settingsOf(options, context)
  const series: Series[] = []
  const wants = (...letters: string[]) => letters.some((letter) => options.only.includes(letter))
  for (const shuffle of casesOf(options)) {
    context.say(`# ${shuffle.name}`)
    series.push(...(await runShuffleCase(shuffle, settings)))
  }
  if (wants('g')) series.push(...(await runSmallShuffles(options, settings)))
  if (wants('h')) {
    series.push(...(await runControlPlane(options, settings)))
    series.push(...(await runTrackedPartitions(options, settings)))
  }
  const isWanted = ({ workload }: Series) => options.only.includes(workload)
  return { startedAt, machine: machine(), options: { ...options }, series: series.filter(isWanted) }
}

function casesOf(options: BenchOptions): ShuffleCase[] {
  const scale = { bytes: options.bytes, isQuick: options.isQuick }
  const wants = (...letters: string[]) => letters.some((letter) => options.only.includes(letter))
  const cases = [
    ...(wants('a', 'b') ? writeCases(scale) : []),
    ...(wants('c') ? shuffleReadCases(scale) : []),
    ...(wants('d') ? [togetherCase(scale)] : []),
    ...(wants('e') ? [broadcastCase(scale)] : []),
    ...(wants('f') ? [skewCase(scale)] : []),
    ...(wants('i') ? optionCases(scale) : []),
    ...(wants('j') ? [openChannelsCase(scale)] : []),
  ]
  return cases.filter(({ name, reads }) =>
    [name, ...reads.map((way) => way.name)].some((each) => each.includes(options.caseText)),
  )
}

async function settingsOf(options: BenchOptions, context: SuiteContext): Promise<CaseSettings> {
  const profileDirectory = options.isProfiled
    ? path.resolve(`${options.output}.profiles`)
    : undefined
  if (profileDirectory !== undefined) await mkdir(profileDirectory, { recursive: true })
  const withFio = await isFioInstalled()
  if (!withFio) context.say('fio is not installed: the references are those of the bench alone')
  return {
    directory: context.directory,
    rounds: options.rounds,
    isDirect: options.mode === 'direct',
    diskMark: options.mode === 'direct' ? '[SSD:DIRECT]' : '[SSD:BUFFERED]',
    workerArguments: [`--memory=${options.memory}`],
    profileDirectory,
    producerProcesses: 2,
    consumerProcesses: 2,
    withFio,
    say: context.say,
  }
}

function machine(): Readonly<Record<string, string | number>> {
  const processors = cpus()
  return {
    processor: processors[0]?.model ?? 'unknown',
    processors: processors.length,
    memoryGb: Number((totalmem() / gigabyte).toFixed(1)),
    kernel: release(),
    node: process.version,
  }
}
