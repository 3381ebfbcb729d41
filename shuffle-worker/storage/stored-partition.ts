// A committed partition and the pins of its readers. Its file is open while it has readers; a
// release waits for them, within a bound, and what is found damaged is given up for everyone.
//
//   committed --release--> releasing --last reader gone, or time is up--> (the store deletes it)
//       '------damaged, disk failed--> lost

import type { Clock } from '../../client/common/clock.ts'
import { assert } from '../../client/common/assert.ts'
import { isShuffleError, ShuffleError, type ErrorCode } from '../../client/common/errors.ts'
import type { AllocationId, PartitionKey } from '../../client/common/ids.ts'
import type { MemoryLedger } from '../memory/memory-ledger.ts'
import { systemCodeOf } from './disk-operation.ts'
import type { PartitionPlace } from './journal-records.ts'
import type { KeptIndex } from './kept-indexes.ts'
import { PartitionFile, type PartitionFileSettings, readAll } from './partition-file-reader.ts'
import type { PartitionFacts } from './partition-format.ts'
import type { StorageDirectory } from './storage-directory.ts'
import type {
  CommittedTotals,
  DiskRead,
  FileImage,
  LossCause,
  MapPartition,
  PartitionExtent,
  PartitionReader,
  PinnedFile,
  RegionIndex,
} from './storage-types.ts'

export interface StoredPartitionSettings {
  readonly directory: StorageDirectory
  readonly ledger: MemoryLedger
  readonly place: PartitionPlace
  readonly facts: PartitionFacts
  /** Its own from now on. */
  readonly kept?: KeptIndex | undefined
  readonly onLost: (partition: StoredPartition, cause: LossCause) => void
}

type State =
  | { readonly kind: 'committed' }
  | { readonly kind: 'releasing' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'lost'; readonly code: ErrorCode }

/** Segments end below 2^27 bytes, so that an offset makes a fraction that orders within them. */
const offsetScale = 2 ** 27

export class StoredPartition implements MapPartition {
  readonly directory: StorageDirectory
  readonly place: PartitionPlace
  readonly facts: PartitionFacts
  /** Kept: readers ask for them with every entry of their lists. */
  readonly totals: CommittedTotals
  readonly #settings: StoredPartitionSettings
  #state: State = { kind: 'committed' }
  #pins = 0
  #file: Promise<PartitionFile> | undefined
  #closing: Promise<void> = Promise.resolve()
  #onUnpinned: (() => void) | undefined

  constructor(settings: StoredPartitionSettings) {
    this.#settings = settings
    this.directory = settings.directory
    this.place = settings.place
    this.facts = settings.facts
    this.totals = totalsOf(settings)
  }

  get key(): PartitionKey {
    return this.facts.key
  }

  get allocation(): AllocationId {
    return this.facts.allocation
  }

  get extent(): PartitionExtent {
    const { ordinal, offset, byteLength } = this.place
    return { fileOrdinal: ordinal, offset, byteLength }
  }

  get fileOrder(): number {
    return this.place.ordinal + this.place.offset / offsetScale
  }

  get subpartitionCount(): number {
    return this.facts.subpartitionCount
  }

  get bufferSizeBytes(): number {
    return this.facts.bufferSizeBytes
  }

  get codec(): string {
    return this.facts.codec
  }

  get isReleasing(): boolean {
    return this.#state.kind === 'releasing' || this.#state.kind === 'expired'
  }

  get pinCount(): number {
    return this.#pins
  }

