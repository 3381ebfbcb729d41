// What people want of the worker (in service, excluded, draining), kept in each of its data
// directories, so that neither its own restart nor the manager's forgets it. One small checksummed
// file, replaced as a whole and synced; absent in a worker that nobody ever took out of service.

import { crc32 } from '@node-rs/crc32'
import {
  serviceStates,
  servingFromTheStart,
  type ServiceRecord,
} from '../../client/manager/schemas.ts'
import type { Logger } from '../../client/common/log.ts'
import type { DirectoryLayout } from './directory-layout.ts'
import { systemCodeOf } from './disk-operation.ts'
import { ignoreMissing } from './journal.ts'
import type { QueuedDisk, QueuedFile } from './queued-disk.ts'
import type { DiskHealth } from './storage-types.ts'

/** Longer than any record: the reason has at most 500 characters. */
const recordLengthMax = 8192

export function encodeService({ state, reason, number }: ServiceRecord): Uint8Array {
  const text = JSON.stringify({ state, reason, number })
  return Buffer.from(`${text}\n${checksumText(text)}\n`)
}

/** Undefined when it is damaged. */
export function decodeService(bytes: Uint8Array): ServiceRecord | undefined {
  const match = /^(\{[^\n]*\})\n([0-9a-f]{8})\n$/.exec(Buffer.from(bytes).toString())
  const [, text = '', checksum] = match ?? []
  if (match === null || checksumText(text) !== checksum) return undefined
  const { state, reason, number } = JSON.parse(text) as Partial<ServiceRecord>
  const isWhole =
    serviceStates.some((known) => known === state) &&
    typeof reason === 'string' &&
    Number.isSafeInteger(number)
  return isWhole ? ({ state, reason, number } as ServiceRecord) : undefined
}

/**
 * What the directory says; of a new or a damaged one that the worker serves. What a death left of a
 * record that was being written goes.
 */
export async function readService(
  disk: QueuedDisk,
  layout: DirectoryLayout,
  logger: Logger,
): Promise<ServiceRecord> {
  await disk.unlink(layout.serviceNew).catch(ignoreMissing)
  let file: QueuedFile
  try {
    file = await disk.open(layout.service, 'read')
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return servingFromTheStart
    throw error
  }
  try {
    const target = Buffer.alloc(recordLengthMax)
    const count = await file.read(target, 0).result
    const record = decodeService(target.subarray(0, count))
    if (record === undefined) {
      logger.warn(
        { path: layout.service },
        'the file that says whether the worker is in service is damaged and is ignored; if it was excluded or draining, say so again',
      )
    }
    return record ?? servingFromTheStart
  } finally {
    await file.close()
  }
}

/** Durable when it resolves. */
export async function writeService(
  disk: QueuedDisk,
  layout: DirectoryLayout,
  record: ServiceRecord,
): Promise<void> {
  await disk.unlink(layout.serviceNew).catch(ignoreMissing)
  const file = await disk.open(layout.serviceNew, 'create')
  try {
    await file.write([encodeService(record)], 0).result
    await file.sync()
  } finally {
    await file.close()
  }
  await disk.rename(layout.serviceNew, layout.service)
  await disk.syncDirectory(layout.path)
}

interface ServiceDirectory {
  readonly disk: QueuedDisk
  readonly layout: DirectoryLayout
  readonly isOpen: boolean
  readonly health: DiskHealth
}

/** In all directories, as far as they can be written; whether in any. Never rejects. */
async function writeToAll(
  directories: readonly ServiceDirectory[],
  record: ServiceRecord,
  logger: Logger,
): Promise<boolean> {
  const kept = await Promise.allSettled(
    directories.map(({ disk, layout }) => writeService(disk, layout, record)),
  )
  if (kept.some(({ status }) => status === 'fulfilled')) return true
  logger.error(
    { ...record },
    'that the worker is in or out of service could not be written to any disk: a restart forgets it, unless a disk takes writes again before',
  )
  return false
}

/**
 * What is wanted now, and what of it is kept. One write at a time, since all go over one file; of
 * those that are wanted during a write only the last is written after it.
 */
export class KeptService {
  readonly #directories: readonly ServiceDirectory[]
  readonly #logger: Logger
  #wanted: ServiceRecord
  #kept: ServiceRecord
  /** Whether some disk has what counts as kept. */
  #isWritten = true
  #writing: Promise<void> | undefined

  constructor(
    directories: readonly ServiceDirectory[],
    logger: Logger,
    opened: ServiceRecord = servingFromTheStart,
  ) {
    this.#wanted = opened
    this.#kept = opened
    this.#directories = directories
    this.#logger = logger
  }

  get wanted(): ServiceRecord {
    return this.#wanted
  }

  /**
   * Holds at once; resolves to what is kept, `record` or one that is wanted since, on the disks
   * that answer. An older record than the wanted one changes nothing. Never rejects.
   */
  async set(record: ServiceRecord): Promise<ServiceRecord> {
    if (record.number > this.#wanted.number) this.#wanted = record
    while (this.#kept.number < record.number) {
      this.#writing ??= this.#writeWanted()
      await this.#writing
    }
    return this.#kept
  }

  /** A disk takes writes again: what no disk took is written now. */
  writeAgain(): void {
    if (!this.#isWritten) this.#writing ??= this.#writeWanted()
  }

  async #writeWanted(): Promise<void> {
    const record = this.#wanted
    const usable = this.#directories.filter((each) => each.isOpen && each.health !== 'failed')
    this.#isWritten = await writeToAll(usable, record, this.#logger)
    this.#kept = record
    this.#writing = undefined
  }
}

/** Of what the directories say, the latest. */
export function latestService(records: Iterable<ServiceRecord>): ServiceRecord {
  let latest = servingFromTheStart
  for (const record of records) if (record.number > latest.number) latest = record
  return latest
}

function checksumText(text: string): string {
  return crc32(Buffer.from(text)).toString(16).padStart(8, '0')
}
