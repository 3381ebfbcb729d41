// The end of a store: open writes fail by name, what is not durable is synced within a time, and the
// directories are given back. Nothing here keeps a stop from ending.

import type { Clock } from '../../client/common/clock.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { Logger } from '../../client/common/log.ts'
import { makeDurable } from './make-durable.ts'
import type { OpenWrite } from './open-write.ts'
import type { StorageDirectory } from './storage-directory.ts'

export interface StoreStop {
  readonly directories: readonly StorageDirectory[]
  readonly writes: readonly OpenWrite[]
  readonly clock: Clock
  readonly logger: Logger
  /** For syncing. */
  readonly timeoutMs: number
}

export async function stopStore(stop: StoreStop): Promise<void> {
  const deadlineMs = stop.clock.nowMs() + stop.timeoutMs
  for (const write of stop.writes) {
    write.end(
      new ShuffleError('WRITE_INTERRUPTED', 'the worker stopped', { fields: { ...write.key } }),
    )
  }
  await Promise.all(stop.writes.map((write) => write.abort()))
  await Promise.all(stop.directories.map((directory) => stopDirectory(stop, directory, deadlineMs)))
}

async function stopDirectory(
  { clock, logger }: StoreStop,
  directory: StorageDirectory,
  deadlineMs: number,
): Promise<void> {
  const fields = { directory: directory.path }
  try {
    if (directory.isOpen && directory.health !== 'failed') {
      const isDurable = await makeDurable(directory, { clock, deadlineMs })
      if (!isDurable) {
        logger.warn(fields, 'no time to sync everything: a reboot now would drop what was not')
      }
    }
  } catch (error) {
    logger.warn({ ...fields, error }, 'a data directory could not be synced')
  }
  try {
    await directory.close()
  } catch (error) {
    logger.warn({ ...fields, error }, 'a data directory did not close well')
  }
}
