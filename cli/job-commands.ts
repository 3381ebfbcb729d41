// `sluice sort` and `sluice word-count`.

import { declareOptions, type OptionSection, type OptionValues } from '../client/common/options.ts'
import type { JobSettings, PreparedJob } from '../runtime/jobs/prepared-job.ts'
import { prepareSort } from '../runtime/jobs/sort-job.ts'
import { prepareWordCount } from '../runtime/jobs/word-count-job.ts'
import { exitCodes, type Command } from './command.ts'
import { runJob } from './job-run.ts'
import { summaryJson, summaryText } from './job-summary.ts'
import { optionCommand } from './option-command.ts'

const jobOptionTable = {
  input: { name: 'input', type: 'path', required: true, about: 'The file to read.' },
  output: {
    name: 'output',
    type: 'path',
    required: true,
    about: 'The file to write; it appears when the job has succeeded.',
  },
  maps: {
    name: 'maps',
    type: 'integer',
    default: 8,
    min: 1,
    max: 10_000,
    about: 'Tasks that read the input.',
  },
  reduces: {
    name: 'reduces',
    type: 'integer',
    default: 8,
    min: 1,
    max: 10_000,
    about: 'Tasks that write the output.',
  },
  taskMemoryBytes: {
    name: 'task-memory',
    type: 'bytes',
    default: '64mb',
    min: '2mb',
    max: '2gb',
    about: 'Memory of a task for data; what is more is spilled to the temporary directory.',
  },
  taskProcesses: {
    name: 'task-processes',
    type: 'integer',
    min: 1,
    max: 256,
    about: 'Processes that run tasks; as many as there are processors, up to 8, unless stated.',
  },
  slots: {
    name: 'slots',
    type: 'integer',
    default: 1,
    min: 1,
    max: 64,
    about: 'Tasks that a process runs at a time.',
  },
  manager: {
    name: 'manager',
    type: 'string',
    pattern: /^http:\/\/[^\s/]+\/?$/,
    allowed: 'an address such as http://127.0.0.1:9700',
    about: 'Address of a manager; without it the job starts a cluster of its own.',
  },
  clusterId: {
    name: 'cluster-id',
    type: 'string',
    default: 'sluice',
    lengthMax: 200,
    about: 'Name of the cluster.',
  },
  tokenFile: {
    name: 'token-file',
    type: 'path',
    about: 'File with the secret shared by the cluster, where it has one.',
  },
  workers: {
    name: 'workers',
    type: 'integer',
    default: 2,
    min: 1,
    max: 64,
    about: 'Workers of a cluster of its own.',
  },
  verbose: {
    name: 'verbose',
    type: 'boolean',
    default: false,
    about: 'Log what happens to tasks and partitions, on standard error.',
  },
  json: { name: 'json', type: 'boolean', default: false, about: 'Print the summary as JSON.' },
} as const

export const sortOptions = declareJob('sort')
export const wordCountOptions = declareJob('word-count')

export const sortCommand = jobCommand(sortOptions, prepareSort, {
  usage: 'sluice sort --input FILE --output FILE [options]',
  about:
    'Sorts the lines of a file by their bytes, as `LC_ALL=C sort` does, through the shuffle: map tasks send each line to the reduce task of its range, reduce tasks sort and write their part of the output.',
  examples: [
    {
      about: 'On a cluster of its own',
      command: 'sluice sort --input big.txt --output sorted.txt --maps 16 --reduces 16',
    },
    {
      about: 'On a cluster that runs (see `sluice local`)',
      command: 'sluice sort --input big.txt --output sorted.txt --manager http://127.0.0.1:9700',
    },
  ],
})

export const wordCountCommand = jobCommand(wordCountOptions, prepareWordCount, {
  usage: 'sluice word-count --input FILE --output FILE [options]',
  about:
    'Counts the words of a file, through the shuffle, and writes a line `word<TAB>count` for each, sorted by the bytes of the word. A word is a run of bytes other than ASCII white space.',
  examples: [
    {
      about: 'On a cluster of its own',
      command: 'sluice word-count --input book.txt --output counts.txt',
    },
  ],
})

function declareJob(section: OptionSection) {
  return declareOptions(section, jobOptionTable)
}

type JobOptions = typeof sortOptions

function jobCommand(
  declaration: JobOptions,
  prepare: (settings: JobSettings) => Promise<PreparedJob>,
  parts: Pick<Parameters<typeof optionCommand>[0], 'usage' | 'about' | 'examples'>,
): Command {
  return optionCommand({
    ...parts,
    declaration,
    run: async ({ values }, context) => {
      const run = await runJob(() => prepare(settingsOf(values)), values, context)
      context.print(values.json ? summaryJson(run) : summaryText(run))
      return exitCodes.success
    },
  })
}

function settingsOf(values: OptionValues<JobOptions>): JobSettings {
  return { ...values, inputs: [values.input] }
}
