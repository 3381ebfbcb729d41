// Opens one data directory after whatever ended the last process: exactly the committed partitions
// are there afterwards, and the rest is deleted. The directory is the truth and the journal an index
// to it. Every step may itself be interrupted and is then done again by the next start: files are
// deleted first, and the journal is replaced last.
//
//   file       journal       then
//   .partial   any           deleted: was never committed
//   .data      committed     kept, or deleted if it wasn't synced and the machine has rebooted
//   .data      released      deleted
//   .data      nothing       judged by its footer: kept, or deleted when damaged or not synced;
//                            left alone where the disk can't read it (EIO)
//   nothing    committed     lost
//   record     (segments)    the same; what follows the last journaled record is scanned

import { isShuffleError } from '../../client/common/errors.ts'
import type { PartitionKey } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { corrupt } from './byte-codec.ts'
import { dataPath, parseFileName, segmentPath, type DirectoryLayout } from './directory-layout.ts'
import { isUnreadable } from './disk-operation.ts'
import { ignoreMissing, Journal, replayJournal } from './journal.ts'
import type { JournalState, PartitionPlace } from './journal-records.ts'
import { decodeFooter, decodeTable, footerLength } from './partition-format.ts'
import type { QueuedDisk } from './queued-disk.ts'
import { recoverSegment, type FoundPartition, type ScannedSegment } from './segment-recovery.ts'
import type { LossCause } from './storage-types.ts'

export interface RecoverySettings {
  readonly disk: QueuedDisk
  readonly layout: DirectoryLayout
  readonly logger: Logger
  readonly bootId: string | undefined
  readonly workerEpoch: number
}

export interface RecoveredSegment {
  readonly ordinal: number
  readonly sizeBytes: number
  readonly liveCount: number
}

export interface RecoveredDirectory {
  readonly journal: Journal
  readonly partitions: readonly FoundPartition[]
  readonly segments: readonly RecoveredSegment[]
  readonly lost: readonly { readonly key: PartitionKey; readonly cause: LossCause }[]
  readonly released: readonly PartitionKey[]
  readonly ordinalMax: number
}

export async function recoverDirectory(settings: RecoverySettings): Promise<RecoveredDirectory> {
  const { disk, layout, logger } = settings
  await disk.makeDirectory(layout.partitions)
  await disk.makeDirectory(layout.log)
  const { state, isTorn } = await replayJournal(disk, layout.journal)
  if (isTorn) logger.warn({ path: layout.journal }, 'the torn tail of a journal is cut')
  return new Recovery(settings, state).run()
}

class Recovery {
  readonly #settings: RecoverySettings
  readonly #state: JournalState
  readonly #isSameBoot: boolean
  readonly #released: readonly PartitionKey[]
  readonly #lost: { key: PartitionKey; cause: LossCause }[] = []
  readonly #segments: RecoveredSegment[] = []
  #ordinalMax: number

  constructor(settings: RecoverySettings, state: JournalState) {
    const { bootId } = settings
    this.#settings = settings
    this.#state = state
    this.#isSameBoot = bootId !== undefined && bootId !== '' && bootId === state.bootId
    this.#released = [...state.released.values()].map((each) => each.key)
    this.#ordinalMax = state.ordinalMax
  }

  async run(): Promise<RecoveredDirectory> {
    const { disk, layout, logger, bootId, workerEpoch } = this.#settings
    this.#dropNotDurable()
    await this.#recoverFiles()
    await this.#recoverSegments()
    const state = this.#state
    state.apply({ type: 'session', bootId: bootId ?? '', workerEpoch })
    const journal = new Journal(
      { disk, directory: layout.path, path: layout.journal, newPath: layout.journalNew, logger },
      state,
    )
    await this.#rewrite(journal)
    return {
      journal,
      partitions: [...state.committed.values()],
      segments: this.#segments,
      lost: this.#lost,
      released: this.#released,
      ordinalMax: this.#ordinalMax,
    }
  }

