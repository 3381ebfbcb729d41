// Many seeds: one after another in this process, or dealt out to several processes. Stops at the first
// that finds something, unless told otherwise.

import { fork } from 'node:child_process'
import { Coverage, type CoverageParts } from './coverage.ts'
import { simulate, type SimulationResult } from './simulation.ts'

export interface BatchOptions {
  readonly first: number
  readonly count: number
  /** Processes. */
  readonly jobs: number
  readonly isCalm: boolean
  readonly keepsGoing: boolean
  readonly onFailure: (failure: FailedSeed) => void
  /** Now and then, while it runs. */
  readonly onProgress?: (totals: BatchTotals) => void
}

export interface FailedSeed {
  readonly seed: number
  readonly findings: readonly string[]
  readonly events: readonly string[]
}

export const figureNames = [
  'jobs',
  'records',
  'partitions',
  'messages',
  'faultsHit',
  'faultsAfterCommit',
  'virtualMs',
] as const
export type Sums = Record<(typeof figureNames)[number], number>

export interface BatchTotals {
  doneCount: number
  failedCount: number
  processorSeconds: number
  readonly sums: Sums
  readonly coverage: Coverage
}

/** What the process of a part sends to the one that started it. */
type PartMessage =
  | { readonly kind: 'failed'; readonly failure: FailedSeed }
  | {
      readonly kind: 'done'
      readonly doneCount: number
      readonly processorSeconds: number
      readonly sums: Sums
      readonly coverage: CoverageParts
    }

interface PartOrder {
  readonly first: number
  readonly count: number
  readonly isCalm: boolean
  readonly keepsGoing: boolean
}

/** Seeds that a process is given at a time; it lives on, so that it need not be compiled again. */
const partSize = 50

export async function runBatch(options: BatchOptions): Promise<BatchTotals> {
  const totals = emptyTotals()
  const parts: PartOrder[] = []
  for (let first = options.first; first < options.first + options.count; first += partSize) {
    const count = Math.min(partSize, options.first + options.count - first)
    parts.push({ first, count, isCalm: options.isCalm, keepsGoing: options.keepsGoing })
  }
  const isOver = () => totals.failedCount > 0 && !options.keepsGoing
  const runParts = async () => {
    const elsewhere = options.jobs > 1 ? new PartProcess() : undefined
    const tell = (message: PartMessage) => {
      take(totals, message, options)
    }
    for (let part = parts.shift(); part !== undefined && !isOver(); part = parts.shift()) {
      await (elsewhere === undefined ? runHere(part, tell) : elsewhere.run(part, tell))
      options.onProgress?.(totals)
    }
    elsewhere?.end()
  }
  await Promise.all(Array.from({ length: options.jobs }, runParts))
  return totals
}

/** The whole life of a process that runs parts for another one: until that one ends it. */
export function serveParts(): Promise<void> {
  return new Promise((resolve, reject) => {
    process.on('message', (part: PartOrder) => {
      runHere(part, (message) => {
        process.send?.(message)
      }).catch(reject)
    })
    process.once('disconnect', resolve)
  })
}

async function runHere(part: PartOrder, tell: (message: PartMessage) => void): Promise<void> {
  const sums = emptySums()
  const coverage = new Coverage()
  let doneCount = 0
  const before = process.cpuUsage()
  for (let seed = part.first; seed < part.first + part.count; seed += 1) {
    const result = await simulate(seed, { isCalm: part.isCalm })
    doneCount += 1
    coverage.add(result.coverage.parts())
    for (const name of figureNames) sums[name] += result.figures[name]
    if (result.findings.length === 0) continue
    tell({ kind: 'failed', failure: failureOf(result) })
    if (!part.keepsGoing) break
  }
  const { user, system } = process.cpuUsage(before)
  const processorSeconds = (user + system) / 1e6
  tell({ kind: 'done', doneCount, processorSeconds, sums, coverage: coverage.parts() })
}

/** A process that runs one part after another. */
class PartProcess {
  readonly #child = fork(process.argv[1] ?? '', ['--serve-parts'])

  run(part: PartOrder, tell: (message: PartMessage) => void): Promise<void> {
    const child = this.#child
    return new Promise((resolve, reject) => {
      const onMessage = (message: unknown) => {
        tell(message as PartMessage)
        if ((message as PartMessage).kind !== 'done') return
        child.off('message', onMessage)
        child.off('exit', onExit)
        resolve()
      }
      const onExit = (code: number | null, signal: string | null) => {
        const what = `the process of seeds ${String(part.first)} on`
        reject(new Error(`${what} ended with ${String(code ?? signal)}`))
      }
      child.on('message', onMessage)
      child.once('exit', onExit)
      child.send(part)
    })
  }

  end(): void {
    this.#child.disconnect()
  }
}

function take(totals: BatchTotals, message: PartMessage, options: BatchOptions): void {
  if (message.kind === 'failed') {
    totals.failedCount += 1
    options.onFailure(message.failure)
    return
  }
  totals.doneCount += message.doneCount
  totals.processorSeconds += message.processorSeconds
  totals.coverage.add(message.coverage)
  for (const name of figureNames) totals.sums[name] += message.sums[name]
}

function failureOf({ seed, findings, events }: SimulationResult): FailedSeed {
  return { seed, findings, events }
}

function emptyTotals(): BatchTotals {
  return {
    doneCount: 0,
    failedCount: 0,
    processorSeconds: 0,
    sums: emptySums(),
    coverage: new Coverage(),
  }
}

function emptySums(): Sums {
  return Object.fromEntries(figureNames.map((name) => [name, 0])) as Sums
}
