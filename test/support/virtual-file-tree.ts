// Files and names in memory, each twice: as processes see them, and as they would be found after a
// loss of power. Content becomes durable by `sync`, names by `syncDirectory`.

import { dirname } from 'node:path'
import type { FileStatus, SpaceStatus } from '../../client/common/disk.ts'
import type { VirtualRandom } from './virtual-random.ts'

/**
 * What a loss of power does to what was not synced: nothing, all of it lost, or as the seed says
 * (names in order up to some point; of each file some part of what was written since its sync).
 */
export type LossOnCrash = 'keep' | 'drop' | 'random'

export class FileNode {
  #bytes = new Uint8Array(0)
  #size = 0
  #durable = new Uint8Array(0)

  get sizeBytes(): number {
    return this.#size
  }

  content(): Uint8Array {
    return this.#bytes.slice(0, this.#size)
  }

  read(target: Uint8Array, position: number): number {
    const count = Math.max(0, Math.min(target.byteLength, this.#size - position))
    target.set(this.#bytes.subarray(position, position + count))
    return count
  }

  write(parts: readonly Uint8Array[], position: number): void {
    let at = position
    for (const part of parts) {
      if (part.byteLength === 0) continue
      this.#grow(at + part.byteLength)
      this.#bytes.set(part, at)
      at += part.byteLength
      this.#size = Math.max(this.#size, at)
    }
  }

  truncate(sizeBytes: number): void {
    this.#grow(sizeBytes)
    if (sizeBytes < this.#size) this.#bytes.fill(0, sizeBytes, this.#size)
    this.#size = sizeBytes
  }

  flipBits(position: number, mask: number): void {
    for (const bytes of [this.#bytes, this.#durable]) {
      if (position < bytes.length) bytes[position] = (bytes[position] ?? 0) ^ mask
    }
  }

  sync(): void {
    this.#durable = this.#bytes.slice(0, this.#size)
  }

  crash(loss: LossOnCrash, random: VirtualRandom): void {
    if (loss === 'keep') this.sync()
    const isTorn = loss === 'random' && this.#size > this.#durable.byteLength
    if (isTorn) {
      // An append that was cut: some of the new bytes, and perhaps zeros where a block never came.
      const kept = random.integer(this.#size - this.#durable.byteLength + 1)
      const torn = this.#bytes.slice(0, this.#durable.byteLength + kept)
      torn.set(this.#durable)
      if (kept > 0 && random.chance(0.3)) {
        torn.fill(0, this.#durable.byteLength + random.integer(kept))
      }
      this.#durable = torn
    }
    this.#bytes = this.#durable.slice()
    this.#size = this.#durable.byteLength
  }

  #grow(sizeBytes: number): void {
    if (sizeBytes <= this.#bytes.byteLength) return
    const grown = new Uint8Array(Math.max(sizeBytes, this.#bytes.byteLength * 2, 256))
    grown.set(this.#bytes.subarray(0, this.#size))
    this.#bytes = grown
  }
}

interface NameChange {
  readonly directories: readonly string[]
  readonly apply: (files: Map<string, FileNode>) => void
}

interface Volume {
  readonly path: string
  readonly capacityBytes: number
}

const capacityDefaultBytes = 2 ** 40

export class FileTree {
  #files = new Map<string, FileNode>()
  readonly #durableFiles = new Map<string, FileNode>()
  readonly #directories = new Set<string>(['/'])
  readonly #volumes: Volume[] = [{ path: '/', capacityBytes: capacityDefaultBytes }]
  #changes: NameChange[] = []
  readonly #newFile: (path: string) => FileNode

  constructor(newFile: (path: string) => FileNode = () => new FileNode()) {
    this.#newFile = newFile
  }

  file(path: string): FileNode | undefined {
    return this.#files.get(path)
  }

  create(path: string): FileNode {
    this.#requireDirectory(dirname(path))
    if (this.#files.has(path) || this.#directories.has(path)) throw systemError('EEXIST', path)
    const node = this.#newFile(path)
    this.#change([dirname(path)], (files) => files.set(path, node))
    return node
  }

  put(path: string, content: Uint8Array): void {
    this.makeDirectory(dirname(path))
    const node = new FileNode()
    node.write([content], 0)
    node.sync()
    this.#files.set(path, node)
    this.#durableFiles.set(path, node)
  }

  rename(from: string, to: string): void {
    const node = this.#files.get(from)
    if (node === undefined) throw systemError('ENOENT', from)
    this.#requireDirectory(dirname(to))
    if (this.#directories.has(to)) throw systemError('EISDIR', to)
    this.#change([dirname(from), dirname(to)], (files) => {
      files.delete(from)
      files.set(to, node)
    })
  }

  unlink(path: string): void {
    if (!this.#files.has(path)) {
      throw systemError(this.#directories.has(path) ? 'EISDIR' : 'ENOENT', path)
    }
    this.#change([dirname(path)], (files) => files.delete(path))
  }

  makeDirectory(path: string): void {
    if (this.#directories.has(path)) return
    if (this.#files.has(path)) throw systemError('EEXIST', path)
    this.makeDirectory(dirname(path))
    this.#directories.add(path)
  }

  list(path: string): string[] {
    this.#requireDirectory(path)
    const names: string[] = []
    for (const known of [...this.#files.keys(), ...this.#directories]) {
      if (known !== '/' && dirname(known) === path) {
        names.push(known.slice(path === '/' ? 1 : path.length + 1))
      }
    }
    return names
  }

  status(path: string): FileStatus | undefined {
    if (this.#directories.has(path)) return { sizeBytes: 4096, isDirectory: true }
    const node = this.#files.get(path)
    return node && { sizeBytes: node.sizeBytes, isDirectory: false }
  }

  syncDirectory(path: string): void {
    this.#requireDirectory(path)
    const waiting: NameChange[] = []
    for (const change of this.#changes) {
      if (change.directories.includes(path)) change.apply(this.#durableFiles)
      else waiting.push(change)
    }
    this.#changes = waiting
  }

  setCapacity(path: string, capacityBytes: number): void {
    const index = this.#volumes.findIndex((volume) => volume.path === path)
    if (index >= 0) this.#volumes.splice(index, 1)
    this.#volumes.push({ path, capacityBytes })
    // The longest path first, so that the innermost volume is found.
    this.#volumes.sort((a, b) => b.path.length - a.path.length)
  }

  space(path: string): SpaceStatus {
    const volume = this.#volumeOf(path)
    let used = 0
    for (const [name, node] of this.#files) {
      if (this.#volumeOf(name) === volume) used += node.sizeBytes
    }
    const totalBytes = volume.capacityBytes
    return { totalBytes, freeBytes: Math.max(0, totalBytes - used) }
  }

  /** As far as the volume has room; then ENOSPC. */
  write(path: string, node: FileNode, parts: readonly Uint8Array[], position: number): void {
    const byteCount = parts.reduce((sum, part) => sum + part.byteLength, 0)
    const growth = position + byteCount - node.sizeBytes
    const freeBytes = growth > 0 ? this.space(path).freeBytes : Infinity
    if (growth <= freeBytes) {
      node.write(parts, position)
      return
    }
    const fits = Math.max(0, byteCount - (growth - freeBytes))
    node.write([Buffer.concat(parts).subarray(0, fits)], position)
    throw systemError('ENOSPC', path)
  }

  filesBelow(path: string): readonly string[] {
    const prefix = path.endsWith('/') ? path : `${path}/`
    return [...this.#files.keys()].filter((name) => name.startsWith(prefix)).sort()
  }

  wipe(): void {
    this.#changes = []
    this.#files = new Map()
    this.#durableFiles.clear()
  }

  crash(loss: LossOnCrash, random: VirtualRandom): void {
    const all = this.#changes.length
    const kept = { keep: all, drop: 0, random: random.integer(all + 1) }[loss]
    for (const change of this.#changes.slice(0, kept)) change.apply(this.#durableFiles)
    this.#changes = []
    this.#files = new Map(this.#durableFiles)
    for (const node of new Set(this.#files.values())) node.crash(loss, random)
  }

  #change(directories: readonly string[], apply: NameChange['apply']): void {
    apply(this.#files)
    this.#changes.push({ directories, apply })
  }

  #volumeOf(path: string): Volume {
    for (const volume of this.#volumes) {
      const prefix = volume.path.endsWith('/') ? volume.path : `${volume.path}/`
      if (path === volume.path || path.startsWith(prefix)) return volume
    }
    throw systemError('ENOENT', path)
  }

  #requireDirectory(path: string): void {
    if (!this.#directories.has(path)) throw systemError('ENOENT', path)
  }
}

export function systemError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: '${path}'`), { code, path })
}
