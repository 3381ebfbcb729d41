// The output of a job: one `.partial` file beside its final name, of which each reduce task writes a
// part at an offset known beforehand; the job renames it when all parts are written.

import { open, rename, rm, type FileHandle } from 'node:fs/promises'

import { ShuffleError } from '../../client/index.ts'

export function partialPath(output: string): string {
  return `${output}.partial`
}

/** Makes the empty partial file, replacing one that an earlier run left. */
export async function createPartial(output: string): Promise<void> {
  const file = await open(partialPath(output), 'w')
  await file.close()
}

/** Makes the partial file the output. */
export async function commitPartial(output: string): Promise<void> {
  await rename(partialPath(output), output)
}

/** Idempotent. */
export async function removePartial(output: string): Promise<void> {
  await rm(partialPath(output), { force: true })
}

const bufferBytes = 512 * 1024

/** Writes one part, from its start on. `put` never waits; call `drain` whenever `isFull`. */
export class PartWriter {
  readonly #file: FileHandle
  readonly #buffer = Buffer.allocUnsafeSlow(bufferBytes)
  #buffered = 0
  #position: number
  /** Bytes that were larger than the buffer's rest, in copies. */
  #overflow: Buffer[] = []

  private constructor(file: FileHandle, start: number) {
    this.#file = file
    this.#position = start
  }

  static async open(path: string, start: number): Promise<PartWriter> {
    return new PartWriter(await open(path, 'r+'), start)
  }

  /** Makes a file for one part, replacing what another attempt left. */
  static async create(path: string): Promise<PartWriter> {
    return new PartWriter(await open(path, 'w'), 0)
  }

  /** Where the next byte goes. */
  get position(): number {
    return (
      this.#position + this.#buffered + this.#overflow.reduce((sum, part) => sum + part.length, 0)
    )
  }

  get isFull(): boolean {
    return this.#overflow.length > 0 || this.#buffered > bufferBytes / 2
  }

  put(bytes: Uint8Array, from: number, to: number): void {
    const length = to - from
    if (this.#overflow.length > 0 || this.#buffered + length > bufferBytes) {
      this.#overflow.push(Buffer.from(bytes.subarray(from, to)))
      return
    }
    if (length <= 64) {
      for (let index = 0; index < length; index++) {
        this.#buffer[this.#buffered + index] = bytes[from + index] ?? 0
      }
    } else this.#buffer.set(bytes.subarray(from, to), this.#buffered)
    this.#buffered += length
  }

  putByte(byte: number): void {
    if (this.#overflow.length > 0 || this.#buffered === bufferBytes) {
      this.#overflow.push(Buffer.of(byte))
    } else this.#buffer[this.#buffered++] = byte
  }

  /** Hands all that was put to the system. */
  async drain(): Promise<void> {
    const parts = [this.#buffer.subarray(0, this.#buffered), ...this.#overflow]
    this.#overflow = []
    this.#buffered = 0
    for (const part of parts) {
      for (let done = 0; done < part.length;) {
        const { bytesWritten } = await this.#file.write(
          part,
          done,
          part.length - done,
          this.#position,
        )
        if (bytesWritten === 0) throw new ShuffleError('DISK_FAILED', 'the output takes no bytes')
        done += bytesWritten
        this.#position += bytesWritten
      }
    }
  }

  /** Closing can fail, and then the part is not written. */
  async close(): Promise<void> {
    await this.#file.close()
  }
}
