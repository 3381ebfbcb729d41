// The journal of one data directory: checksummed records, appended in order, many callers' in one
// write. A torn tail is where the last process died; it is cut by rewriting. The file is replaced as
// a whole (a new one renamed over it) at each start, when most of it is history, and after a write
// whose outcome isn't known.
//
//   file:    | magic u32 | version u16 | its complement u16 | record | record | …
//   record:  | body length u32 | CRC32 of the body u32 | body |

import { crc32 } from '@node-rs/crc32'
import type { Logger } from '../../client/common/log.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { PartitionKey } from '../../client/common/ids.ts'
import { ByteReader, ByteWriter } from './byte-codec.ts'
import { isDiskFull, systemCodeOf } from './disk-operation.ts'
import {
  decodeJournalRecord,
  encodeJournalRecord,
  JournalState,
  type JournalRecord,
  type PartitionPlace,
} from './journal-records.ts'
import type { QueuedDisk, QueuedFile } from './queued-disk.ts'

const journalMagic = 0x534c_504a // SLPJ
const journalVersion = 1
const headerLength = 8
const recordHeaderLength = 8
/** Far above any record; keeps a damaged length from being believed. */
const recordLengthMax = 1024 * 1024
/** Below this size rewriting gains nothing. */
const compactAboveBytes = 4 * 1024 * 1024
/** Replay reads, and compaction writes, in pieces of this size. */
const pieceBytes = 1024 * 1024

export interface JournalSettings {
  readonly disk: QueuedDisk
  /** Of the journal's directory, of the journal, and of the one that takes its place. */
  readonly directory: string
  readonly path: string
  readonly newPath: string
  readonly logger: Logger
}

interface Pending {
  readonly record: JournalRecord
  readonly sync: boolean
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export class Journal {
  readonly state: JournalState
  readonly #settings: JournalSettings
  #file: QueuedFile | undefined
  #end = 0
  #compactedBytes = 0
  readonly #pending: Pending[] = []
  #running: Promise<void> | undefined

  constructor(settings: JournalSettings, state: JournalState) {
    this.#settings = settings
    this.state = state
  }

  /** Resolves when the record is written (and synced): then it is part of {@link state}. */
  append(record: JournalRecord, options: { readonly sync: boolean }): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ record, sync: options.sync, resolve, reject })
      this.#running ??= this.#run()
    })
  }

  /**
   * {@link append}s that a partition was told to release. That stays so: what can't be written now, on a
   * full disk for one, is part of {@link state} all the same, so the next file says it.
   */
  async release(place: PartitionPlace, key: PartitionKey): Promise<void> {
    const record = { type: 'released', place, key } as const
    try {
      await this.append(record, { sync: false })
    } catch (error) {
      this.state.apply(record)
      throw error
    }
  }

  /** Replaces the file by what {@link state} says. */
  async rewrite(): Promise<void> {
    const { disk, newPath, path, directory } = this.#settings
    const old = this.#file
    this.#file = undefined
    old?.closeQuietly()
    await disk.unlink(newPath).catch(ignoreMissing)
    const file = await disk.open(newPath, 'create')
    try {
      this.#end = await writeAll(file, this.state)
      await file.sync()
      await disk.rename(newPath, path)
      await disk.syncDirectory(directory)
    } catch (error) {
      file.closeQuietly()
      // What there was no room for leaves it to others.
      if (isDiskFull(error)) await disk.unlink(newPath).catch(() => undefined)
      throw error
    }
    this.#file = file
    this.#compactedBytes = this.#end
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await this.#running
    await this.#file?.close()
    this.#file = undefined
  }

  async #run(): Promise<void> {
    // One turn later, so that all commits of this turn share a write.
    await Promise.resolve()
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0)
      try {
        await this.#write(batch)
      } catch (error) {
        this.#abandon()
        for (const each of batch) each.reject(error as Error)
        continue
      }
      for (const each of batch) this.state.apply(each.record)
      for (const each of batch) each.resolve()
    }
    this.#running = undefined
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    if (this.#file === undefined || this.#mostIsHistory()) await this.rewrite()
    const file = this.#file
    if (file === undefined) throw new ShuffleError('DISK_FAILED', 'the journal is closed')
    const bytes = encodeAll(batch.map((each) => each.record))
    await file.write([bytes], this.#end).result
    if (batch.some((each) => each.sync)) await file.sync()
    this.#end += bytes.byteLength
  }

  #mostIsHistory(): boolean {
    return this.#end > compactAboveBytes && this.#end > 4 * this.#compactedBytes
  }

  /** What the failed write left is unknown: the next append begins with a new file. */
  #abandon(): void {
    this.#file?.closeQuietly()
    this.#file = undefined
  }
}

