// The real Disk: Node's file calls by descriptor, each on the thread pool. Callers bound how many
// are under way; nothing here queues or retries but the continuation of short reads and writes.

import * as fs from 'node:fs'
import * as fsPromises from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { directBlockBytes } from './aligned-memory.ts'
import type { Disk, DiskFile, OpenMode } from './disk.ts'
import { lockDirectory } from './real-directory-lock.ts'

/** Linux takes at most this many parts in one call (IOV_MAX). */
const partsPerCallMax = 1024

const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = fs.constants
const openFlags: Readonly<Record<OpenMode, number>> = {
  create: O_CREAT | O_EXCL | O_RDWR,
  read: O_RDONLY,
  update: O_RDWR,
}
/** Absent where the system has no direct IO. */
const directFlag = (fs.constants as Partial<typeof fs.constants>).O_DIRECT

const openFile = promisify(fs.open)
const closeFile = promisify(fs.close)
const syncFile = promisify(fs.fsync)
const truncateFile = promisify(fs.ftruncate)
const statFile = promisify(fs.fstat)

export const realDisk: Disk = {
  async open(path, mode, options) {
    const isDirect = options?.isDirect === true
    const flags = openFlags[mode] | (isDirect ? requireDirectFlag(path) : 0)
    return new RealDiskFile(await openFile(path, flags), { path, isDirect })
  },
  rename: (from, to) => fsPromises.rename(from, to),
  unlink: (path) => fsPromises.unlink(path),
  makeDirectory,
  list: (path) => fsPromises.readdir(path),
  async status(path) {
    try {
      const found = await fsPromises.stat(path)
      return { sizeBytes: found.size, isDirectory: found.isDirectory() }
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  },
  async syncDirectory(path) {
    const descriptor = await openFile(path, 'r')
    try {
      await syncFile(descriptor)
    } finally {
      await closeFile(descriptor)
    }
  },
  async space(path) {
    const found = await fsPromises.statfs(path)
    const { dev } = await fsPromises.stat(path)
    const boot = await bootId()
    return {
      freeBytes: found.bavail * found.bsize,
      totalBytes: found.blocks * found.bsize,
      // Numbers of devices are a machine's own.
      fileSystem: boot === undefined ? undefined : `${boot}/${String(dev)}`,
    }
  },
  lock: (path) => lockDirectory(path),
  bootId,
}

/** Node's own recursive call never ends where a directory is there and takes none, as /proc. */
async function makeDirectory(path: string): Promise<void> {
  try {
    await makeOneDirectory(path)
  } catch (error) {
    const above = dirname(path)
    if (!isMissing(error) || above === path) throw error
    await makeDirectory(above)
    await makeOneDirectory(path)
  }
}

async function makeOneDirectory(path: string): Promise<void> {
  try {
    await fsPromises.mkdir(path)
  } catch (error) {
    if (!(await isDirectory(path))) throw error
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await fsPromises.stat(path)).isDirectory()
  } catch {
    // Whoever asks has the error that matters.
    return false
  }
}

async function bootId(): Promise<string | undefined> {
  try {
    return (await fsPromises.readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  } catch {
    // Not Linux, or no /proc: then nothing unsynced is believed after a restart.
    return undefined
  }
}

class RealDiskFile implements DiskFile {
  readonly #descriptor: number
  readonly #path: string
  readonly #isDirect: boolean

  constructor(descriptor: number, options: { readonly path: string; readonly isDirect: boolean }) {
    this.#descriptor = descriptor
    this.#path = options.path
    this.#isDirect = options.isDirect
  }

  async write(parts: readonly Uint8Array[], position: number): Promise<void> {
    let rest = parts.filter((part) => part.byteLength > 0)
    let at = position
    while (rest.length > 0) {
      const written = await this.#writeOnce(rest.slice(0, partsPerCallMax), at)
      if (written <= 0) throw this.#shortWrite(at)
      at += written
      rest = dropBytes(rest, written)
    }
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    let filled = 0
    while (filled < target.byteLength) {
      const length = target.byteLength - filled
      const count = await this.#readOnce(target, filled, length, position + filled)
      filled += count
      // A direct read that ends within a block has met the end of the file.
      if (count === 0 || (this.#isDirect && count % directBlockBytes !== 0)) break
    }
    return filled
  }

  sync(): Promise<void> {
    return syncFile(this.#descriptor)
  }

  truncate(sizeBytes: number): Promise<void> {
    return truncateFile(this.#descriptor, sizeBytes)
  }

  async sizeBytes(): Promise<number> {
    return (await statFile(this.#descriptor)).size
  }

  close(): Promise<void> {
    return closeFile(this.#descriptor)
  }

  #writeOnce(parts: readonly Uint8Array[], position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const done = (error: Error | null, count: number) => {
        if (error === null) resolve(count)
        else reject(error)
      }
      const only = parts[0]
      if (parts.length === 1 && only !== undefined) {
        fs.write(this.#descriptor, only, 0, only.byteLength, position, done)
      } else {
        fs.writev(this.#descriptor, parts as Uint8Array[], position, done)
      }
    })
  }

  #readOnce(target: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.read(this.#descriptor, target, offset, length, position, (error, count) => {
        if (error === null) resolve(count)
        else reject(error)
      })
    })
  }

  #shortWrite(position: number): Error {
    const what = `EIO: the system took no byte at ${String(position)} of ${this.#path}`
    return Object.assign(new Error(what), { code: 'EIO', path: this.#path })
  }
}

function requireDirectFlag(path: string): number {
  if (directFlag !== undefined) return directFlag
  const what = `EINVAL: this system has no direct IO, '${path}'`
  throw Object.assign(new Error(what), { code: 'EINVAL', path })
}

/** What remains of `parts` after their first `count` bytes. */
export function dropBytes(parts: readonly Uint8Array[], count: number): Uint8Array[] {
  let left = count
  let index = 0
  for (const part of parts) {
    if (part.byteLength > left) break
    left -= part.byteLength
    index += 1
  }
  const rest = parts.slice(index)
  const first = rest[0]
  if (left > 0 && first !== undefined) rest[0] = first.subarray(left)
  return rest
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code
  return code === 'ENOENT' || code === 'ENOTDIR'
}
