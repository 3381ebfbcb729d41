// Opens all data directories of a worker: locks them, agrees on one identity, raises the epoch, and
// recovers each. A directory of another worker or cluster, or one in use, refuses the start; one
// whose disk does not answer is given up and the others serve.

import { isShuffleError, ShuffleError } from '../../client/common/errors.ts'
import { parseWorkerId, type ClusterId, type WorkerId } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { randomHex } from '../../client/common/random.ts'
import type { ServiceRecord } from '../../client/manager/schemas.ts'
import type { World } from '../../client/common/world.ts'
import { readIdentity, writeIdentity, type DirectoryIdentity } from './directory-identity.ts'
import { latestService, readService } from './directory-service.ts'
import { systemCodeOf } from './disk-operation.ts'
import { recoverDirectory, type RecoveredDirectory } from './recovery.ts'
import { SharedLog } from './shared-log.ts'
import type { StorageDirectory } from './storage-directory.ts'

export interface OpenDirectoriesSettings {
  readonly world: World
  readonly clusterId: ClusterId
  readonly directories: readonly StorageDirectory[]
  readonly segmentSizeBytes: number
  readonly sync: boolean
  readonly logger: Logger
}

export interface OpenedDirectories {
  readonly workerId: WorkerId
  readonly workerEpoch: number
  /** What people wanted of the worker last. */
  readonly service: ServiceRecord
  readonly recovered: ReadonlyMap<StorageDirectory, RecoveredDirectory>
}

export async function openDirectories(
  settings: OpenDirectoriesSettings,
): Promise<OpenedDirectories> {
  const { directories } = settings
  try {
    return await open(settings)
  } catch (error) {
    await Promise.allSettled(directories.map((each) => each.close()))
    throw error
  }
}

async function open(settings: OpenDirectoriesSettings): Promise<OpenedDirectories> {
  const { world, directories, clusterId, logger } = settings
  const usable = (each: StorageDirectory) => each.health !== 'failed'
  // In the order of the configuration, whichever disk answers first.
  const identities = new Map<StorageDirectory, DirectoryIdentity | undefined>(
    directories.map((each) => [each, undefined]),
  )
  const answered = new Set<StorageDirectory>()
  await forEach(directories, async (directory) => {
    try {
      await directory.lock()
    } finally {
      // A disk that takes no writes still says whose it is.
      identities.set(directory, await readIdentity(directory.disk, directory.layout))
      answered.add(directory)
    }
    await directory.chooseIo()
  })
  const known = [...identities.values()].filter((each) => each !== undefined)
  checkIdentities(identities, clusterId)
  if (known.length === 0) refuseToGuess(directories, answered)
  const workerId = known[0]?.workerId ?? parseWorkerId(`worker-${randomHex(world.random, 8)}`)
  const workerEpoch = Math.max(0, ...known.map((each) => each.workerEpoch)) + 1
  await forEach(directories.filter(usable), (directory) =>
    writeIdentity(directory.disk, directory.layout, { workerId, clusterId, workerEpoch }),
  )
  const services: ServiceRecord[] = []
  await forEach(directories.filter(usable), async ({ disk, layout }) => {
    services.push(await readService(disk, layout, logger))
  })
  const bootId = await world.disk.bootId()
  const recovered = new Map<StorageDirectory, RecoveredDirectory>()
  await forEach(directories.filter(usable), async (directory) => {
    recovered.set(directory, await recoverOne(settings, directory, { bootId, workerEpoch }))
  })
  if (recovered.size === 0) {
    const reasons = directories.map((each) => `${each.path} (${reasonOf(each)})`).join(', ')
    throw new ShuffleError(
      'DISK_FAILED',
      `none of the data directories could be opened: ${reasons}; check that each can be made and written by this user and that its disk answers, or name others in data-directories`,
      {
        cause: directories[0]?.failure,
        fields: { directories: directories.map((each) => each.path).join(', ') },
      },
    )
  }
  return { workerId, workerEpoch, service: latestService(services), recovered }
}

