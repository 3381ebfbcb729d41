// The kinds of file calls, how many of each a disk takes at once, and how the system's errors read
// to the rest of the worker.

import { ShuffleError, type ErrorFields } from '../../client/common/errors.ts'
import type { DiskKind } from './storage-types.ts'

export const diskOperationKinds = [
  'open',
  'read',
  'write',
  'sync',
  'truncate',
  'close',
  'rename',
  'unlink',
  'list',
  'status',
  'space',
  'make-directory',
  'sync-directory',
  'probe',
] as const

export type DiskOperationKind = (typeof diskOperationKinds)[number]

/** Operations of one lane wait for each other; a free slot goes to the lanes in turn. */
export type DiskLane = 'read' | 'write' | 'control'

export const diskLanes: readonly DiskLane[] = ['read', 'write', 'control']

export function laneOf(kind: DiskOperationKind): DiskLane {
  if (kind === 'read') return 'read'
  return kind === 'write' || kind === 'sync' || kind === 'truncate' ? 'write' : 'control'
}

export interface DiskLimits extends Readonly<Record<DiskLane, number>> {
  /** All lanes together. */
  readonly total: number
}

/**
 * An SSD is busy with eight; of those at most half write, which is enough to fill it. A hard disk
 * has one head: a second read keeps it from idling between two, a second write would only split
 * extents.
 */
export const diskLimits: Readonly<Record<DiskKind, DiskLimits>> = {
  ssd: { total: 8, read: 8, write: 4, control: 4 },
  hdd: { total: 3, read: 2, write: 1, control: 1 },
}

/** The probe has a slot of its own, so that it says something when all others hang. */
const probeSlots = 1

/** Sum over these disks: the thread pool needs as many, and four for everything else. */
export function diskOperationsInFlightMax(kinds: readonly DiskKind[]): number {
  return kinds.reduce((sum, kind) => sum + diskLimits[kind].total + probeSlots, 0)
}

/** The system's code (ENOENT, EIO, …) of a {@link diskError} or of a plain system error. */
export function systemCodeOf(error: unknown): string | undefined {
  if (error instanceof ShuffleError) {
    const code = error.fields['systemCode']
    return typeof code === 'string' ? code : undefined
  }
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

const fullCodes: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])
const brokenCodes: ReadonlySet<string> = new Set(['EIO', 'EROFS', 'ENXIO', 'ENODEV', 'ESTALE'])

export function isDiskFull(error: unknown): boolean {
  return fullCodes.has(systemCodeOf(error) ?? '')
}

/** Whether the error speaks of the disk, not of one file. */
export function isDiskBroken(error: unknown): boolean {
  return brokenCodes.has(systemCodeOf(error) ?? '')
}

/** A bad spot: what lies there can't be read, other files may. A disk that is all bad shows elsewhere. */
export function isUnreadable(error: unknown): boolean {
  return systemCodeOf(error) === 'EIO'
}

/** The system's error as ours: NO_SPACE when the disk is full, else DISK_FAILED. */
export function diskError(
  error: unknown,
  what: { readonly kind: DiskOperationKind; readonly directory: string },
): ShuffleError {
  if (error instanceof ShuffleError) return error
  const systemCode = systemCodeOf(error)
  const fields: ErrorFields = { operation: what.kind, directory: what.directory, systemCode }
  const isFull = isDiskFull(error)
  return new ShuffleError(
    isFull ? 'NO_SPACE' : 'DISK_FAILED',
    isFull
      ? `the disk of ${what.directory} is full; free space or add a data directory`
      : `${what.kind} failed on the disk of ${what.directory}; see the cause and check the disk`,
    { cause: error, fields },
  )
}
