// One data directory: its disk's queue, health and space, its journal and shared log, and the files
// being read. Made without touching the disk; `recovery.ts` opens it, the data store owns it.

import { assert } from '../../client/common/assert.ts'
import type { Clock, Timer } from '../../client/common/clock.ts'
import type { DirectoryLock, Disk } from '../../client/common/disk.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { Logger } from '../../client/common/log.ts'
import { layoutOf, type DirectoryLayout } from './directory-layout.ts'
import { DiskHealthMonitor } from './disk-health.ts'
import { takesDirect } from './direct-check.ts'
import { DirectMemory } from './direct-memory.ts'
import { diskLimits } from './disk-operation.ts'
import { DiskQueue } from './disk-queue.ts'
import type { Journal } from './journal.ts'
import { QueuedDisk } from './queued-disk.ts'
import { ReadingFiles } from './reading-files.ts'
import type { SharedLog } from './shared-log.ts'
import { SpaceAccount } from './space-account.ts'
import type { DirectoryMetrics, StorageFigures } from './storage-metrics.ts'
import type {
  DirectoryStatus,
  DiskHealth,
  DiskKind,
  StorageDirectoryView,
} from './storage-types.ts'

export interface StorageDirectorySettings {
  readonly index: number
  readonly path: string
  readonly kind: DiskKind
  /** Files of partitions go past the page cache, where the file system can. */
  readonly isDirect: boolean
  /** Of one gathered write. */
  readonly writeBytes: number
  readonly clock: Clock
  readonly disk: Disk
  readonly logger: Logger
  readonly metrics: DirectoryMetrics
  readonly minReservedSpaceBytes: number
  readonly diskOperationTimeoutMs: number
  readonly probeIntervalMs: number
  readonly diskFailedAfterMs: number
  /** Health or room changed. */
  readonly onChange: (directory: StorageDirectory) => void
  /** The disk is given up: everything on it is lost. */
  readonly onFailed: (directory: StorageDirectory) => void
}

export class StorageDirectory implements StorageDirectoryView {
  readonly index: number
  readonly path: string
  readonly kind: DiskKind
  readonly limits: StorageDirectoryView['limits']
  readonly layout: DirectoryLayout
  readonly queue: DiskQueue
  readonly disk: QueuedDisk
  readonly files: ReadingFiles
  readonly space: SpaceAccount
  readonly #settings: StorageDirectorySettings
  readonly #monitor: DiskHealthMonitor
  readonly #memory: DirectMemory
  #isDirect = false
  #lock: DirectoryLock | undefined
  #journal: Journal | undefined
  #log: SharedLog | undefined
  #ordinal = 0
  #partitionCount = 0
  #partitionBytes = 0
  #sampleTimer: Timer | undefined
  #wasFull = false
  #stopped = false

