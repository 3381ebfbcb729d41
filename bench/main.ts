// `npm run bench`: runs the workloads and writes what they were like.

import { mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseBenchOptions, usage, type BenchOptions } from './bench-options.ts'
import { runSuite } from './suite.ts'
import { drawPlots } from './plots.ts'
import { figuresOf, tableOf } from './report.ts'

const say = (line: string) => process.stderr.write(`${line}\n`)

async function main(): Promise<number> {
  let options: BenchOptions
  try {
    options = parseBenchOptions(process.argv.slice(2))
  } catch (error) {
    say(`bench: ${(error as Error).message}\n\n${usage}`)
    return 2
  }
  if (options.isHelp) {
    process.stdout.write(usage)
    return 0
  }
  if (process.platform !== 'linux') {
    say('bench: it reads /proc and drops page caches, and so runs on Linux alone')
    return 2
  }
  const directory = options.directory ?? path.join(tmpdir(), `sluice-bench-${String(process.pid)}`)
  await mkdir(directory, { recursive: true })
  try {
    const result = await runSuite(options, { directory, say })
    await writeFile(options.output, `${JSON.stringify(result, null, 2)}\n`)
    if (options.plots !== undefined) await drawPlots(result, options.plots)
    process.stdout.write(`${tableOf(result.series)}\n\n${figuresOf(result.series)}\n`)
    return 0
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

process.exitCode = await main()
