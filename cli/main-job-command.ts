// What `npm start` runs without arguments: a word count over real text, on a cluster of its own, with
// the result checked against a plain count.

import { mkdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'

import { declareOptions } from '../client/common/options.ts'
import { prepareWordCount } from '../runtime/jobs/word-count-job.ts'
import { exitCodes, type CommandContext, type ExitCode } from './command.ts'
import { findNodeModules, gatherCorpus } from './corpus.ts'
import { runJobOn, type JobRun } from './job-run.ts'
import { summaryText } from './job-summary.ts'
import { LocalCluster } from './local-cluster.ts'
import { optionCommand } from './option-command.ts'
import { differences, parseWordCounts, plainWordCount, topWords } from './plain-word-count.ts'
import { humanBytes, textTable } from './text-table.ts'

export const mainJobOptions = declareOptions('main-job', {
  inputBytes: {
    name: 'input-size',
    type: 'bytes',
    default: '48mb',
    min: '1kb',
    max: '1gb',
    about: 'How much text to count the words of.',
  },
})

/** Enough to see work spread; few enough to follow. */
const jobShape = { maps: 8, reduces: 4, taskMemoryBytes: 64 * 1024 * 1024 }
const filesMax = 100_000
const topWordCount = 10

export const mainJobCommand = optionCommand({
  declaration: mainJobOptions,
  usage: 'sluice main-job [options]',
  about:
    "Starts a manager and two workers as processes on free ports, counts the words of the installed dependencies' sources and documents through them, checks the result against a plain count in one process, and removes everything again.",
  run: async ({ values }, context) => {
    const files = await gatherCorpus(findNodeModules(import.meta.dirname), {
      bytesWanted: values.inputBytes,
      filesMax,
    })
    context.print('Starting a manager and two workers as processes on free ports…\n')
    const cluster = await LocalCluster.start({
      workerCount: 2,
      ports: 'free',
      clusterId: 'sluice',
      signal: context.signal,
      onLog: (text) => {
        context.note(text)
      },
    })
    try {
      return await countAndCheck(cluster, files, context)
    } finally {
      await cluster.stop()
    }
  },
})

async function countAndCheck(
  cluster: LocalCluster,
  files: readonly string[],
  context: CommandContext,
): Promise<ExitCode> {
  const { pid, ready } = cluster.manager
  context.print(`  manager  ${ready.url ?? ''} (pid ${pid ?? 0})\n`)
  for (const { pid: workerPid, ready: worker } of cluster.workers) {
    context.print(`  worker   data port ${worker.dataPort ?? 0} (pid ${workerPid ?? 0})\n`)
  }
  mkdirSync(cluster.starterDirectory)
  const output = path.join(cluster.starterDirectory, 'words.txt')
  const job = await prepareWordCount({ ...jobShape, inputs: files, output })
  context.print(
    `Counting the words of ${humanBytes(job.inputBytes)} in ${files.length} files of node_modules…\n`,
  )
  const settings = {
    manager: undefined,
    clusterId: 'sluice',
    tokenFile: undefined,
    workers: cluster.workers.length,
    taskProcesses: undefined,
    slots: 1,
    verbose: false,
  }
  try {
    const run = await runJobOn(cluster.managerUrl, job, settings, context)
    return await check({ run, output, files }, context)
  } finally {
    await job.discard()
  }
}

async function check(
  of: { readonly run: JobRun; readonly output: string; readonly files: readonly string[] },
  context: CommandContext,
): Promise<ExitCode> {
  context.print('Counting again in one process, to compare…\n')
  const expected = await plainWordCount(of.files, context.signal)
  const actual = parseWordCounts(await readFile(of.output, 'latin1'))
  const found = differences(expected, actual.counts)
  if (!actual.isSorted) found.push('the output is not sorted')
  if (found.length > 0) {
    context.note(`The results differ:\n  ${found.join('\n  ')}\n`)
    return exitCodes.failure
  }
  const top = topWords(actual.counts, topWordCount)
  const rows = top.map(([word, count]) => [printable(word), String(count)])
  context.print(`Both agree on ${expected.size} distinct words.\n\n`)
  context.print(`${textTable(['WORD', 'COUNT'], rows)}\n`)
  context.print(`${summaryText(of.run)}\n${whereNext}`)
  return exitCodes.success
}

/** The bytes of a word as people read them. */
function printable(word: string): string {
  return Buffer.from(word, 'latin1').toString('utf8')
}

const whereNext = `Where to look next:
  npm start -- local --workers 2                            a cluster to play with
  npm start -- sort --input FILE --output FILE              sort a file of your own
  npm start -- --help                                       all commands
  README.md                                                 a tour of five minutes
  ARCHITECTURE.md                                           how it works
`