  constructor(settings: StorageDirectorySettings) {
    const { clock, path, kind, metrics, disk } = settings
    this.#settings = settings
    this.index = settings.index
    this.path = path
    this.kind = kind
    this.limits = { reads: diskLimits[kind].read, writes: diskLimits[kind].write }
    this.layout = layoutOf(path)
    this.queue = new DiskQueue({
      clock,
      directory: path,
      limits: diskLimits[kind],
      operationTimeoutMs: settings.diskOperationTimeoutMs,
      observer: {
        measured: metrics.measured,
        troubled: (error) => {
          this.#monitor.troubled(error)
        },
        full: () => {
          this.space.refused(1)
          this.noteSpace()
        },
      },
    })
    this.#memory = new DirectMemory({
      writeBytes: settings.writeBytes,
      writesMax: diskLimits[kind].write,
      readsMax: diskLimits[kind].read,
    })
    this.disk = new QueuedDisk(disk, this.queue, this.#memory)
    this.files = new ReadingFiles(this.disk, this.layout, () => this.#isDirect)
    this.space = new SpaceAccount({ minReservedBytes: settings.minReservedSpaceBytes })
    this.#monitor = new DiskHealthMonitor({
      clock,
      disk,
      queue: this.queue,
      directory: path,
      probePath: this.layout.probe,
      probeIntervalMs: settings.probeIntervalMs,
      failedAfterMs: settings.diskFailedAfterMs,
      onChange: this.#onHealth,
    })
  }

  get health(): DiskHealth {
    return this.#monitor.health
  }

  /** Why the disk is not healthy. */
  get failure(): Error | undefined {
    return this.#monitor.cause
  }

  get isFull(): boolean {
    return this.space.isFull
  }

  get journal(): Journal {
    assert(this.#journal !== undefined, 'the directory is open')
    return this.#journal
  }

  get log(): SharedLog {
    assert(this.#log !== undefined, 'the directory is open')
    return this.#log
  }

  /** False for a directory that could not be opened at the start. */
  get isOpen(): boolean {
    return this.#journal !== undefined
  }

  /** Makes the directory, and takes it; INVALID_ARGUMENT when a running process has it. */
  async lock(): Promise<void> {
    await this.disk.makeDirectory(this.path)
    const lock = await this.queue.run({
      kind: 'open',
      run: () => this.#settings.disk.lock(this.path),
      onLate: (late) => {
        late?.release().catch(() => undefined)
      },
    })
    if (lock === undefined) {
      throw new ShuffleError(
        'INVALID_ARGUMENT',
        `the data directory ${this.path} is in use by a running worker; stop it or configure another directory`,
        { fields: { directory: this.path } },
      )
    }
    this.#lock = lock
  }

  /** Whether partitions' files go past the page cache; settled by {@link chooseIo}. */
  get isDirect(): boolean {
    return this.#isDirect
  }

  /** For files that are written direct; undefined: they are buffered. */
  get directMemory(): DirectMemory | undefined {
    return this.#isDirect ? this.#memory : undefined
  }

  /** Tries direct IO where it is wanted; buffered serves where the file system has none. */
  async chooseIo(): Promise<void> {
    if (!this.#settings.isDirect) return
    this.#isDirect = await takesDirect(this.disk, this.layout.probe)
    if (this.#isDirect) return
    this.#settings.logger.warn(
      { directory: this.path },
      'the file system takes no direct IO: the directory is buffered',
    )
  }

  attach(opened: {
    readonly journal: Journal
    readonly log: SharedLog
    readonly ordinalMax: number
  }): void {
    this.#journal = opened.journal
    this.#log = opened.log
    this.#ordinal = opened.ordinalMax
  }

  /** Begins to probe and to sample the space. */
  start(): void {
    this.#monitor.start()
    this.#armSample()
  }

  /** A number that no file here has had. Ascends in the order of allocation. */
  nextOrdinal(): number {
    this.#ordinal += 1
    return this.#ordinal
  }

  /** A directory that could not be opened: it takes and holds nothing until the next start. */
  giveUp(error: ShuffleError): void {
    this.#monitor.giveUp(error)
  }

  addPartition(storedBytes: number): void {
    this.#partitionCount += 1
    this.#partitionBytes += storedBytes
  }

  removePartition(storedBytes: number): void {
    this.#partitionCount -= 1
    this.#partitionBytes -= storedBytes
    assert(this.#partitionCount >= 0, 'no partition leaves a directory twice')
  }

  /** Tells of a change between full and not full, if there was one. */
  noteSpace(): void {
    if (this.isFull === this.#wasFull) return
    this.#wasFull = this.isFull
    this.#settings.logger.info(
      { directory: this.path, isFull: this.isFull, availableBytes: this.space.availableBytes },
      'the room of a data directory changed',
    )
    this.#settings.onChange(this)
  }

  async sampleSpace(): Promise<void> {
    const finish = this.space.beginSample()
    finish(await this.disk.space(this.path))
    this.noteSpace()
  }

  status(): DirectoryStatus {
    return {
      index: this.index,
      path: this.path,
      kind: this.kind,
      health: this.health,
      isFull: this.isFull,
      totalBytes: this.space.totalBytes,
      fileSystem: this.space.fileSystem,
      availableBytes: this.space.availableBytes,
      partitionCount: this.#partitionCount,
      partitionBytes: this.#partitionBytes,
    }
  }

  figures(): StorageFigures['directories'][number] {
    return {
      status: this.status(),
      inFlight: this.queue.inFlightCount,
      waiting: this.queue.waitingCount,
      openFiles: this.files.count,
      reservedBytes: this.space.reservedBytes,
      driftBytes: this.space.driftBytes,
    }
  }

  /** Ends timers and gives journal, log and lock back. */
  async close(): Promise<void> {
    this.#stopped = true
    this.#monitor.stop()
    this.#sampleTimer?.cancel()
    const results = await Promise.allSettled([this.#log?.close(), this.#journal?.close()])
    await this.#lock?.release()
    this.#lock = undefined
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  readonly #onHealth = (health: DiskHealth, cause: Error | undefined): void => {
    const { logger, onChange, onFailed } = this.#settings
    logger.warn({ directory: this.path, health, error: cause }, 'the health of a disk changed')
    if (health === 'failed') onFailed(this)
    onChange(this)
  }

  #armSample(): void {
    this.#sampleTimer = this.#settings.clock.setTimer(this.#settings.probeIntervalMs, () => {
      // A sample that fails says nothing about space; the probe judges the disk.
      void this.sampleSpace()
        .catch(() => undefined)
        .then(() => {
          if (!this.#stopped && this.health !== 'failed') this.#armSample()
        })
    })
  }
}
