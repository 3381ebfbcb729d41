// The process of the manager: reads the options, runs until it is told to stop.

import { readFileSync } from 'node:fs'
import { ShuffleError, isShuffleError } from '../client/common/errors.ts'
import { loadOptions } from '../client/common/load-options.ts'
import { createLogger } from '../client/common/log.ts'
import { realWorld } from '../client/common/real-world.ts'
import { ShuffleManager } from './manager.ts'
import { managerOptions, type ManagerOptions } from './options.ts'

/** Runs a manager until SIGTERM, SIGINT or, if so asked, the end of its input; resolves to the exit code. */
export async function runManager(argv: readonly string[]): Promise<number> {
  let options: ManagerOptions
  let token: string | undefined
  try {
    options = loadOptions(managerOptions, {
      argv,
      environment: process.env,
      workingDirectory: process.cwd(),
      readFile,
    }).values
    token = readToken(options.tokenFile)
  } catch (error) {
    process.stderr.write(`sluice manager: ${messageOf(error)}\n`)
    return isShuffleError(error, 'INVALID_ARGUMENT') ? 2 : 1
  }
  const logger = createLogger({ level: options.logLevel, role: 'manager' })
  const stop = stopRequest(options.exitWithParent)
  let manager: ShuffleManager
  try {
    manager = await ShuffleManager.start({ world: realWorld(), options, token, logger })
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

function stopRequest(exitWithParent: boolean): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
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
