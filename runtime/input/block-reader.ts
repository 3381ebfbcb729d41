// Reads the units (lines, words) of a part of a file, in blocks of many. A unit ends with its
// separator and belongs to the part in which it begins, so for any bounds each unit is read once:
// the part [start, end) reads the bytes from unitStart(start) to unitStart(end), where unitStart(x)
// is 0 for 0 and else follows the first separator at x - 1 or after it.

import { open, type FileHandle } from 'node:fs/promises'

import { ShuffleError } from '../../client/index.ts'
import type { FileRange } from './input-split.ts'

export interface BlockReaderOptions {
  readonly range: FileRange
  /** 1 for each byte that separates units. */
  readonly separators: Uint8Array
  /** What a unit is called in error texts. */
  readonly unitName: string
  /** A longer unit is an error that names its line. */
  readonly unitBytesMax: number
  /** Bytes read at a time; a longer unit makes the memory grow to its length. */
  readonly blockBytes?: number
}

/** Whole units, one after another; the last of a file may lack its separator. */
export interface Block {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
}

const newline = 0x0a
const defaultBlockBytes = 512 * 1024

export const lineSeparators = separatorTable([newline])
/** Space, tab, newline, vertical tab, form feed, carriage return. */
export const wordSeparators = separatorTable([0x20, 0x09, newline, 0x0b, 0x0c, 0x0d])

/** The blocks of one part of a file. A block's memory is valid until the next one is asked for. */
export async function* readBlocks(options: BlockReaderOptions): AsyncGenerator<Block, void, void> {
  const { path, start, end } = options.range
  const file = await open(path, 'r')
  try {
    const first = await findUnitStart(file, options, start, end)
    if (first !== undefined) yield* readFrom(file, options, first)
  } finally {
    await file.close()
  }
}

/** Where a unit of a block ends: the index of its separator, or the end of the block. */
export function unitEnd(block: Block, separators: Uint8Array, start: number): number {
  let at = start
  while (at < block.end && separators[block.bytes[at] ?? 0] === 0) at += 1
  return at
}

/** Where the first unit that begins in [start, end) begins; undefined when none does. */
async function findUnitStart(
  file: FileHandle,
  { separators, blockBytes = defaultBlockBytes }: BlockReaderOptions,
  start: number,
  end: number,
): Promise<number | undefined> {
  if (start === 0) return start < end ? 0 : undefined
  const bytes = new Uint8Array(Math.min(blockBytes, end - start))
  for (let position = start - 1; position < end - 1;) {
    const wanted = Math.min(bytes.length, end - 1 - position)
    const { bytesRead } = await file.read(bytes, 0, wanted, position)
    if (bytesRead === 0) return undefined
    const found = indexOfSeparator(bytes, separators, 0, bytesRead)
    if (found !== -1) return position + found + 1
    position += bytesRead
  }
  return undefined
}

async function* readFrom(
  file: FileHandle,
  options: BlockReaderOptions,
  first: number,
): AsyncGenerator<Block, void, void> {
  const { separators, unitBytesMax, range } = options
  // Not longer than the longest unit with its separator: so no longer one ever fits.
  let bytes = new Uint8Array(Math.min(options.blockBytes ?? defaultBlockBytes, unitBytesMax + 1))
  let position = first
  let filled = 0
  for (;;) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, position + filled)
    // What was filled before follows the last separator: it has none.
    const known = filled
    filled += bytesRead
    const last = indexOfSeparator(
      bytes,
      separators,
      Math.max(known, range.end - 1 - position),
      filled,
    )
    const isAtEnd = bytesRead === 0 || last !== -1
    const cut = last === -1 ? lastIndexOfSeparator(bytes, separators, known, filled) : last
    const end = bytesRead === 0 ? filled : cut + 1
    if (!isAtEnd && filled - end > unitBytesMax) {
      throw await unitTooLong(file, options, position + end)
    }
    if (end > 0) yield { bytes, start: 0, end }
    if (isAtEnd) return
    bytes.copyWithin(0, end, filled)
    position += end
    filled -= end
    if (filled === bytes.length) bytes = grow(bytes, unitBytesMax + 1)
  }
}

function grow(bytes: Uint8Array, lengthMax: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(Math.min(lengthMax, bytes.length * 2))
  larger.set(bytes)
  return larger
}

async function unitTooLong(
  file: FileHandle,
  { range, unitName, unitBytesMax }: BlockReaderOptions,
  unitStart: number,
): Promise<ShuffleError> {
  const line = 1 + (await countNewlines(file, unitStart))
  return new ShuffleError(
    'INVALID_ARGUMENT',
    `${range.path}: the ${unitName} at line ${String(line)} is longer than ${String(unitBytesMax)} bytes; give the tasks more memory with --task-memory`,
    { fields: { path: range.path, line, byteOffset: unitStart, bytesMax: unitBytesMax } },
  )
}

async function countNewlines(file: FileHandle, end: number): Promise<number> {
  const bytes = Buffer.alloc(defaultBlockBytes)
  let count = 0
  for (let position = 0; position < end;) {
    const wanted = Math.min(bytes.length, end - position)
    const { bytesRead } = await file.read(bytes, 0, wanted, position)
    if (bytesRead === 0) break
    for (let at = bytes.indexOf(newline); at !== -1 && at < bytesRead;) {
      count += 1
      at = bytes.indexOf(newline, at + 1)
    }
    position += bytesRead
  }
  return count
}

function indexOfSeparator(
  bytes: Uint8Array,
  separators: Uint8Array,
  from: number,
  to: number,
): number {
  for (let at = from; at < to; at++) if (separators[bytes[at] ?? 0] === 1) return at
  return -1
}

function lastIndexOfSeparator(
  bytes: Uint8Array,
  separators: Uint8Array,
  from: number,
  to: number,
): number {
  for (let at = to - 1; at >= from; at--) if (separators[bytes[at] ?? 0] === 1) return at
  return -1
}

function separatorTable(separators: readonly number[]): Uint8Array {
  const table = new Uint8Array(256)
  for (const byte of separators) table[byte] = 1
  return table
}
