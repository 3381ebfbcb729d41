// How bytes are appended to a file that is written from its beginning to its end. Buffered, the parts
// go to the system as they are. Direct, they are copied into an aligned piece in whole blocks; what
// does not fill a block is carried to the next write:
//
//   write k      [ carried | part | part | pa ]rt        in blocks
//   write k + 1                          [ carried | part | … ]
//   the end                                          [ carried | zeros ]   then cut to its length
//
// Owned by one partition file writer, one write at a time.

import { alignDown, directBlockBytes } from '../../client/common/aligned-memory.ts'
import type { DirectMemory } from './direct-memory.ts'
import type { QueuedFile } from './queued-disk.ts'

/** `released`: the parts are no longer needed. It resolves on every path, `written` may reject. */
export interface Appended {
  readonly written: Promise<void>
  readonly released: Promise<void>
  /** The real end, as of {@link SubmittedOperation}. */
  readonly ended: Promise<void>
}

export interface FileAppender {
  /** Most bytes that one call takes well. */
  readonly appendBytesMax: number
  append(file: QueuedFile, parts: readonly Uint8Array[]): Appended
  /** Everything appended is in the file, which has its final length. */
  finish(file: QueuedFile): Promise<void>
}

const bufferedBytesMax = 4 * 1024 * 1024

export class BufferedAppender implements FileAppender {
  readonly appendBytesMax = bufferedBytesMax
  #position = 0

  append(file: QueuedFile, parts: readonly Uint8Array[]): Appended {
    const { result, ended } = file.write(parts, this.#position)
    this.#position += lengthOf(parts)
    return { written: result, released: ended, ended }
  }

  finish(): Promise<void> {
    return Promise.resolve()
  }
}

export class DirectAppender implements FileAppender {
  readonly appendBytesMax: number
  readonly #memory: DirectMemory
  /** Of the next block; shorter than it. */
  #carried: Uint8Array = new Uint8Array(0)
  #position = 0

  constructor(memory: DirectMemory) {
    this.#memory = memory
    this.appendBytesMax = memory.writeBytes - directBlockBytes
  }

  append(file: QueuedFile, parts: readonly Uint8Array[]): Appended {
    let release: () => void = () => undefined
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const ends: Promise<void>[] = []
    const written = this.#append(file, parts, { release, ends }).finally(release)
    const ended = written.then(
      () => undefined,
      () => undefined,
    )
    return { written, released, ended: ended.then(() => Promise.all(ends)).then(() => undefined) }
  }

  async finish(file: QueuedFile): Promise<void> {
    const length = this.#position + this.#carried.byteLength
    if (this.#carried.byteLength === 0) return
    await file.writeLater(() => {
      const piece = this.#memory.takeForWrite()
      piece.set(this.#carried)
      piece.fill(0, this.#carried.byteLength, directBlockBytes)
      return {
        parts: [piece.subarray(0, directBlockBytes)],
        position: this.#position,
        onEnded: () => {
          this.#memory.giveFromWrite(piece)
        },
      }
    }).result
    await file.truncate(length)
  }

  async #append(
    file: QueuedFile,
    parts: readonly Uint8Array[],
    call: { readonly release: () => void; readonly ends: Promise<void>[] },
  ): Promise<void> {
    const source = new PartReader(parts)
    while (source.leftBytes > 0) {
      if (this.#carryAll(source)) return
      const { result, ended } = file.writeLater(() => {
        const piece = this.#memory.takeForWrite()
        const filled = this.#gather(piece, source)
        const position = this.#position
        this.#position += filled
        if (source.leftBytes === 0) call.release()
        return {
          parts: [piece.subarray(0, filled)],
          position,
          onEnded: () => {
            this.#memory.giveFromWrite(piece)
          },
        }
      })
      call.ends.push(ended)
      await result
    }
  }

  /** Too little for a block: nothing to write yet. */
  #carryAll(source: PartReader): boolean {
    const length = this.#carried.byteLength + source.leftBytes
    if (length >= directBlockBytes) return false
    const carried = new Uint8Array(length)
    carried.set(this.#carried)
    source.copy(carried.subarray(this.#carried.byteLength))
    this.#carried = carried
    return true
  }

  /** Fills whole blocks of `piece`; the rest, less than one, is carried on. Returns their length. */
  #gather(piece: Uint8Array, source: PartReader): number {
    const carriedBytes = this.#carried.byteLength
    const all = carriedBytes + source.leftBytes
    const filled = Math.min(piece.byteLength, alignDown(all))
    piece.set(this.#carried)
    source.copy(piece.subarray(carriedBytes, filled))
    const isLast = all < piece.byteLength
    this.#carried = new Uint8Array(isLast ? source.leftBytes : 0)
    if (isLast) source.copy(this.#carried)
    return filled
  }
}

/** Parts as one sequence of bytes that is copied out once. */
class PartReader {
  leftBytes: number
  readonly #parts: readonly Uint8Array[]
  #index = 0
  #offset = 0

  constructor(parts: readonly Uint8Array[]) {
    this.#parts = parts
    this.leftBytes = lengthOf(parts)
  }

  copy(target: Uint8Array): void {
    let filled = 0
    while (filled < target.byteLength) {
      const part = this.#parts[this.#index]
      if (part === undefined) return
      const length = Math.min(target.byteLength - filled, part.byteLength - this.#offset)
      target.set(part.subarray(this.#offset, this.#offset + length), filled)
      filled += length
      this.#offset += length
      if (this.#offset < part.byteLength) continue
      this.#index += 1
      this.#offset = 0
    }
    this.leftBytes -= filled
  }
}

export function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0)
}