  async openReader(image?: FileImage): Promise<PartitionReader> {
    this.#checkServed('committed')
    this.#pins += 1
    const opening = (this.#file ??= PartitionFile.open(this.#fileSettings(), image))
    try {
      const file = await opening
      this.#checkServed('committed', 'releasing')
      return new StoredReader(this, file)
    } catch (error) {
      this.unpin()
      throw this.noted(error)
    }
  }

  async openFile(): Promise<PinnedFile> {
    this.#checkServed('committed')
    this.#pins += 1
    const { files } = this.directory
    try {
      const file = await files.acquire(this.place)
      return {
        read: (target, position) => readAll(file, { target, position }),
        close: () => {
          this.unpin()
          return files.recycle(this.place)
        },
      }
    } catch (error) {
      this.unpin()
      throw this.noted(error)
    }
  }

  async uncompressedBytes(): Promise<Float64Array> {
    this.#checkServed('committed')
    this.#pins += 1
    try {
      return await PartitionFile.uncompressedBytes(this.#fileSettings())
    } catch (error) {
      throw this.noted(error)
    } finally {
      this.unpin()
    }
  }

  /** From now on there are no new readers. Resolves when the last has gone, or time is up. */
  async release(options: { readonly clock: Clock; readonly timeoutMs: number }): Promise<void> {
    assert(!this.isReleasing, 'a partition is released once')
    if (this.#state.kind === 'committed') this.#state = { kind: 'releasing' }
    this.#settings.kept?.drop()
    if (this.#pins > 0) await this.#unpinned(options)
    if (this.#pins > 0) {
      this.#state = { kind: 'expired' }
      this.#closeFile()
    }
    await this.#closing
  }

  /** It can't be served any more; readers get `code`. */
  markLost(code: ErrorCode): void {
    if (this.#state.kind === 'committed') this.#state = { kind: 'lost', code }
    this.#settings.kept?.drop()
  }

  /** Throws unless readers that have begun may still read. */
  checkServed(): void {
    this.#checkServed('committed', 'releasing')
  }

  /** An error on its way to a reader: what damage it speaks of is noted first. */
  noted(error: unknown): unknown {
    if (systemCodeOf(error) === 'ENOENT') {
      this.#lose('file-missing', 'PARTITION_NOT_FOUND')
      return this.#error('PARTITION_NOT_FOUND', 'the file of the partition is gone', error)
    }
    if (isShuffleError(error, 'DATA_CORRUPT')) {
      this.#lose('data-corrupt', 'DATA_CORRUPT')
      return this.#error('DATA_CORRUPT', error.message, error)
    }
    return error
  }

  unpin(): void {
    this.#pins -= 1
    assert(this.#pins >= 0, 'a reader unpins once')
    if (this.#pins > 0) return
    this.#closeFile()
    this.#onUnpinned?.()
  }

  /** When the file has been closed after its last reader. */
  get closed(): Promise<void> {
    return this.#closing
  }

  #closeFile(): void {
    const file = this.#file
    this.#file = undefined
    if (file === undefined) return
    this.#closing = file.then((open) => open.close()).catch(() => undefined)
  }

  #unpinned(options: { readonly clock: Clock; readonly timeoutMs: number }): Promise<void> {
    return new Promise((resolve) => {
      const timer = options.clock.setTimer(options.timeoutMs, resolve)
      this.#onUnpinned = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  #fileSettings(): PartitionFileSettings {
    const { directory, ledger, place, facts, kept } = this.#settings
    return { files: directory.files, ledger, place, facts, kept }
  }

  #checkServed(...served: readonly State['kind'][]): void {
    const state = this.#state
    if (served.includes(state.kind)) return
    if (state.kind === 'lost') {
      throw this.#error(state.code, 'the partition is lost; its producer must run again')
    }
    throw this.#error('PARTITION_RELEASED', 'the partition is released')
  }

  #lose(cause: LossCause, code: ErrorCode): void {
    if (this.#state.kind !== 'committed') return
    this.markLost(code)
    this.#settings.onLost(this, cause)
  }

  #error(code: ErrorCode, message: string, cause?: unknown): ShuffleError {
    const fields = { ...this.key, directory: this.directory.path }
    return new ShuffleError(code, message, { fields, ...(cause === undefined ? {} : { cause }) })
  }
}

class StoredReader implements PartitionReader {
  readonly partition: StoredPartition
  readonly #file: PartitionFile
  #isClosed = false

  constructor(partition: StoredPartition, file: PartitionFile) {
    this.partition = partition
    this.#file = file
  }

  get regionCount(): number {
    return this.#file.regionCount
  }

  async regionIndex(regionIndex: number, image?: FileImage): Promise<RegionIndex> {
    assert(!this.#isClosed, 'a closed reader reads no more')
    try {
      this.partition.checkServed()
      return await this.#file.regionIndex(regionIndex, image)
    } catch (error) {
      throw this.partition.noted(error)
    }
  }

  get blockBytes(): number {
    return this.#file.blockBytes
  }

  read(target: Uint8Array, position: number, bytesMin?: number): DiskRead {
    assert(!this.#isClosed, 'a closed reader reads no more')
    try {
      this.partition.checkServed()
    } catch (error) {
      const result = Promise.reject<number>(error)
      result.catch(() => undefined)
      return { result, ended: Promise.resolve() }
    }
    const { result, ended } = this.#file.read(target, position, bytesMin)
    const noted = result.catch((error: unknown) => {
      throw this.partition.noted(error)
    })
    noted.catch(() => undefined)
    return { result: noted, ended }
  }

  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.partition.unpin()
    }
    await this.partition.closed
  }
}

function totalsOf({ place, facts }: Pick<StoredPartition, 'place' | 'facts'>): CommittedTotals {
  const { regionCount, entryCount, byteCount, recordCount, durability } = facts
  const storedBytes = place.byteLength
  return { regionCount, entryCount, byteCount, recordCount, storedBytes, durability }
}
