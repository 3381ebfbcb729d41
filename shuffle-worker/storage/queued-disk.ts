// The Disk of one data directory as the rest of storage uses it: the same calls, each through the
// directory's queue. A file's reads and writes hand out their real end, because their memory must
// stay until then, and a file is closed only after the last of them.

import type { Disk, DiskFile, FileStatus, OpenMode, SpaceStatus } from '../../client/common/disk.ts'
import type { DiskQueue, SubmittedOperation } from './disk-queue.ts'

export class QueuedDisk {
  readonly #disk: Disk
  readonly #queue: DiskQueue

  constructor(disk: Disk, queue: DiskQueue) {
    this.#disk = disk
    this.#queue = queue
  }

  async open(path: string, mode: OpenMode): Promise<QueuedFile> {
    const file = await this.#queue.run({
      kind: 'open',
      run: () => this.#disk.open(path, mode),
      onLate: (late) => {
        new QueuedFile(late, this.#queue, path).closeQuietly()
      },
    })
    return new QueuedFile(file, this.#queue, path)
  }

  rename(from: string, to: string): Promise<void> {
    return this.#queue.run({ kind: 'rename', run: () => this.#disk.rename(from, to) })
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

export class QueuedFile {
  readonly path: string
  readonly #file: DiskFile
  readonly #queue: DiskQueue
  readonly #underWay = new Set<Promise<void>>()
  #closing: Promise<void> | undefined

  constructor(file: DiskFile, queue: DiskQueue, path: string) {
    this.#file = file
    this.#queue = queue
    this.path = path
  }

  /** The parts stay untouched until `ended`. */
  write(parts: readonly Uint8Array[], position: number): SubmittedOperation<void> {
    return this.#track(
      this.#queue.submit({ kind: 'write', run: () => this.#file.write(parts, position) }),
    )
  }

  /** The target stays reserved until `ended`. */
  read(target: Uint8Array, position: number): SubmittedOperation<number> {
    return this.#track(
      this.#queue.submit({ kind: 'read', run: () => this.#file.read(target, position) }),
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
