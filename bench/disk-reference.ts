// The disk reference: a plain program that appends to fresh files and reads them back, so many
// requests of one size at a time, and nothing else. What the disk gives it is what the worker is
// compared with.

import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { alignedMemory } from '../client/common/aligned-memory.ts'

export interface DiskShape {
  readonly directory: string
  readonly fileCount: number
  readonly requestBytes: number
  /** Requests under way at a time; of a file that is appended to, one. */
  readonly depth: number
  readonly totalBytes: number
  readonly isDirect: boolean
}

export interface DiskResult {
  readonly bytes: number
  readonly seconds: number
}

const directFlag = (shape: DiskShape) => (shape.isDirect ? constants.O_DIRECT : 0)

/** Bytes of each file: whole requests. */
export function fileBytesOf(shape: DiskShape): number {
  const requests = Math.max(1, Math.floor(shape.totalBytes / shape.fileCount / shape.requestBytes))
  return requests * shape.requestBytes
}

/** From the opening of the first file to the sync of the last. */
export async function appendFiles(shape: DiskShape): Promise<DiskResult> {
  const { requestBytes, depth } = shape
  const startMs = performance.now()
  const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | directFlag(shape)
  const files = await openAll(shape, flags)
  const memory = filledMemory(requestBytes * depth)
  const fileBytes = fileBytesOf(shape)
  // Files are taken in turn, so that one file has one request under way.
  const queue = files.map((file) => ({ file, position: 0 }))
  await inParallel(Math.min(depth, files.length), async (worker) => {
    const source = memory.subarray(worker * requestBytes, (worker + 1) * requestBytes)
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      await next.file.write(source, 0, requestBytes, next.position)
      next.position += requestBytes
      if (next.position < fileBytes) queue.push(next)
    }
  })
  await inParallel(Math.min(4, files.length), async (worker) => {
    for (let index = worker; index < files.length; index += 4) await files[index]?.sync()
  })
  await closeAll(files)
  return resultOf(fileBytes * files.length, startMs)
}

/** All of the files that {@link appendFiles} made: each from its beginning, or in random order. */
export async function readFiles(
  shape: DiskShape,
  order: 'sequential' | 'random',
): Promise<DiskResult> {
  const { requestBytes, depth } = shape
  const startMs = performance.now()
  const files = await openAll(shape, constants.O_RDONLY | directFlag(shape))
  const requests: { file: FileHandle; position: number }[] = []
  const sizes = await Promise.all(files.map(async (file) => (await file.stat()).size))
  for (let position = 0; position < Math.max(...sizes); position += requestBytes) {
    for (const [index, file] of files.entries()) {
      if (position + requestBytes <= (sizes[index] ?? 0)) requests.push({ file, position })
    }
  }
  if (order === 'random') {
    shuffle(requests)
    requests.length = Math.min(requests.length, Math.ceil(shape.totalBytes / requestBytes))
  }
  const memory = filledMemory(requestBytes * depth)
  let next = 0
  await inParallel(depth, async (worker) => {
    const target = memory.subarray(worker * requestBytes, (worker + 1) * requestBytes)
    for (let request = requests[next++]; request !== undefined; request = requests[next++]) {
      await request.file.read(target, 0, requestBytes, request.position)
    }
  })
  await closeAll(files)
  return resultOf(requests.length * requestBytes, startMs)
}

/** Touched, so that the first use of a page is not part of a measurement. */
function filledMemory(byteLength: number): Uint8Array {
  const memory = alignedMemory(byteLength)
  for (let at = 0; at < byteLength; at += 4) memory[at] = at * 2_654_435_761
  return memory
}

function openAll(shape: DiskShape, flags: number): Promise<FileHandle[]> {
  return Promise.all(
    Array.from({ length: shape.fileCount }, (_, index) =>
      open(path.join(shape.directory, `file-${String(index)}`), flags, 0o600),
    ),
  )
}

async function closeAll(files: readonly FileHandle[]): Promise<void> {
  await Promise.all(files.map((file) => file.close()))
}

async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, index) => work(index)))
}

function resultOf(bytes: number, startMs: number): DiskResult {
  return { bytes, seconds: (performance.now() - startMs) / 1000 }
}

function shuffle(items: unknown[]): void {
  for (let index = items.length - 1; index > 0; index -= 1) {
    const other = Math.floor(Math.random() * (index + 1))
    const held = items[index]
    items[index] = items[other]
    items[other] = held
  }
}
