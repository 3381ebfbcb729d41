// Disks in memory, with what makes disks hard: calls take time and answer out of order; content and
// names that were not synced can be lost; calls fail, hang, are slow or stop half way; space ends.
// Each process sees them through `at(life)`, a Disk of its own; a test sees every call by number and
// can let the process die before or after any of them.

import type {
  DirectoryLock,
  Disk,
  DiskFile,
  OpenMode,
  SpaceStatus,
} from '../../client/common/disk.ts'
import type { DiskModel } from './disk-model.ts'
import type { VirtualClock } from './virtual-clock.ts'
import { virtualDirectFile } from './virtual-direct-file.ts'
import { FaultPlan } from './virtual-disk-faults.ts'
import type { Fault, FaultRule, InjectedFault, Operation } from './virtual-disk-faults.ts'
import { FileTree, systemError } from './virtual-file-tree.ts'
import type { FileNode, LossOnCrash } from './virtual-file-tree.ts'
import type { Life } from './virtual-life.ts'
import type { VirtualRandom } from './virtual-random.ts'

export interface VirtualDiskOptions {
  readonly clock: VirtualClock
  readonly random: VirtualRandom
  /** Least and most time of one call. */
  readonly latencyMs?: readonly [min: number, max: number]
  /** Times reads and writes instead of `latencyMs`; other calls then take no time. */
  readonly model?: DiskModel
  /** How the content of a new file is kept; all of it unless given. */
  readonly newFile?: (path: string) => FileNode
  readonly note?: (line: string) => void
}

export class VirtualDisk {
  readonly #clock: VirtualClock
  readonly #random: VirtualRandom
  readonly #note: (line: string) => void
  readonly #tree: FileTree
  readonly #model: DiskModel | undefined
  readonly #faults = new FaultPlan()
  readonly #locks = new Map<string, Life>()
  readonly #latencyMs: readonly [number, number]
  readonly #endedMs = new Map<string, number>()
  #operationCount = 0
  #openFiles = 0
  #bootCount = 1
  #takesDirect = true
  #stop:
    { readonly at: number; readonly isAfter: boolean; readonly reached: () => void } | undefined

  constructor(options: VirtualDiskOptions) {
    this.#clock = options.clock
    this.#random = options.random
    this.#tree = new FileTree(options.newFile)
    this.#model = options.model
    this.#latencyMs = options.latencyMs ?? [0.02, 0.3]
    this.#note = options.note ?? (() => undefined)
  }

  /** Calls so far; the next has this number plus one. */
  get operationCount(): number {
    return this.#operationCount
  }

  /** When an operation below the top directory `path` ended last; 0 before the first. */
  lastEndedMs(path: string): number {
    return this.#endedMs.get(path) ?? 0
  }

  /** Files open in living processes. */
  get openFileCount(): number {
    return this.#openFiles
  }