export interface Replayed {
  readonly state: JournalState
  /** Whether a torn or damaged tail was left out. */
  readonly isTorn: boolean
}

/** Reads a journal, up to its first damaged record. UNSUPPORTED_VERSION for one of another version. */
export async function replayJournal(disk: QueuedDisk, path: string): Promise<Replayed> {
  const state = new JournalState()
  let file: QueuedFile
  try {
    file = await disk.open(path, 'read')
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return { state, isTorn: false }
    throw error
  }
  try {
    const sizeBytes = await file.sizeBytes()
    const header = Buffer.alloc(headerLength)
    const got = await file.read(header, 0).result
    if (got < headerLength || !checkHeader(header, path)) return { state, isTorn: true }
    const end = await replayRecords(file, sizeBytes, state)
    return { state, isTorn: end < sizeBytes }
  } finally {
    await file.close()
  }
}

/**
 * False for what is no journal: a header that was never written whole, or a damaged one. The directory is
 * the truth and the journal an index to it, so damage never keeps a worker from starting; only a version
 * that is vouched for by its complement does.
 */
function checkHeader(header: Uint8Array, path: string): boolean {
  const reader = new ByteReader(header)
  if (reader.u32() !== journalMagic) return false
  const version = reader.u16()
  if (version === journalVersion) return true
  if (reader.u16() !== complementOf(version)) return false
  throw new ShuffleError(
    'UNSUPPORTED_VERSION',
    `the journal ${path} has version ${String(version)}, this worker reads ${String(journalVersion)}; start the worker that wrote it, or move the directory away`,
    { fields: { version, path } },
  )
}

function complementOf(version: number): number {
  return ~version & 0xffff
}

async function replayRecords(
  file: QueuedFile,
  sizeBytes: number,
  state: JournalState,
): Promise<number> {
  let position = headerLength
  let piece = Buffer.alloc(0)
  const target = Buffer.allocUnsafeSlow(pieceBytes)
  for (;;) {
    const taken = applyRecords(piece, state)
    position += taken.bytes
    const rest = piece.subarray(taken.bytes)
    const readFrom = position + rest.byteLength
    if (taken.isDamaged || readFrom >= sizeBytes) return position
    const got = await file.read(target, readFrom).result
    if (got === 0) return position
    piece = Buffer.concat([rest, target.subarray(0, got)])
  }
}

function applyRecords(
  bytes: Buffer,
  state: JournalState,
): { readonly bytes: number; readonly isDamaged: boolean } {
  let at = 0
  while (bytes.byteLength - at >= recordHeaderLength) {
    const length = bytes.readUInt32BE(at)
    if (length === 0 || length > recordLengthMax) return { bytes: at, isDamaged: true }
    const begin = at + recordHeaderLength
    if (begin + length > bytes.byteLength) break
    const body = bytes.subarray(begin, begin + length)
    if (crc32(body) !== bytes.readUInt32BE(at + 4)) return { bytes: at, isDamaged: true }
    state.apply(decodeJournalRecord(body))
    at = begin + length
  }
  return { bytes: at, isDamaged: false }
}

async function writeAll(file: QueuedFile, state: JournalState): Promise<number> {
  const header = new ByteWriter(headerLength)
    .u32(journalMagic)
    .u16(journalVersion)
    .u16(complementOf(journalVersion)).bytes
  await file.write([header], 0).result
  let end = headerLength
  let batch: JournalRecord[] = []
  const flush = async () => {
    const bytes = encodeAll(batch)
    batch = []
    await file.write([bytes], end).result
    end += bytes.byteLength
  }
  for (const record of state.records()) {
    batch.push(record)
    if (batch.length * 256 >= pieceBytes) await flush()
  }
  await flush()
  return end
}

function encodeAll(records: readonly JournalRecord[]): Uint8Array {
  const writer = new ByteWriter(256 * records.length + 64)
  for (const record of records) {
    const body = encodeJournalRecord(record)
    writer.u32(body.byteLength).u32(crc32(body)).append(body)
  }
  return writer.bytes
}

export function ignoreMissing(error: unknown): undefined {
  if (systemCodeOf(error) !== 'ENOENT') throw error
  return undefined
}
