// `npm run bench:model`: the scheduler on a modelled disk, in virtual time. Prints each figure with
// its bound; `--small` reads fewer files, a text selects the runs whose name holds it.

import { type Figure, runsOf } from './suite.ts'

const [flags, texts] = [
  process.argv.slice(2).filter((each) => each.startsWith('--')),
  process.argv.slice(2).filter((each) => !each.startsWith('--')),
]
const unknown = flags.filter((flag) => flag !== '--small')
if (unknown.length > 0) {
  process.stderr.write(`unknown: ${unknown.join(' ')}; there is --small\n`)
  process.exit(2)
}

let missed = 0
for (const run of runsOf(flags.includes('--small') ? 'small' : 'full')) {
  if (!texts.every((text) => run.name.includes(text))) continue
  const cpu = process.cpuUsage()
  const figures = await run.figures()
  const { user, system } = process.cpuUsage(cpu)
  process.stdout.write(`${run.name}  (${((user + system) / 1e6).toFixed(1)} s of CPU)\n`)
  for (const figure of figures) {
    if (!isKept(figure)) missed += 1
    process.stdout.write(`  ${lineOf(figure)}\n`)
  }
}
if (missed > 0) process.stdout.write(`${String(missed)} bounds are not kept\n`)
process.exitCode = missed > 0 ? 1 : 0

function isKept({ value, least = -Infinity, most = Infinity }: Figure): boolean {
  return value >= least && value <= most
}

function lineOf(figure: Figure): string {
  const { name, value, least, most } = figure
  const bounds = [
    ...(least === undefined ? [] : [`at least ${String(least)}`]),
    ...(most === undefined ? [] : [`at most ${String(most)}`]),
  ].join(', ')
  const digits = value >= 100 ? 1 : 3
  const text = `${name.padEnd(26)} ${value.toFixed(digits).padStart(10)}  ${bounds}`
  return isKept(figure) ? text.trimEnd() : `${text}  MISSED`
}