/**
 * A disk that is silent may know who the worker is. With a new id it would meet its old one when that
 * disk is back, and serve nothing.
 */
function refuseToGuess(
  directories: readonly StorageDirectory[],
  answered: ReadonlySet<StorageDirectory>,
): void {
  const silent = directories.filter((each) => !answered.has(each))
  if (silent.length === 0 || silent.length === directories.length) return
  const reasons = silent.map((each) => `${each.path} (${reasonOf(each)})`).join(', ')
  throw new ShuffleError(
    'DISK_FAILED',
    `who this worker is can't be read from ${reasons}, and its other data directories are new; repair the disk, or take it out of data-directories to begin as a new worker`,
    {
      cause: silent[0]?.failure,
      fields: { directories: silent.map((each) => each.path).join(', ') },
    },
  )
}

/** What failed there, in the system's words: `open: EACCES`. */
function reasonOf({ failure }: StorageDirectory): string {
  const code = systemCodeOf(failure)
  const operation = failure instanceof ShuffleError ? failure.fields['operation'] : undefined
  if (code === undefined || typeof operation !== 'string') return failure?.message ?? 'unknown'
  return `${operation}: ${code}`
}

async function recoverOne(
  settings: OpenDirectoriesSettings,
  directory: StorageDirectory,
  session: { readonly bootId: string | undefined; readonly workerEpoch: number },
): Promise<RecoveredDirectory> {
  const { disk, layout } = directory
  const logger = settings.logger.child({ directory: directory.path })
  const found = await recoverDirectory({ disk, layout, logger, ...session })
  const log = new SharedLog({
    disk,
    layout,
    logger,
    nextOrdinal: () => directory.nextOrdinal(),
    segmentSizeBytes: settings.segmentSizeBytes,
    sync: settings.sync,
    onDeleted: (ordinal, sizeBytes) => {
      found.journal.state.forgetFile(ordinal)
      directory.space.freed(sizeBytes)
      directory.noteSpace()
    },
  })
  for (const segment of found.segments) {
    log.adopt(segment.ordinal, segment.sizeBytes, segment.liveCount)
  }
  directory.attach({ journal: found.journal, log, ordinalMax: found.ordinalMax })
  await directory.sampleSpace()
  return found
}

/** A disk that fails is given up; everything else refuses the start. */
async function forEach(
  directories: readonly StorageDirectory[],
  action: (directory: StorageDirectory) => Promise<void>,
): Promise<void> {
  const results = await Promise.allSettled(directories.map(action))
  for (const [index, result] of results.entries()) {
    if (result.status === 'fulfilled') continue
    const error: unknown = result.reason
    const directory = directories[index]
    if (directory === undefined || !isShuffleError(error, 'DISK_FAILED', 'NO_SPACE')) throw error
    directory.giveUp(error)
  }
}

function checkIdentities(
  identities: ReadonlyMap<StorageDirectory, DirectoryIdentity | undefined>,
  clusterId: ClusterId,
): void {
  let first: { readonly path: string; readonly workerId: WorkerId } | undefined
  for (const [{ path }, identity] of identities) {
    if (identity === undefined) continue
    if (identity.clusterId !== clusterId) {
      throw new ShuffleError(
        'INVALID_ARGUMENT',
        `the data directory ${path} belongs to cluster ${identity.clusterId}, this worker to ${clusterId}; configure another directory or the right cluster id`,
        { fields: { directory: path } },
      )
    }
    first ??= { path, workerId: identity.workerId }
    if (identity.workerId !== first.workerId) {
      throw new ShuffleError(
        'INVALID_ARGUMENT',
        `the data directories ${first.path} and ${path} belong to different workers, ${first.workerId} and ${identity.workerId}; configure those of one worker`,
        { fields: { directory: path } },
      )
    }
  }
}