  get heldLocks(): readonly string[] {
    return [...this.#locks.keys()]
  }

  /** What is wrong from now on with calls that match; the first rule that matches decides. */
  inject(rule: FaultRule): InjectedFault {
    return this.#faults.add(rule)
  }

  /** Answers the calls that hang: they go on as if nothing had been. */
  releaseHung(): void {
    this.#faults.releaseHung()
  }

  /** From now on it is a file system without direct IO: opening for it fails with EINVAL. */
  refuseDirect(): void {
    this.#takesDirect = false
  }

  /** Bytes that the files below `path` may take together. */
  setCapacity(path: string, bytes: number): void {
    this.#tree.setCapacity(path, bytes)
  }

  /**
   * Calls `reached` instead of answering call number `operation`: before it has done anything, or
   * after it has done all. The test then ends the process's life.
   */
  stopAt(operation: number, when: 'before' | 'after', reached: () => void): void {
    this.#stop = { at: operation, isAfter: when === 'after', reached }
  }

  /** The machine loses power and starts again: what was not synced is lost as said. */
  crash(loss: LossOnCrash): void {
    this.#tree.crash(loss, this.#random)
    this.#locks.clear()
    this.#bootCount += 1
  }

  /** Content as a process would read it now; undefined when there is no such file. */
  contentOf(path: string): Uint8Array | undefined {
    return this.#tree.file(path)?.content()
  }

  /** Puts a file there, synced; for fixtures and for damage. */
  put(path: string, content: Uint8Array): void {
    this.#tree.put(path, content)
  }

  /** Flips bits of one byte where it lies: whoever has the file open reads it so too. */
  flipBits(path: string, position: number, mask: number): void {
    this.#tree.file(path)?.flipBits(position, mask)
  }

  /** The disk is replaced by an empty one. */
  wipe(): void {
    this.#tree.wipe()
    this.#locks.clear()
  }

  /** Paths of all files below `path`, in order. */
  filesBelow(path: string): readonly string[] {
    return this.#tree.filesBelow(path)
  }

  /** The disks as a process sees them. */
  at(life: Life): Disk {
    const tree = this.#tree
    const run = <T>(operation: Omit<Operation, 'number'>, action: () => T): Promise<T> =>
      this.#run(life, operation, action)
    return {
      open: async (path, mode, options) => {
        const isDirect = options?.isDirect === true
        const node = await run({ kind: 'open', path }, () => {
          if (isDirect && !this.#takesDirect) throw systemError('EINVAL', path)
          return openNode(tree, path, mode)
        })
        const file = this.#openFile(life, node, path, mode)
        return isDirect ? virtualDirectFile(file, path) : file
      },
      rename: (from, to) =>
        run({ kind: 'rename', path: from }, () => {
          tree.rename(from, to)
        }),
      unlink: (path) =>
        run({ kind: 'unlink', path }, () => {
          tree.unlink(path)
        }),
      makeDirectory: (path) =>
        run({ kind: 'makeDirectory', path }, () => {
          tree.makeDirectory(path)
        }),
      list: (path) => run({ kind: 'list', path }, () => tree.list(path)),
      status: (path) => run({ kind: 'status', path }, () => tree.status(path)),
      syncDirectory: (path) =>
        run({ kind: 'syncDirectory', path }, () => {
          tree.syncDirectory(path)
        }),
      space: (path) => run({ kind: 'space', path }, (): SpaceStatus => tree.space(path)),
      lock: (path) => run({ kind: 'lock', path }, () => this.#lock(life, path)),
      bootId: () => life.heard(Promise.resolve(`boot-${String(this.#bootCount)}`)),
    }
  }

  #openFile(life: Life, node: FileNode, path: string, mode: OpenMode): DiskFile {
    this.#openFiles += 1
    let isOpen = true
    const forget = () => {
      if (isOpen) this.#openFiles -= 1
      isOpen = false
    }
    life.atEnd(forget)
    const run = <T>(operation: Omit<Operation, 'number' | 'path'>, action: () => T): Promise<T> => {
      if (!isOpen) return Promise.reject(systemError('EBADF', path))
      return this.#run(life, { ...operation, path }, action)
    }
    return {
      write: (parts, position) => {
        const byteCount = parts.reduce((sum, part) => sum + part.byteLength, 0)
        if (mode === 'read') return Promise.reject(systemError('EBADF', path))
        return run({ kind: 'write', byteCount, position, parts, node }, () => {
          this.#tree.write(path, node, parts, position)
        })
      },
      read: (target, position) =>
        run({ kind: 'read', byteCount: target.byteLength, position, node }, () =>
          node.read(target, position),
        ),
      sync: () =>
        run({ kind: 'sync' }, () => {
          node.sync()
        }),
      truncate: (sizeBytes) =>
        run({ kind: 'truncate', position: sizeBytes }, () => {
          node.truncate(sizeBytes)
        }),
      sizeBytes: () => run({ kind: 'sizeBytes' }, () => node.sizeBytes),
      close: () => {
        const closing = run({ kind: 'close', node }, () => undefined)
        // The descriptor is gone even when closing fails.
        forget()
        return closing
      },
    }
  }

  #lock(life: Life, path: string): DirectoryLock | undefined {
    if (this.#tree.status(path)?.isDirectory !== true) throw systemError('ENOENT', path)
    if (this.#locks.get(path)?.isAlive === true) return undefined
    this.#locks.set(path, life)
    return {
      release: () => {
        if (this.#locks.get(path) === life) this.#locks.delete(path)
        return Promise.resolve()
      },
    }
  }

  /** One call: its number, its fault, its time, its effect at the end of that time, its answer. */
  #run<T>(life: Life, described: Omit<Operation, 'number'>, action: () => T): Promise<T> {
    this.#operationCount += 1
    const operation: Operation = { ...described, number: this.#operationCount }
    const stop = this.#stop?.at === operation.number ? this.#stop : undefined
    if (stop !== undefined && !stop.isAfter) {
      stop.reached()
      return new Promise<never>(() => undefined)
    }
    const fault = this.#faults.of(operation)
    return life.heard(
      new Promise((resolve, reject) => {
        this.#begin(operation, fault, () => {
          this.#endedMs.set(topOf(operation.path), this.#clock.nowMs())
          // A process that died before the call was under way has not made it.
          if (!life.isAlive) return
          try {
            const result = this.#perform(operation, fault, action)
            if (stop === undefined) resolve(result)
            else stop.reached()
          } catch (error) {
            reject(error)
          }
        })
      }),
    )
  }

  #begin(operation: Operation, fault: Fault | undefined, finish: () => void): void {
    const slowMs = fault?.kind === 'slow' ? fault.delayMs : 0
    const delayMs = this.#delayOf(operation) + slowMs
    const later = () => {
      this.#clock.schedule(delayMs, () => {
        this.#note(
          `${this.#clock.nowMs().toFixed(6)} disk ${String(operation.number)} ${operation.kind} ${operation.path} ${String(operation.byteCount ?? '')}`,
        )
        finish()
      })
    }
    if (fault?.kind === 'hang') this.#faults.hold(later)
    else later()
  }

  #delayOf({ kind, node, position, byteCount }: Operation): number {
    const model = this.#model
    if (model === undefined) return this.#random.between(...this.#latencyMs)
    if (node === undefined || position === undefined || byteCount === undefined) return 0
    if (kind !== 'read' && kind !== 'write') return 0
    return model[kind](node, { position, byteCount }, this.#clock.nowMs())
  }

  #perform<T>(operation: Operation, fault: Fault | undefined, action: () => T): T {
    if (fault?.kind === 'error') {
      const { node } = operation
      if (fault.losesContent === true) node?.truncate(Math.floor(node.sizeBytes / 2))
      throw systemError(fault.code, operation.path)
    }
    if (fault?.kind === 'short') {
      this.#writeHalf(operation)
      throw systemError(fault.code ?? 'EIO', operation.path)
    }
    const result = action()
    if (fault?.kind !== 'short-read' || typeof result !== 'number') return result
    return Math.floor(result / 2) as T
  }

  /** A write that fails has often written something. */
  #writeHalf(operation: Operation): void {
    const { parts, node, position, byteCount } = operation
    if (parts === undefined || node === undefined || position === undefined) return
    const half = Buffer.concat(parts).subarray(0, Math.floor((byteCount ?? 0) / 2))
    this.#tree.write(operation.path, node, [half], position)
  }
}

function topOf(path: string): string {
  const end = path.indexOf('/', 1)
  return end < 0 ? path : path.slice(0, end)
}

function openNode(tree: FileTree, path: string, mode: OpenMode): FileNode {
  if (mode === 'create') return tree.create(path)
  const node = tree.file(path)
  if (node === undefined) {
    throw systemError(tree.status(path)?.isDirectory === true ? 'EISDIR' : 'ENOENT', path)
  }
  return node
}
