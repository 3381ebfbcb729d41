// What the worker needs of its process, checked before anything is opened: threads for file calls,
// and file descriptors. Both would otherwise show as hangs and failed reads hours later.

import { ShuffleError } from '../client/common/errors.ts'
import { diskOperationsInFlightMax } from './storage/disk-operation.ts'

/** Node's own number of threads for file calls and name look-ups, when nothing is set. */
const threadsDefault = 4
/** Name look-ups and the like, beside the disks. */
const threadsBesideDisks = 4
/** Connections of the HTTP port (256), ports, logs, journals, locks, and what the libraries hold. */
const descriptorsBeside = 320

/** How many threads file calls need so that a hung disk leaves enough for the others. */
export function threadsNeeded(diskOperationsMax: number): number {
  return diskOperationsMax + threadsBesideDisks
}

/** The same for disks of these kinds. */
export function threadsNeededFor(kinds: readonly ('ssd' | 'hdd')[]): number {
  return threadsNeeded(diskOperationsInFlightMax(kinds))
}

/** The size that the thread pool of a process with this environment has. */
export function threadPoolSize(environment: Readonly<Record<string, string | undefined>>): number {
  const size = Number(environment['UV_THREADPOOL_SIZE'])
  return Number.isInteger(size) && size > 0 ? Math.min(size, 1024) : threadsDefault
}

export interface DescriptorNeeds {
  readonly connectionsMax: number
  readonly openWritesMax: number
  readonly openFilesMax: number
}

/**
 * Throws when the limit of the process, as /proc/self/limits tells it, is too low. A text that tells
 * no limit passes: then nobody knows.
 */
export function checkDescriptors(limitsText: string, needs: DescriptorNeeds): void {
  const match = /^Max open files\s+(\d+|unlimited)/m.exec(limitsText)
  const text = match?.[1]
  if (text === undefined || text === 'unlimited') return
  const limit = Number(text)
  const { connectionsMax, openWritesMax, openFilesMax } = needs
  const needed = connectionsMax + openWritesMax + openFilesMax + descriptorsBeside
  if (limit >= needed) return
  throw new ShuffleError(
    'INVALID_ARGUMENT',
    `the worker may need ${String(needed)} file descriptors (connections-max ${String(connectionsMax)}, open-writes-max ${String(openWritesMax)}, open-files-max ${String(openFilesMax)}, and ${String(descriptorsBeside)} more), the process may open ${text}: raise the limit (ulimit -n ${String(needed)}) or lower one of these`,
    { fields: { needed, limit } },
  )
}
