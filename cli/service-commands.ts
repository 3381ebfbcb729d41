// `sluice manager` and `sluice worker`: the services with the command line around them.

import { rmdirSync, rmSync } from 'node:fs'
import path from 'node:path'

import { managerOptions } from '../shuffle-manager/options.ts'
import { workerOptions } from '../shuffle-worker/options.ts'
import type { CommandContext, ExitCode } from './command.ts'
import { optionCommand } from './option-command.ts'

/**
 * Set by who starts a service for a while: a directory that the service removes when it ends, so
 * that nothing stays behind even when that one is killed.
 */
export const temporaryDirectoryVariable = 'SLUICE_TEMPORARY_DIRECTORY'

export const managerCommand = optionCommand({
  declaration: managerOptions,
  usage: 'sluice manager [options]',
  about:
    'Runs a shuffle manager until SIGTERM or Ctrl-C. It knows the workers, the jobs and where each partition is. A line of JSON on standard output says when it is ready and at which address; logs go to standard error.',
  examples: [
    {
      about: 'Reachable from other machines',
      command: 'sluice manager --host 0.0.0.0 --token-file /etc/sluice/token',
    },
  ],
  run: async (_parsed, context, argv) => {
    const { runManager } = await import('../shuffle-manager/main.ts')
    return await thenRemove(context, () => runManager(argv))
  },
})

export const workerCommand = optionCommand({
  declaration: workerOptions,
  usage: 'sluice worker --data-directories LIST [options]',
  about:
    'Runs a shuffle worker until SIGTERM or Ctrl-C. It keeps partitions in its data directories and serves them; after a restart with the same directories it has them still. A line of JSON on standard output says when it is ready and on which ports; logs go to standard error.',
  examples: [
    {
      about: 'Two disks, one of them with heads',
      command:
        'sluice worker --data-directories /ssd/sluice,[HDD]/disk1/sluice --manager http://manager:9700',
    },
  ],
  run: async (_parsed, context, argv) => {
    const { runWorker } = await import('../shuffle-worker/main.ts')
    return await thenRemove(context, () => runWorker(argv))
  },
})

/** Name of a directory beside the services' that belongs to who started them. */
export const starterDirectory = 'job'

/**
 * Runs a service, then removes its temporary directory; also that of who started it, when that one
 * is gone; and the directory around them once it is empty.
 */
export async function thenRemove(
  context: Pick<CommandContext, 'environment'>,
  run: () => Promise<ExitCode>,
  parentPid: () => number = () => process.ppid,
): Promise<ExitCode> {
  const directory = context.environment[temporaryDirectoryVariable]
  const parent = parentPid()
  try {
    return await run()
  } finally {
    if (directory !== undefined) {
      const around = path.dirname(directory)
      rmSync(directory, { recursive: true, force: true })
      if (parentPid() !== parent) {
        rmSync(path.join(around, starterDirectory), { recursive: true, force: true })
      }
      removeIfEmpty(around)
    }
  }
}

/** The last one to leave succeeds. */
function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOTEMPTY' && code !== 'ENOENT' && code !== 'EEXIST') throw error
  }
}
