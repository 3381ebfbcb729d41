// The store of one worker: all its directories, all its partitions, from open to the confirmed
// release. The worker owns it; write, read and control services share it.

import type { Registry } from 'prom-client'
import { assert } from '../../client/common/assert.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type {
  AllocationId,
  ClusterId,
  PartitionKey,
  PartitionKeyText,
  WorkerId,
} from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import type { World } from '../../client/common/world.ts'
import type { ServiceRecord } from '../../client/manager/schemas.ts'
import type { MemoryLedger } from '../memory/memory-ledger.ts'
import {
  checkStoreOptions,
  defaultStoreOptions,
  type DataStoreOptions,
} from './data-store-options.ts'
import { DirectoryChoice } from './directory-choice.ts'
import { gatheredWriteBytes, isDirectDefault, type DirectorySettings } from './directory-io.ts'
import { openDirectories, type OpenedDirectories } from './directory-opener.ts'
import { KeptService } from './directory-service.ts'
import { HeldPartitions } from './held-partitions.ts'
import { KeptIndexes } from './kept-indexes.ts'
import { KeyMemory } from './key-memory.ts'
import { OpenWrite, type CommittedWrite } from './open-write.ts'
import { keyTextOf, lossCodes, PartitionRegistry, reportOf } from './partition-registry.ts'
import { PartitionReleaser } from './partition-releaser.ts'
import type { RecoveredDirectory } from './recovery.ts'
import { StorageDirectory } from './storage-directory.ts'
import {
  declareStorageMetrics,
  type StorageFigures,
  type StorageMetrics,
} from './storage-metrics.ts'
import type {
  CommittedTotals,
  LookupResult,
  LossCause,
  OpenWriteRequest,
  PartitionReport,
  PartitionWriter,
  StoreChange,
} from './storage-types.ts'
import { StoreChanges } from './store-changes.ts'
import { stopStore } from './store-stop.ts'
import { StoredPartition } from './stored-partition.ts'
import { checkWriteRequest, refusalOf } from './write-admission.ts'

export interface DataStoreSettings {
  readonly world: World
  readonly clusterId: ClusterId
  readonly directories: readonly DirectorySettings[]
  readonly ledger: MemoryLedger
  readonly options?: Partial<DataStoreOptions>
  readonly registry: Registry
  readonly logger: Logger
}

export class DataStore {
  readonly directories: readonly StorageDirectory[]
  readonly #settings: DataStoreSettings
  readonly #options: DataStoreOptions
  readonly #metrics: StorageMetrics
  readonly #choice: DirectoryChoice<StorageDirectory>
  readonly #held: HeldPartitions
  readonly #keptIndexes: KeptIndexes
  readonly #releaser: PartitionReleaser
  readonly #registry = new PartitionRegistry()
  readonly #memory = new KeyMemory()
  readonly #changes = new StoreChanges()
  #identity: { readonly workerId: WorkerId; readonly workerEpoch: number } | undefined
  #service: KeptService
  #closing: Promise<void> | undefined

