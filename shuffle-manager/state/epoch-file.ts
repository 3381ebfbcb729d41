// All that survives a restart of the manager: its epoch. max(stored + 1, wall clock in ms), so that
// losing the file is harmless. Owned by the manager, which holds the directory's lock while it runs.

import { ShuffleError, isShuffleError } from '../../client/common/errors.ts'
import type { DirectoryLock, Disk } from '../../client/common/disk.ts'

const fileName = 'manager-epoch'

/** A number of 16 digits and a newline. */
const fileBytesMax = 64

export interface OpenedEpoch {
  readonly managerEpoch: number
  /** Lets another manager start in this directory. */
  close(): Promise<void>
}

interface EpochPlace {
  readonly disk: Disk
  readonly directory: string
  readonly wallMs: number
}

/** Throws INVALID_ARGUMENT when another manager runs in this directory, DISK_FAILED when it can't be used. */
export async function openEpoch(place: EpochPlace): Promise<OpenedEpoch> {
  try {
    return await lockAndRaise(place)
  } catch (error) {
    if (isShuffleError(error)) throw error
    const { directory } = place
    const reason = error instanceof Error ? error.message : String(error)
    throw new ShuffleError(
      'DISK_FAILED',
      `the state directory ${directory} can't be used: ${reason}; check that this user can make and write it, or name another with --state-directory`,
      { cause: error, fields: { directory } },
    )
  }
}

async function lockAndRaise({ disk, directory, wallMs }: EpochPlace): Promise<OpenedEpoch> {
  await disk.makeDirectory(directory)
  const lock = await disk.lock(directory)
  if (lock === undefined) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `another shuffle manager runs in ${directory}: stop it, or give this one a --state-directory of its own`,
      { fields: { directory } },
    )
  }
  try {
    const path = `${directory}/${fileName}`
    const managerEpoch = Math.max((await readEpoch(disk, path)) + 1, wallMs)
    await writeEpoch(disk, { directory, path, managerEpoch })
    return { managerEpoch, close: () => lock.release() }
  } catch (error) {
    await releaseQuietly(lock)
    throw error
  }
}

/** 0 when there is none, or it can't be read: the clock stands in for it. */
async function readEpoch(disk: Disk, path: string): Promise<number> {
  if ((await disk.status(path)) === undefined) return 0
  const file = await disk.open(path, 'read')
  try {
    const target = new Uint8Array(fileBytesMax)
    const length = await file.read(target, 0)
    const text = Buffer.from(target.subarray(0, length)).toString('latin1').trim()
    return /^[0-9]{1,15}$/.test(text) ? Number(text) : 0
  } finally {
    await file.close()
  }
}

async function writeEpoch(
  disk: Disk,
  target: { readonly directory: string; readonly path: string; readonly managerEpoch: number },
): Promise<void> {
  const partial = `${target.path}.partial`
  if ((await disk.status(partial)) !== undefined) await disk.unlink(partial)
  const file = await disk.open(partial, 'create')
  try {
    await file.write([Buffer.from(`${String(target.managerEpoch)}\n`)], 0)
    await file.sync()
  } finally {
    await file.close()
  }
  await disk.rename(partial, target.path)
  await disk.syncDirectory(target.directory)
}

async function releaseQuietly(lock: DirectoryLock): Promise<void> {
  try {
    await lock.release()
  } catch {
    // The error that brought us here says more.
  }
}
