// The process of the worker: reads the options, runs until it is told to stop.
//
// The thread pool of a process has the size that its environment named at its start. Where that is
// too small for the disks the worker starts again as a child with a larger one; the two end together.

// eslint-disable-next-line @typescript-eslint/no-restricted-imports -- the process itself, not the services
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { isShuffleError, ShuffleError } from '../client/common/errors.ts'
import { loadOptions, splitCommonFlags } from '../client/common/load-options.ts'
import { createLogger, type Logger } from '../client/common/log.ts'
import type { ParsedOptions } from '../client/common/options.ts'
import { processFacts } from '../client/common/process-facts.ts'
import { realWorld } from '../client/common/real-world.ts'
import { RunningOptions } from '../client/common/running-options.ts'
import {
  type DirectoryOption,
  parseDataDirectories,
  workerOptions,
  type WorkerOptions,
} from './options.ts'
import { limitHeapGrowth, workerNodeFlags } from './heap-limits.ts'
import { checkDescriptors, threadPoolSize, threadsNeeded } from './process-limits.ts'
import { diskOperationsInFlightMax } from './storage/disk-operation.ts'
import type { ShuffleWorker } from './worker.ts'

interface Configuration {
  readonly parsed: ParsedOptions<typeof workerOptions.options>
  /** Reads all sources again. */
  readonly read: () => ParsedOptions<typeof workerOptions.options>
  /** Whether a file is among them. */
  readonly hasConfig: boolean
  readonly directories: readonly DirectoryOption[]
  readonly token: string | undefined
}

/** Set in the environment of a worker that was started again with a larger thread pool. */
const restartedVariable = 'SLUICE_RESTARTED'
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Runs a worker until SIGTERM, SIGINT or, if so asked, the end of its input; resolves to the exit code. */
export async function runWorker(argv: readonly string[]): Promise<number> {
  let configuration: Configuration
  try {
    configuration = readConfiguration(argv)
  } catch (error) {
    process.stderr.write(`sluice worker: ${messageOf(error)}\n`)
    return isShuffleError(error, 'INVALID_ARGUMENT') ? 2 : 1
  }
  const threads = threadsNeeded(
    diskOperationsInFlightMax(configuration.directories.map(({ kind }) => kind)),
  )
  if (threadPoolSize(process.env) >= threads) return await runHere(configuration)
  if (process.env[restartedVariable] === undefined) return await runAsChild(threads)
  process.stderr.write(`sluice worker: set UV_THREADPOOL_SIZE to at least ${String(threads)}\n`)
  return 1
}

async function runHere(configuration: Configuration): Promise<number> {
  const { parsed, read, hasConfig, directories, token } = configuration
  const options = parsed.values
  limitHeapGrowth()
  const logger = createLogger({ level: options.logLevel, role: 'worker' })
  const settings = new RunningOptions({ declaration: workerOptions, parsed, read, logger })
  if (hasConfig) reloadOnSignal(settings, logger)
  const stop = stopRequest(options.exitWithParent, hasConfig)
  let worker: ShuffleWorker
  try {
    const facts = () => processFacts(readLimits())
    const place = { world: realWorld(), options, directories, token, logger }
    // Not before it is sure that it runs here: one that only starts a child stays small.
    const services = await import('./worker.ts')
    worker = await services.ShuffleWorker.start({ ...place, settings, facts })
  } catch (error) {
    process.stderr.write(`sluice worker: ${messageOf(error)}\n`)
    return isShuffleError(error, 'INVALID_ARGUMENT') ? 2 : 1
  }
  const { workerId, dataPort, httpPort } = worker
  process.stdout.write(`${JSON.stringify({ role: 'worker', workerId, dataPort, httpPort })}\n`)
  logger.info({ workerId, dataPort, httpPort }, 'worker runs')
  logger.info({ reason: await stop }, 'worker stops')
  await worker.stop()
  return 0
}

/** The same command again, with the pool that it needs. */
function runAsChild(threads: number): Promise<number> {
  const child = spawn(
    process.execPath,
    [...workerNodeFlags, ...process.execArgv, ...process.argv.slice(1)],
    {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      env: {
        ...process.env,
        UV_THREADPOOL_SIZE: String(threads),
        [restartedVariable]: '1',
      },
    },
  )
  for (const signal of signals) process.on(signal, () => child.kill(signal))
  return new Promise((resolve) => {
    child.once('error', (error) => {
      process.stderr.write(`sluice worker: it could not be started again: ${error.message}\n`)
      resolve(1)
    })
    child.once('exit', (code) => {
      resolve(code ?? 1)
    })
  })
}

function readConfiguration(argv: readonly string[]): Configuration {
  const workingDirectory = process.cwd()
  const { env: environment } = process
  const read = () => loadOptions(workerOptions, { argv, environment, workingDirectory, readFile })
  const parsed = read()
  const options: WorkerOptions = parsed.values
  const hasConfig = splitCommonFlags(argv, environment).configPath !== undefined
  const directories = parseDataDirectories(options.dataDirectories, workingDirectory)
  checkDescriptors(readLimits(), options)
  return { parsed, read, hasConfig, directories, token: readToken(options.tokenFile) }
}

function readFile(path: string): string {
  return readFileSync(path, 'utf8')
}

/** Empty where the system does not tell. */
function readLimits(): string {
  try {
    return readFile('/proc/self/limits')
  } catch {
    return ''
  }
}

function readToken(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  let text: string
  try {
    text = readFile(path).trim()
  } catch (error) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `--token-file ${path} can't be read: ${messageOf(error)}`,
      { cause: error },
    )
  }
  if (text !== '') return text
  throw new ShuffleError('INVALID_ARGUMENT', `--token-file ${path} is empty`)
}

/** SIGHUP, as of any service that has a configuration file. */
function reloadOnSignal(settings: { reload(): unknown }, logger: Logger): void {
  process.on('SIGHUP', () => {
    try {
      settings.reload()
    } catch (error) {
      logger.error({ error: messageOf(error) }, 'the configuration could not be read again')
    }
  })
}

/** Without a configuration file SIGHUP means that the terminal is gone. */
function stopRequest(exitWithParent: boolean, hasConfig: boolean): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of signals) {
      if (signal === 'SIGHUP' && hasConfig) continue
      process.once(signal, () => {
        resolve(signal)
      })
    }
    if (process.env[restartedVariable] !== undefined) {
      // The process that started this one was killed: it means to be gone, at once.
      process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
    }
    if (!exitWithParent) return
    const onGone = () => {
      resolve('the parent is gone')
    }
    process.stdin.once('end', onGone)
    process.stdin.once('error', onGone)
    process.stdin.resume()
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