  /**
   * A full disk keeps the old one, from which the next start comes to the same; the first record that
   * there is room for begins the new one.
   */
  async #rewrite(journal: Journal): Promise<void> {
    try {
      await journal.rewrite()
    } catch (error) {
      if (!isShuffleError(error, 'NO_SPACE')) throw error
      const { layout, logger } = this.#settings
      logger.warn({ path: layout.journal, error }, 'a full disk has no room for a new journal')
    }
  }

  /** After another boot only what was synced is believed, whatever the files look like. */
  #dropNotDurable(): void {
    if (this.#isSameBoot) return
    for (const { place, facts, isDurable } of [...this.#state.committed.values()]) {
      if (!isDurable) this.#lose(place, facts.key, 'not-durable')
    }
  }

  #lose(place: PartitionPlace, key: PartitionKey, cause: LossCause): void {
    this.#lost.push({ key, cause })
    // For files this also says that what may still be there is to be deleted.
    this.#state.apply({ type: 'released', place, key })
  }

  async #recoverFiles(): Promise<void> {
    const { disk, layout, logger } = this.#settings
    const present = new Set<number>()
    for (const name of await disk.list(layout.partitions)) {
      const parsed = parseFileName(name)
      if (parsed === undefined || parsed.kind === 'segment') {
        logger.warn({ directory: layout.partitions, name }, 'a file of another kind is left alone')
        continue
      }
      this.#ordinalMax = Math.max(this.#ordinalMax, parsed.ordinal)
      if (parsed.kind === 'partial') await disk.unlink(`${layout.partitions}/${name}`)
      else present.add(parsed.ordinal)
    }
    await this.#deleteReleased(present)
    const known = new Set<number>()
    for (const { place, facts } of [...this.#state.committed.values()]) {
      if (place.kind !== 'file') continue
      known.add(place.ordinal)
      if (!present.has(place.ordinal)) {
        this.#lose(place, facts.key, 'file-missing')
        this.#state.forgetFile(place.ordinal)
      }
    }
    for (const ordinal of present) if (!known.has(ordinal)) await this.#adoptFile(ordinal)
  }

  async #deleteReleased(present: Set<number>): Promise<void> {
    const { disk, layout } = this.#settings
    for (const { place } of [...this.#state.released.values()]) {
      if (present.delete(place.ordinal)) {
        await disk.unlink(dataPath(layout, place.ordinal)).catch(ignoreMissing)
      }
      this.#state.forgetFile(place.ordinal)
    }
  }

  /** A file that was renamed, and the process ended before the journal had it. */
  async #adoptFile(ordinal: number): Promise<void> {
    const { disk, layout, logger } = this.#settings
    const path = dataPath(layout, ordinal)
    try {
      const found = await readFacts(disk, path, ordinal)
      if (this.#isSameBoot || found.facts.durability === 'sync') {
        this.#state.apply({ type: 'committed', ...found })
        return
      }
      this.#lost.push({ key: found.facts.key, cause: 'not-durable' })
    } catch (error) {
      if (isShuffleError(error, 'UNSUPPORTED_VERSION')) {
        logger.warn({ path, error }, 'a partition of another version is left alone')
        return
      }
      if (isUnreadable(error)) {
        logger.warn({ path, error }, 'a file that cannot be read is left alone; check the disk')
        return
      }
      if (!isShuffleError(error, 'DATA_CORRUPT')) throw error
      logger.warn({ path, error }, 'a damaged file that the journal does not know is deleted')
    }
    await disk.unlink(path)
  }

  async #recoverSegments(): Promise<void> {
    const { disk, layout, logger } = this.#settings
    const present = new Set<number>()
    for (const name of await disk.list(layout.log)) {
      const parsed = parseFileName(name)
      if (parsed?.kind !== 'segment') {
        logger.warn({ directory: layout.log, name }, 'a file of another kind is left alone')
        continue
      }
      this.#ordinalMax = Math.max(this.#ordinalMax, parsed.ordinal)
      present.add(parsed.ordinal)
      await this.#recoverSegment(parsed.ordinal)
    }
    for (const ordinal of [...this.#state.segmentEnds.keys()]) {
      if (present.has(ordinal)) continue
      for (const each of this.#committedIn(ordinal)) {
        this.#lose(each.place, each.facts.key, 'file-missing')
      }
      this.#state.forgetFile(ordinal)
    }
  }

  async #recoverSegment(ordinal: number): Promise<void> {
    const { disk, layout, logger } = this.#settings
    const path = segmentPath(layout, ordinal)
    const knownEnd = this.#state.segmentEnds.get(ordinal) ?? 0
    const scanned = await recoverSegment({ disk, path, ordinal, knownEnd, logger })
    this.#judgeSegment(ordinal, scanned)
    const liveCount = this.#committedIn(ordinal).length
    if (liveCount === 0 && !scanned.isForeign) {
      await disk.unlink(path)
      this.#state.forgetFile(ordinal)
      return
    }
    this.#state.apply({ type: 'segment', ordinal, end: scanned.end })
    if (scanned.isForeign) return
    this.#segments.push({ ordinal, sizeBytes: scanned.end, liveCount })
  }

  #judgeSegment(ordinal: number, scanned: ScannedSegment): void {
    for (const { place, facts } of this.#committedIn(ordinal)) {
      if (place.offset + place.byteLength > scanned.sizeBytes) {
        this.#lose(place, facts.key, 'file-missing')
      }
    }
    for (const found of scanned.found) {
      if (this.#isSameBoot || found.facts.durability === 'sync') {
        this.#state.apply({ type: 'committed', ...found })
      } else {
        this.#lost.push({ key: found.facts.key, cause: 'not-durable' })
      }
    }
  }

  #committedIn(ordinal: number): FoundPartition[] {
    const all = [...this.#state.committed.values()]
    return all.filter(({ place }) => place.kind === 'segment' && place.ordinal === ordinal)
  }
}

async function readFacts(disk: QueuedDisk, path: string, ordinal: number): Promise<FoundPartition> {
  const file = await disk.open(path, 'read')
  try {
    const byteLength = await file.sizeBytes()
    if (byteLength < footerLength) throw corrupt('the file is shorter than a footer')
    const tail = Buffer.alloc(footerLength)
    await file.read(tail, byteLength - footerLength).result
    const footer = decodeFooter(tail, byteLength)
    const bytes = Buffer.alloc(footer.tableLength)
    await file.read(bytes, byteLength - footerLength - footer.tableLength).result
    const { facts } = decodeTable(bytes, footer)
    return { place: { kind: 'file', ordinal, offset: 0, byteLength }, facts }
  } finally {
    await file.close()
  }
}
