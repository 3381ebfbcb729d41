// `npm run simulate -- --seed N [--count K] [--trace]`: K seeds from N on; stops at the first that
// finds something, prints it with the last events, and exits with 1.

import './shared-validators.ts'
import { parseArgs } from 'node:util'
import { Coverage } from './coverage.ts'
import { everyPoint, scripts } from './every-point.ts'
import { huntAll } from './mutant-hunt.ts'
import { mutants } from './mutants.ts'
import { simulate, type SimulationResult } from './simulation.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    'every-point': { type: 'boolean', default: false },
    step: { type: 'string', default: '1' },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    'keep-going': { type: 'boolean', default: false },
  },
})

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const first = Number(values.seed)
const count = Number(values.count)
if (values['every-point']) process.exit((await runEveryPoint(Number(values.step))) ? 0 : 1)
if (values.mutants || values.mutant !== undefined) {
  const wanted = mutants.filter(({ name }) => values.mutant === undefined || name === values.mutant)
  const areAllCaught = await huntAll(wanted, { first, count: count === 1 ? 2000 : count, print })
  process.exit(areAllCaught ? 0 : 1)
}
const total = new Coverage()
const sums = { jobs: 0, records: 0, partitions: 0, messages: 0, faultsHit: 0, virtualMs: 0 }
const startedMs = performance.now()
let failed = 0
let done = 0
for (let seed = first; seed < first + count; seed += 1) {
  const result = await simulate(seed, {
    isCalm: values.calm,
    isVerbose: values.verbose,
    ...(values.trace || values.verbose ? { onEvent: print } : {}),
  })
  done += 1
  total.add(result.coverage)
  for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += result.figures[name]
  if (count === 1) print(`seed ${String(seed)}: trace ${result.digest}`)
  if (result.findings.length === 0) continue
  failed += 1
  report(result)
  if (!values['keep-going']) break
}
const minutes = (performance.now() - startedMs) / 60_000
print(`${String(done)} seeds, ${String(failed)} failed, ${(done / minutes).toFixed(0)} a minute`)
print(
  `on average ${Object.entries(sums)
    .map(([name, sum]) => `${name} ${(sum / done).toFixed(1)}`)
    .join(', ')}`,
)
printCounts('faults', total.faults)
printCounts('errors', total.errors)
printCounts('messages', total.messages)
process.exit(failed > 0 ? 1 : 0)

function report(result: SimulationResult): void {
  print(`seed ${String(result.seed)} FAILED`)
  if (!values.trace && !values['keep-going'])
    for (const line of result.events.slice(-60)) print(`  ${line}`)
  for (const finding of result.findings.slice(0, 5)) print(`  finding: ${finding.slice(0, 1500)}`)
}

function printCounts(what: string, counts: ReadonlyMap<string, number>): void {
  const texts = [...counts].map(([name, times]) => `${name} ${String(times)}`)
  print(`${what}: ${texts.join(', ')}`)
}

async function runEveryPoint(step: number): Promise<boolean> {
  let pointCount = 0
  let failedCount = 0
  for (const script of scripts) {
    const before = pointCount
    for await (const { point, findings } of everyPoint(script, step)) {
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