  private constructor(settings: DataStoreSettings, options: DataStoreOptions) {
    const { world, ledger, logger } = settings
    this.#settings = settings
    this.#options = options
    this.#metrics = declareStorageMetrics(settings.registry, () => this.#figures())
    this.directories = settings.directories.map(
      ({ path, kind, isDirect }, index) =>
        new StorageDirectory({
          index,
          path,
          kind,
          isDirect: isDirect ?? isDirectDefault(kind),
          writeBytes: gatheredWriteBytes(ledger),
          clock: world.clock,
          disk: world.disk,
          logger,
          metrics: this.#metrics.directory(path),
          ...options,
          onChange: (directory) => {
            this.#changes.tell({ kind: 'directory', status: directory.status() })
            if (directory.health === 'healthy') this.#service.writeAgain()
          },
          onFailed: this.#onDirectoryFailed,
        }),
    )
    this.#service = new KeptService(this.directories, logger)
    this.#choice = new DirectoryChoice(this.directories, options.preferredDiskKind)
    // An eighth of the write part for all held partitions together.
    this.#held = new HeldPartitions({ bytesMax: Math.floor(ledger.partBytes('write') / 8) })
    this.#keptIndexes = new KeptIndexes({ clock: world.clock, ledger })
    this.#releaser = new PartitionReleaser({
      clock: world.clock,
      logger,
      readersTimeoutMs: options.releasedReadersTimeoutMs,
      onGone: this.#onGone,
    })
  }

  /** Locks the directories, raises the epoch, recovers what they hold. */
  static async open(settings: DataStoreSettings): Promise<DataStore> {
    const options = { ...defaultStoreOptions, ...settings.options }
    checkStoreOptions(options, settings.directories)
    const store = new DataStore(settings, options)
    const opened = await openDirectories({
      world: settings.world,
      clusterId: settings.clusterId,
      directories: store.directories,
      segmentSizeBytes: options.segmentSizeBytes,
      sync: options.durability === 'sync',
      logger: settings.logger,
    })
    store.#begin(opened)
    return store
  }

  get workerId(): WorkerId {
    assert(this.#identity !== undefined, 'the store is open')
    return this.#identity.workerId
  }

  get workerEpoch(): number {
    assert(this.#identity !== undefined, 'the store is open')
    return this.#identity.workerEpoch
  }

  /** What people want of the worker; it is the worker's control that acts by it. */
  get service(): ServiceRecord {
    return this.#service.wanted
  }

  /** Holds at once; resolves to what is kept on the disks that answer. Never rejects. */
  setService(record: ServiceRecord): Promise<ServiceRecord> {
    return this.#service.set(record)
  }

  /** Index memory that is held for the next reads, by no reader. */
  get keptIndexBytes(): number {
    return this.#keptIndexes.bytes
  }

  /** WRITER_CONFLICT, STALE_ALLOCATION, BUSY, NO_SPACE, DISK_FAILED, LIMIT_EXCEEDED, WORKER_DRAINING. */
  // eslint-disable-next-line @typescript-eslint/require-await -- every refusal is a rejection
  async openWrite(request: OpenWriteRequest): Promise<PartitionWriter> {
    const text = keyTextOf(request.key)
    if (this.#closing !== undefined) throw stoppingError()
    checkWriteRequest(request, this.#settings.ledger.bufferSizeBytes)
    const refusal = refusalOf(request, {
      entry: this.#registry.get(text),
      fate: this.#memory.fateOf(text),
      highestAllocation: this.#memory.highestAllocation(text),
    })
    if (refusal !== undefined) throw refusal
    const write = this.#openOn(request, text)
    this.#memory.sawAllocation(text, request.allocation)
    const entry = { state: 'writing', write } as const
    this.#registry.set(text, entry)
    this.#changes.tell({ kind: 'opened', partition: reportOf(entry) })
    return write
  }

  lookup(key: PartitionKey): LookupResult {
    const text = keyTextOf(key)
    const entry = this.#registry.get(text)
    switch (entry?.state) {
      case 'committed':
        return { state: 'committed', partition: entry.partition }
      case 'writing':
        return { state: 'writing' }
      case 'releasing':
      case 'released':
        return { state: 'released' }
      case undefined:
        return this.#memory.fateOf(text) ?? { state: 'unknown' }
    }
  }

  /**
   * At once for lookups; the bytes go when readers are done, and then a change tells it. Keys that
   * were never here are remembered too, and told as released at once.
   */
  release(keys: readonly PartitionKey[]): void {
    for (const key of keys) this.#release(key, keyTextOf(key))
  }

  /** The manager knows that they are gone: drops their records. */
  confirmReleased(keys: readonly PartitionKey[]): void {
    for (const key of keys) {
      const text = keyTextOf(key)
      if (this.#registry.get(text)?.state !== 'released') continue
      this.#registry.delete(text)
      this.#memory.remember(text, { state: 'released' })
    }
  }

  list(): readonly PartitionReport[] {
    return this.#registry.reports()
  }

  /** One listener; called after the change, never within it. */
  onChange(listener: (change: StoreChange) => void): void {
    this.#changes.listen(listener)
  }

  /** Ends open writes, syncs within the budget what is not durable, marks a clean stop. */
  close(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#keptIndexes.close()
    this.#closing ??= stopStore({
      directories: this.directories,
      writes: this.#registry.openWrites(),
      clock: this.#settings.world.clock,
      logger: this.#settings.logger,
      timeoutMs: options.timeoutMs ?? this.#options.cleanStopTimeoutMs,
    })
    return this.#closing
  }

  #begin(opened: OpenedDirectories): void {
    this.#identity = opened
    this.#service = new KeptService(this.directories, this.#settings.logger, opened.service)
    for (const [directory, recovered] of opened.recovered) this.#adopt(directory, recovered)
    for (const directory of this.directories) if (directory.isOpen) directory.start()
  }

  #adopt(directory: StorageDirectory, recovered: RecoveredDirectory): void {
    for (const { place, facts } of recovered.partitions) {
      const kept = this.#keptIndexes.of(facts.key.jobId)
      const partition = this.#newPartition(directory, { place, facts, kept })
      directory.addPartition(place.byteLength)
      const needless = this.#registry.adopt(partition)
      if (needless !== undefined) this.#releaser.release(needless)
    }
    for (const key of recovered.released) {
      this.#memory.remember(keyTextOf(key), { state: 'released' })
    }
    for (const { key, cause } of recovered.lost) {
      this.#memory.remember(keyTextOf(key), { state: 'lost', code: lossCodes[cause] })
      this.#metrics.lost(cause, 1)
    }
    const { path } = directory
    const counts = { kept: recovered.partitions.length, lost: recovered.lost.length }
    this.#settings.logger.info({ directory: path, ...counts }, 'a data directory is open')
  }

  #openOn(request: OpenWriteRequest, text: PartitionKeyText): OpenWrite {
    let failure: unknown
    for (const directory of this.#choice.candidates(request.expectedBytes ?? 0)) {
      const write = this.#newWrite(directory, request, text)
      try {
        write.reserveEnd()
        return write
      } catch (error) {
        directory.noteSpace()
        failure = error
      }
    }
    throw failure
  }

  #newWrite(
    directory: StorageDirectory,
    request: OpenWriteRequest,
    text: PartitionKeyText,
  ): OpenWrite {
    const { ledger, logger, world } = this.#settings
    return new OpenWrite({
      request,
      directory,
      ledger,
      held: this.#held,
      keptIndexes: this.#keptIndexes,
      clock: world.clock,
      logger,
      durability: this.#options.durability,
      smallPartitionBytesMax: this.#options.smallPartitionBytesMax,
      abortTimeoutMs: this.#options.diskOperationTimeoutMs,
      onCommitted: (committed) => this.#onCommitted(directory, committed),
      onEnded: () => {
        this.#onWriteEnded(text, request.key)
      },
    })
  }

  #newPartition(directory: StorageDirectory, committed: CommittedWrite): StoredPartition {
    const { ledger } = this.#settings
    return new StoredPartition({ directory, ledger, ...committed, onLost: this.#onLost })
  }

  #onCommitted(directory: StorageDirectory, committed: CommittedWrite): CommittedTotals {
    const { place, facts } = committed
    const partition = this.#newPartition(directory, committed)
    const entry = { state: 'committed', partition } as const
    this.#registry.set(keyTextOf(facts.key), entry)
    directory.addPartition(place.byteLength)
    this.#metrics.committed(place.byteLength)
    this.#changes.tell({ kind: 'committed', partition: reportOf(entry) })
    return partition.totals
  }

  #onWriteEnded(text: PartitionKeyText, key: PartitionKey): void {
    this.#metrics.failed()
    const entry = this.#registry.get(text)
    if (entry?.state === 'writing') {
      this.#registry.delete(text)
      this.#changes.tell({ kind: 'aborted', key })
    } else if (entry?.state === 'releasing') {
      this.#markReleased(text, { key, allocation: entry.allocation, directoryIndex: -1 })
    }
  }

  #release(key: PartitionKey, text: PartitionKeyText): void {
    const entry = this.#registry.get(text)
    switch (entry?.state) {
      case undefined:
        this.#memory.remember(text, { state: 'released' })
        this.#changes.tell({ kind: 'released', keys: [key] })
        return
      case 'writing': {
        const { allocation, directory } = entry.write
        const directoryIndex = directory.index
        this.#registry.set(text, {
          state: 'releasing',
          key,
          allocation,
          byteCount: 0,
          directoryIndex,
        })
        entry.write.end(
          new ShuffleError('STALE_ALLOCATION', 'the partition was released while it was written', {
            fields: { ...key },
          }),
        )
        return
      }
      case 'committed':
        this.#releaseCommitted(text, entry.partition)
        return
      case 'releasing':
        return
      case 'released':
        // The manager asks again: it has not heard.
        this.#changes.tell({ kind: 'released', keys: [key] })
    }
  }

  #releaseCommitted(text: PartitionKeyText, partition: StoredPartition): void {
    const { key, allocation, directory, place } = partition
    this.#registry.set(text, {
      state: 'releasing',
      key,
      allocation,
      byteCount: place.byteLength,
      directoryIndex: directory.index,
    })
    this.#releaser.release(partition)
  }

  readonly #onGone = (partition: StoredPartition): void => {
    partition.directory.removePartition(partition.place.byteLength)
    const text = keyTextOf(partition.key)
    if (this.#registry.get(text)?.state !== 'releasing') return
    const { key, allocation, directory } = partition
    this.#markReleased(text, { key, allocation, directoryIndex: directory.index })
  }

  #markReleased(
    text: PartitionKeyText,
    gone: {
      readonly key: PartitionKey
      readonly allocation: AllocationId
      readonly directoryIndex: number
    },
  ): void {
    this.#registry.set(text, { state: 'released', byteCount: 0, ...gone })
    this.#changes.tell({ kind: 'released', keys: [gone.key] })
  }

  readonly #onLost = (partition: StoredPartition, cause: LossCause): void => {
    const { key, directory } = partition
    this.#settings.logger.error({ ...key, directory: directory.path, cause }, 'a partition is lost')
    this.#forgetLost([partition], cause, directory.index)
    // Its bytes serve nobody: they go as those of a released one.
    this.#releaser.release(partition)
  }

  readonly #onDirectoryFailed = (directory: StorageDirectory): void => {
    const cause = new ShuffleError('DISK_FAILED', 'the disk under the open write has failed', {
      fields: { directory: directory.path },
    })
    const lost: StoredPartition[] = []
    for (const entry of this.#registry.values()) {
      if (entry.state === 'writing' && entry.write.directory === directory) entry.write.end(cause)
      if (entry.state !== 'committed' || entry.partition.directory !== directory) continue
      entry.partition.markLost(lossCodes['disk-failed'])
      lost.push(entry.partition)
    }
    this.#forgetLost(lost, 'disk-failed', directory.index)
    for (const { place } of lost) directory.removePartition(place.byteLength)
  }

  #forgetLost(
    partitions: readonly StoredPartition[],
    cause: LossCause,
    directoryIndex: number,
  ): void {
    if (partitions.length === 0) return
    for (const { key } of partitions) {
      this.#registry.delete(keyTextOf(key))
      this.#memory.remember(keyTextOf(key), { state: 'lost', code: lossCodes[cause] })
    }
    this.#metrics.lost(cause, partitions.length)
    const keys = partitions.map(({ key }) => key)
    this.#changes.tell({ kind: 'lost', cause, directoryIndex, keys })
  }

  #figures(): StorageFigures | undefined {
    if (this.#identity === undefined) return undefined
    return {
      directories: this.directories.map((each) => each.figures()),
      partitions: this.#registry.counts,
      heldBytes: this.#held.bytes,
    }
  }
}

function stoppingError(): ShuffleError {
  return new ShuffleError('WORKER_DRAINING', 'the worker is stopping and takes no new writes')
}
