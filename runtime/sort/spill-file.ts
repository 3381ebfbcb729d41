// Where a task puts what does not fit its memory: one file with sorted runs one after another. The
// file has no name from the moment it exists, so that the system frees it however the task ends.
//
//   run = record, record, …     record = length u32 | bytes

import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import path from 'node:path'

import { ok as assert } from 'node:assert/strict'
import { ShuffleError } from '../../client/index.ts'

/** A sorted run: where it lies in the spill file. */
export interface Run {
  readonly start: number
  readonly end: number
}

/** Bytes before a record's own. */
export const runHeaderBytes = 4

const writeBufferBytes = 256 * 1024

export class SpillFile {
  readonly #descriptor: number
  readonly #buffer = new Uint8Array(writeBufferBytes)
  #buffered = 0
  #size = 0
  #isClosed = false

  /** Made in `directory`; its name is random because another task may spill there too. */
  constructor(directory: string, name: string) {
    const file = path.join(directory, `.sluice-spill-${name}`)
    this.#descriptor = openSync(file, 'wx+', 0o600)
    unlinkSync(file)
  }

  /** Bytes of all runs so far. */
  get sizeBytes(): number {
    return this.#size + this.#buffered
  }

  /** Writes a run: `fill` puts its records, whole or in parts. */
  writeRun(fill: (writer: RunWriter) => void): Run {
    const start = this.sizeBytes
    fill({
      begin: (length) => {
        this.#putLength(length)
      },
      put: (bytes, from, to) => {
        this.#put(bytes, from, to)
      },
    })
    this.#flush()
    return { start, end: this.sizeBytes }
  }

  /** Fills `target` up to `length` bytes from `position` on; the bytes must be there. */
  read(target: Uint8Array, offset: number, length: number, position: number): void {
    for (let done = 0; done < length;) {
      const count = readSync(
        this.#descriptor,
        target,
        offset + done,
        length - done,
        position + done,
      )
      if (count === 0) throw new ShuffleError('DATA_CORRUPT', 'a spill file ends early')
      done += count
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    closeSync(this.#descriptor)
  }

  #putLength(length: number): void {
    assert(length >= 0 && length < 2 ** 32, 'a record has a length of 32 bits')
    if (this.#buffered + runHeaderBytes > writeBufferBytes) this.#flush()
    const buffer = this.#buffer
    buffer[this.#buffered] = length >>> 24
    buffer[this.#buffered + 1] = (length >>> 16) & 255
    buffer[this.#buffered + 2] = (length >>> 8) & 255
    buffer[this.#buffered + 3] = length & 255
    this.#buffered += runHeaderBytes
  }

  #put(bytes: Uint8Array, from: number, to: number): void {
    const length = to - from
    if (this.#buffered + length > writeBufferBytes) this.#flush()
    if (length > writeBufferBytes) {
      this.#write(bytes, from, to)
      return
    }
    this.#buffer.set(bytes.subarray(from, to), this.#buffered)
    this.#buffered += length
  }

  #flush(): void {
    this.#write(this.#buffer, 0, this.#buffered)
    this.#buffered = 0
  }

  #write(bytes: Uint8Array, from: number, to: number): void {
    for (let done = from; done < to;) {
      const count = writeSync(this.#descriptor, bytes, done, to - done, this.#size)
      done += count
      this.#size += count
    }
  }
}

/** What fills a run. Of each record `begin` comes first, then parts of exactly that length. */
export interface RunWriter {
  begin(length: number): void
  put(bytes: Uint8Array, from: number, to: number): void
}
