// The Disk of one data directory as the rest of storage uses it: the same calls, each through the
// directory's queue. A file's reads and writes hand out their real end, because their memory must
// stay until then, and a file is closed only after the last of them.

import { directBlockBytes, isAligned } from '../../client/common/aligned-memory.ts'
import type {
  Disk,
  DiskFile,
  FileStatus,
  OpenMode,
  OpenOptions,
  SpaceStatus,
} from '../../client/common/disk.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { DirectMemory } from './direct-memory.ts'
import { readThrough } from './direct-read.ts'
import type { DiskQueue, SubmittedOperation } from './disk-queue.ts'

export class QueuedDisk {
  readonly #disk: Disk
  readonly #queue: DiskQueue
  readonly #directMemory: DirectMemory
  /** From where files are renamed, until the real end of it. */
  readonly #renamedFrom = new Set<string>()

  constructor(disk: Disk, queue: DiskQueue, directMemory: DirectMemory) {
    this.#disk = disk
    this.#queue = queue
    this.#directMemory = directMemory
  }

  async open(path: string, mode: OpenMode, options: OpenOptions = {}): Promise<QueuedFile> {
    // A rename that missed its deadline would put the new file in place, half-written as it is.
    if (mode === 'create' && this.#renamedFrom.has(path)) {
      throw new ShuffleError('DISK_FAILED', `an earlier rename of ${path} has not ended`, {
        fields: { operation: 'open', path },
      })
    }
    const isDirect = options.isDirect === true
    const queued = (file: DiskFile) =>
      new QueuedFile(file, this.#queue, {
        path,
        directMemory: isDirect ? this.#directMemory : undefined,
      })
    const file = await this.#queue.run({
      kind: 'open',
      run: () => this.#disk.open(path, mode, options),
      onLate: (late) => {
        queued(late).closeQuietly()
      },
    })
    return queued(file)
  }

  rename(from: string, to: string): Promise<void> {
    const run = () => this.#disk.rename(from, to)
    const { result, ended } = this.#queue.submit({ kind: 'rename', run })
    this.#renamedFrom.add(from)
    void ended.then(() => this.#renamedFrom.delete(from))
    return result
  }

  unlink(path: string): Promise<void> {
    return this.#queue.run({ kind: 'unlink', run: () => this.#disk.unlink(path) })
  }

  makeDirectory(path: string): Promise<void> {
    return this.#queue.run({ kind: 'make-directory', run: () => this.#disk.makeDirectory(path) })
  }

  list(path: string): Promise<string[]> {
    return this.#queue.run({ kind: 'list', run: () => this.#disk.list(path) })
  }

  status(path: string): Promise<FileStatus | undefined> {
    return this.#queue.run({ kind: 'status', run: () => this.#disk.status(path) })
  }

  syncDirectory(path: string): Promise<void> {
    return this.#queue.run({ kind: 'sync-directory', run: () => this.#disk.syncDirectory(path) })
  }

  space(path: string): Promise<SpaceStatus> {
    return this.#queue.run({ kind: 'space', run: () => this.#disk.space(path) })
  }
}

/** One write, made when its turn has come. */
export interface PreparedWrite {
  readonly parts: readonly Uint8Array[]
  readonly position: number
  /** The disk no longer touches the parts. */
  readonly onEnded: () => void
}

export class QueuedFile {
  readonly path: string
  readonly #file: DiskFile
  readonly #queue: DiskQueue
  /** Of a file that is opened for direct IO. */
  readonly #directMemory: DirectMemory | undefined
  readonly #underWay = new Set<Promise<void>>()
  #closing: Promise<void> | undefined

  constructor(
    file: DiskFile,
    queue: DiskQueue,
    options: { readonly path: string; readonly directMemory: DirectMemory | undefined },
  ) {
    this.#file = file
    this.#queue = queue
    this.path = options.path
    this.#directMemory = options.directMemory
  }

  /** What positions and lengths of fast reads are multiples of. */
  get blockBytes(): number {
    return this.#directMemory === undefined ? 1 : directBlockBytes
  }

  /** The parts stay untouched until `ended`. */
  write(parts: readonly Uint8Array[], position: number): SubmittedOperation<void> {
    return this.#track(
      this.#queue.submit({ kind: 'write', run: () => this.#file.write(parts, position) }),
    )
  }

  /** A write whose memory is filled when the disk has a slot for it. */
  writeLater(prepare: () => PreparedWrite): SubmittedOperation<void> {
    const run = async () => {
      const { parts, position, onEnded } = prepare()
      try {
        await this.#file.write(parts, position)
      } finally {
        onEnded()
      }
    }
    return this.#track(this.#queue.submit({ kind: 'write', run }))
  }

  /** The target stays reserved until `ended`. Of a direct file, what isn't aligned is copied. */
  read(target: Uint8Array, position: number): SubmittedOperation<number> {
    return this.#track(
      this.#queue.submit({ kind: 'read', run: () => this.#readNow(target, position) }),
    )
  }

  sync(): Promise<void> {
    return this.#track(this.#queue.submit({ kind: 'sync', run: () => this.#file.sync() })).result
  }

  truncate(sizeBytes: number): Promise<void> {
    return this.#track(
      this.#queue.submit({ kind: 'truncate', run: () => this.#file.truncate(sizeBytes) }),
    ).result
  }

  sizeBytes(): Promise<number> {
    return this.#track(this.#queue.submit({ kind: 'status', run: () => this.#file.sizeBytes() }))
      .result
  }

  /**
   * Closes after the last call under way has really ended; can fail. Calls that hang keep it from
   * resolving: who can't wait uses {@link closeQuietly}.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** For files whose fate no longer matters. */
  closeQuietly(): void {
    this.close().catch(() => undefined)
  }

  #readNow(target: Uint8Array, position: number): Promise<number> {
    const memory = this.#directMemory
    const isFit = position % this.blockBytes === 0 && (memory === undefined || isAligned(target))
    if (memory === undefined || isFit) return this.#file.read(target, position)
    return readThrough(this.#file, memory, { target, position })
  }

  async #close(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    await this.#queue.run({ kind: 'close', run: () => this.#file.close() })
  }

  #track<T>(submitted: SubmittedOperation<T>): SubmittedOperation<T> {
    const { ended } = submitted
    this.#underWay.add(ended)
    void ended.then(() => this.#underWay.delete(ended))
    return submitted
  }
}
