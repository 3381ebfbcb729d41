// `sluice support-bundle`: what manager and workers say of themselves, in one archive to look at later
// or to send to someone. It has options, names, addresses and figures; no data, and no secret.

import { accessSync, constants, existsSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { isShuffleError, ShuffleError } from '../client/index.ts'
import { declareOptions } from '../client/common/options.ts'
import { exitCodes } from './command.ts'
import { asJson, clusterOptionTable, managerCommand } from './manager-command.ts'
import { allProcesses, askProcess, managerProcess, type ClusterProcess } from './process-calls.ts'
import { tarOf, type ArchivedFile } from './tar.ts'
import { humanBytes } from './text-table.ts'

const bundleOptions = declareOptions('command', {
  ...clusterOptionTable,
  output: {
    name: 'output',
    type: 'path',
    default: 'sluice-support.tar.gz',
    flagOnly: true,
    about: 'The archive to write; it must not exist.',
  },
  workersMax: {
    name: 'workers-max',
    type: 'integer',
    default: 100,
    min: 1,
    max: 10_000,
    flagOnly: true,
    about: 'Most workers that are asked; those with the most trouble first.',
  },
})

const managerPages = {
  'process.json': '/v1/process',
  'cluster.json': '/v1/cluster',
  'workers.json': '/v1/workers',
  'jobs.json': '/v1/jobs',
  'events.json': '/v1/events?limit=10000',
  'ready.json': '/readyz',
  'metrics.txt': '/metrics',
} as const

const workerPages = {
  'process.json': '/v1/process',
  'status.json': '/v1/status',
  'waiters.json': '/v1/waiters',
  'ready.json': '/readyz',
  'metrics.txt': '/metrics',
} as const

const askedAtOnce = 8
/** All together, before compression. */
const bundleBytesMax = 512 * 1024 * 1024

export const supportBundleCommand = managerCommand({
  declaration: bundleOptions,
  usage: 'sluice support-bundle [options]',
  about:
    'Gathers what manager and workers say of themselves into one archive: options in effect, state, jobs, events, metrics, who waits for what, the last warnings and errors of their logs. No data and no secret is in it; names of jobs, machines and files are. Who does not answer is named in errors.txt.',
  examples: [
    { about: 'In a folder of yours', command: 'sluice support-bundle --output /tmp/sluice.tar.gz' },
  ],
  run: async ({ client, values, context, token }) => {
    const { output } = values
    if (existsSync(output)) {
      throw new ShuffleError('INVALID_ARGUMENT', `--output ${output} exists; give another name`)
    }
    checkWritable(output)
    const bundle = new Bundle(token)
    const all = await allProcesses(client, values.manager)
    await bundle.add('manager', managerProcess(values.manager), managerPages)
    const workers = all.filter(({ worker }) => worker !== undefined).sort(byTrouble)
    const asked = workers.slice(0, values.workersMax)
    for (let at = 0; at < asked.length; at += askedAtOnce) {
      context.signal.throwIfAborted()
      const some = asked.slice(at, at + askedAtOnce)
      await Promise.all(some.map((one) => bundle.add(`workers/${one.name}`, one, workerPages)))
      context.note(`asked ${Math.min(at + askedAtOnce, asked.length)} of ${asked.length} workers\n`)
    }
    const left = workers.length - asked.length
    if (left > 0) bundle.note(`${left} more workers were not asked (--workers-max)`)
    const bytes = gzipSync(tarOf(bundle.files(), Date.now()))
    writeFileSync(`${output}.partial`, bytes, { mode: 0o600 })
    renameSync(`${output}.partial`, output)
    const outcome = { output, byteCount: bytes.length, problems: bundle.problems }
    context.print(values.json ? asJson(outcome) : describe(outcome))
    return exitCodes.success
  },
})

/** Before anybody is asked: the archive is made at the end. */
function checkWritable(output: string): void {
  const directory = path.dirname(output)
  try {
    accessSync(directory, constants.W_OK)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `no file can be made in ${directory} for --output: ${reason}; give another name`,
      { cause: error },
    )
  }
}

/** Silent ones and those out of service first. */
function byTrouble(one: ClusterProcess, other: ClusterProcess): number {
  const trouble = ({ worker }: ClusterProcess) =>
    (worker?.state === 'alive' ? 0 : 2) + (worker?.service.state === 'serving' ? 0 : 1)
  return trouble(other) - trouble(one)
}

class Bundle {
  readonly #token: string | undefined
  readonly #files: ArchivedFile[] = []
  readonly problems: string[] = []
  #bytes = 0

  constructor(token: string | undefined) {
    this.#token = token
  }

  /** Asks a process for its pages; what it does not answer becomes a problem. */
  async add(
    folder: string,
    process: ClusterProcess,
    pages: Readonly<Record<string, string>>,
  ): Promise<void> {
    for (const [name, path] of Object.entries(pages)) {
      try {
        const { status, text } = await askProcess(process, { method: 'GET', path }, this.#token)
        // A process that is not ready says why.
        if (status !== 200 && path !== '/readyz') {
          this.note(`${folder}: ${path} answered ${status}: ${text.slice(0, 500)}`)
        } else this.#keep(`${folder}/${name}`, text)
      } catch (error) {
        this.note(`${folder}: ${path}: ${error instanceof Error ? error.message : String(error)}`)
        // Who does not answer once would not in time for the other pages.
        if (isShuffleError(error, 'WORKER_UNREACHABLE')) return
      }
    }
  }

  note(problem: string): void {
    this.problems.push(problem)
  }

  files(): readonly ArchivedFile[] {
    const content = this.problems.map((problem) => `${problem}\n`).join('')
    return [...this.#files, { name: 'errors.txt', content }]
  }

  #keep(name: string, text: string): void {
    this.#bytes += text.length
    if (this.#bytes > bundleBytesMax) {
      throw new ShuffleError('LIMIT_EXCEEDED', 'the bundle would be larger than 512 MiB')
    }
    // Names of workers are the operators' own.
    this.#files.push({ name: name.replaceAll(/[^\w./-]/g, '_').slice(-100), content: text })
  }
}

function describe(outcome: {
  readonly output: string
  readonly byteCount: number
  readonly problems: readonly string[]
}): string {
  const { output, byteCount, problems } = outcome
  const more =
    problems.length === 0 ? '' : `; ${problems.length} things are missing, errors.txt says which`
  return `wrote ${output} (${humanBytes(byteCount)})${more}\n`
}
