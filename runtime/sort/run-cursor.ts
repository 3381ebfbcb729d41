// One run being read: a window of it in memory, and the record at its head. A record longer than the
// window has its beginning in memory; the rest is read when it is compared or copied.

import { ok as assert } from 'node:assert/strict'
import { compareBytes, keyPrefix } from './record-order.ts'
import { runHeaderBytes, type Run, type SpillFile } from './spill-file.ts'

/** A window must hold a record's length, a trailer, and enough of a key to decide most comparisons. */
export const windowBytesMin = 1024

/** Takes a key in parts; each part's memory is valid during the call. */
export interface KeySink {
  key(bytes: Uint8Array, from: number, to: number): void
}

export class RunCursor {
  readonly window: Uint8Array
  readonly #file: SpillFile
  readonly #run: Run
  readonly #trailerBytes: number
  /** Where in the file the window's first byte lies, and how much of the window is filled. */
  #windowStart: number
  #filled = 0
  /** Of the record at the head: its first byte in the window, its length, its first four bytes. */
  #headAt = 0
  #length = 0
  #prefix = 0
  #isAtEnd = false

  constructor(options: {
    readonly file: SpillFile
    readonly run: Run
    readonly window: Uint8Array
    readonly trailerBytes: number
  }) {
    assert(options.window.length >= windowBytesMin, 'a run needs a window')
    this.window = options.window
    this.#file = options.file
    this.#run = options.run
    this.#trailerBytes = options.trailerBytes
    this.#windowStart = options.run.start
    this.#load(options.run.start)
  }

  /** No record is left. */
  get isAtEnd(): boolean {
    return this.#isAtEnd
  }

  /** Length of the head's key: without its trailer. */
  get keyLength(): number {
    return this.#length - this.#trailerBytes
  }

  /** Compares the heads' keys. */
  compare(other: RunCursor): number {
    if (this.#prefix !== other.#prefix) return this.#prefix - other.#prefix
    const mine = this.#keyInWindow
    const its = other.#keyInWindow
    const known = Math.min(mine, its)
    const order = compareBytes(
      this.window,
      this.#headAt,
      this.#headAt + known,
      other.window,
      other.#headAt,
      other.#headAt + known,
    )
    if (order !== 0) return order
    const isDecided = known === this.keyLength || known === other.keyLength
    return isDecided ? this.keyLength - other.keyLength : this.#compareOutside(other, known)
  }

  /** Passes the head's key to the sink, in as many parts as it takes. */
  copyKey(sink: KeySink): void {
    const known = this.#keyInWindow
    sink.key(this.window, this.#headAt, this.#headAt + known)
    if (known === this.keyLength) return
    const part = new Uint8Array(Math.min(this.keyLength - known, partBytes))
    for (let done = known; done < this.keyLength;) {
      const length = Math.min(part.length, this.keyLength - done)
      this.#file.read(part, 0, length, this.#headPosition + done)
      sink.key(part, 0, length)
      done += length
    }
  }

  /** The head's trailer. */
  readTrailer(target: Uint8Array): void {
    const at = this.#headAt + this.keyLength
    if (at + this.#trailerBytes > this.#filled) {
      this.#file.read(target, 0, this.#trailerBytes, this.#windowStart + at)
      return
    }
    for (let index = 0; index < this.#trailerBytes; index++) {
      target[index] = this.window[at + index] ?? 0
    }
  }

  /** Goes to the next record. */
  advance(): void {
    this.#load(this.#headPosition + this.#length)
  }

  get #headPosition(): number {
    return this.#windowStart + this.#headAt
  }

  get #keyInWindow(): number {
    return Math.min(this.keyLength, this.#filled - this.#headAt)
  }

  /** Makes the record that begins at `position` of the file the head. */
  #load(position: number): void {
    if (position >= this.#run.end) {
      this.#isAtEnd = true
      return
    }
    if (!this.#hasInWindow(position, runHeaderBytes)) this.#refill(position)
    const at = position - this.#windowStart
    this.#length = keyPrefix(this.window, at, at + runHeaderBytes)
    if (!this.#hasInWindow(position, runHeaderBytes + this.#length)) this.#refill(position)
    this.#headAt = position - this.#windowStart + runHeaderBytes
    this.#prefix = keyPrefix(this.window, this.#headAt, this.#headAt + this.#keyInWindow)
  }

  #hasInWindow(position: number, length: number): boolean {
    return position + length <= this.#windowStart + this.#filled
  }

  #refill(position: number): void {
    const kept = Math.max(0, this.#windowStart + this.#filled - position)
    if (kept > 0) {
      const from = position - this.#windowStart
      this.window.copyWithin(0, from, from + kept)
    }
    this.#windowStart = position
    this.#filled = Math.min(this.window.length, this.#run.end - position)
    this.#file.read(this.window, kept, this.#filled - kept, position + kept)
  }

  /** For keys that agree in all that both windows hold of them. */
  #compareOutside(other: RunCursor, known: number): number {
    const mine = new Uint8Array(partBytes)
    const its = new Uint8Array(partBytes)
    for (let done = known; ;) {
      const length = Math.min(partBytes, this.keyLength - done, other.keyLength - done)
      if (length === 0) return this.keyLength - other.keyLength
      this.#file.read(mine, 0, length, this.#headPosition + done)
      other.#file.read(its, 0, length, other.#headPosition + done)
      const order = compareBytes(mine, 0, length, its, 0, length)
      if (order !== 0) return order
      done += length
    }
  }
}

const partBytes = 64 * 1024
