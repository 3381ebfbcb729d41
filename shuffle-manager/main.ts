// The process of the manager: reads the options, runs until it is told to stop.

import { readFileSync } from 'node:fs'
import { ShuffleError, isShuffleError } from '../client/common/errors.ts'
import { loadOptions, splitCommonFlags } from '../client/common/load-options.ts'
import { createLogger, type Logger } from '../client/common/log.ts'
import type { ParsedOptions } from '../client/common/options.ts'
import { processFacts } from '../client/common/process-facts.ts'
import { realWorld } from '../client/common/real-world.ts'
import { RunningOptions } from '../client/common/running-options.ts'
import { ShuffleManager } from './manager.ts'
import { managerOptions } from './options.ts'

/** Runs a manager until SIGTERM, SIGINT or, if so asked, the end of its input; resolves to the exit code. */
export async function runManager(argv: readonly string[]): Promise<number> {
  const workingDirectory = process.cwd()
  const read = () =>
    loadOptions(managerOptions, { argv, environment: process.env, workingDirectory, readFile })
  let parsed: ParsedOptions<typeof managerOptions.options>
  let token: string | undefined
  try {
    parsed = read()
    token = readToken(parsed.values.tokenFile)
  } catch (error) {
    process.stderr.write(`sluice manager: ${messageOf(error)}\n`)
    return isShuffleError(error, 'INVALID_ARGUMENT') ? 2 : 1
  }
  const options = parsed.values
  const logger = createLogger({ level: options.logLevel, role: 'manager' })
  const settings = new RunningOptions({ declaration: managerOptions, parsed, read, logger })
  const hasConfig = splitCommonFlags(argv, process.env).configPath !== undefined
  if (hasConfig) reloadOnSignal(settings, logger)
  const stop = stopRequest(options.exitWithParent, hasConfig)
  let manager: ShuffleManager
  try {
    const facts = () => processFacts(readLimits())
    const world = realWorld()
    manager = await ShuffleManager.start({ world, options, token, logger, settings, facts })
  } catch (error) {
    process.stderr.write(`sluice manager: ${messageOf(error)}\n`)
    return 1
  }
  const { url, managerEpoch } = manager
  process.stdout.write(`${JSON.stringify({ role: 'manager', url, managerEpoch })}\n`)
  logger.info({ url, managerEpoch }, 'manager runs')
  logger.info({ reason: await stop }, 'manager stops')
  await manager.stop()
  // Input that is still read would keep the process.
  process.stdin.pause()
  return 0
}

function readFile(path: string): string {
  return readFileSync(path, 'utf8')
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

/** Empty where the system does not tell. */
function readLimits(): string {
  try {
    return readFile('/proc/self/limits')
  } catch {
    return ''
  }
}

/** Without a configuration file SIGHUP means that the terminal is gone. */
function stopRequest(exitWithParent: boolean, hasConfig: boolean): Promise<string> {
  const signals = ['SIGTERM', 'SIGINT', ...(hasConfig ? [] : (['SIGHUP'] as const))] as const
  return new Promise((resolve) => {
    for (const signal of signals) {
      process.once(signal, () => {
        resolve(signal)
      })
    }
    if (!exitWithParent) return
    process.stdin.once('end', () => {
      resolve('the parent is gone')
    })
    process.stdin.once('error', () => {
      resolve('the parent is gone')
    })
    process.stdin.resume()
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
