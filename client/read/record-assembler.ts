// Finds the records in the entries of one partition's runs. A record may begin in one entry and end
// in a later one of the same run; the part so far is kept here, in memory of its own, so that no
// pooled buffer waits for the rest. Owned by one input partition.
//
//   entry      | …rest of a record | length bytes | length bytes | length by… |
//               └ head              └ whole records, left in place ┘└ kept for the next entry

import { ShuffleError } from '../common/errors.ts'
import { recordLength } from './record-batch.ts'

/** What one entry gave. `start` is where in it the whole records begin. */
export interface AssembledRecords {
  readonly head: Uint8Array | undefined
  readonly start: number
  /** With the head. */
  readonly recordCount: number
  readonly byteCount: number
}

const framingBytes = 4

export class RecordAssembler {
  readonly #recordBytesMax: number
  /** The first bytes of a length field that an entry's end has cut. */
  #framing = 0
  #framingLength = 0
  #record: Uint8Array | undefined
  #recordLength = 0

  constructor(options: { readonly recordBytesMax: number }) {
    this.#recordBytesMax = options.recordBytesMax
  }

  /** Whether no record has begun and not ended. */
  get isWhole(): boolean {
    return this.#framingLength === 0 && this.#record === undefined
  }

  /** Takes the next entry of the run; what it keeps of `bytes` is copied. */
  add(bytes: Uint8Array): AssembledRecords {
    const start = this.#continue(bytes)
    const head = start.isHeadWhole ? this.#takeRecord() : undefined
    let position = start.position
    let recordCount = head === undefined ? 0 : 1
    let byteCount = head?.length ?? 0
    while (bytes.length - position >= framingBytes) {
      const length = recordLength(bytes, position)
      if (length > bytes.length - position - framingBytes) break
      position += framingBytes + length
      recordCount += 1
      byteCount += length
    }
    if (position < bytes.length) this.#continue(bytes.subarray(position))
    return { head, start: start.position, recordCount, byteCount }
  }

  /** Forgets a record that has begun: its partition failed or begins anew. */
  reset(): void {
    this.#framingLength = 0
    this.#record = undefined
    this.#recordLength = 0
  }

  /** Adds to the record that has begun (or begins one, when nothing has); where it ended. */
  #continue(bytes: Uint8Array): { readonly position: number; readonly isHeadWhole: boolean } {
    if (this.isWhole && bytes.length > 0 && this.#startsWhole(bytes)) {
      return { position: 0, isHeadWhole: false }
    }
    let position = 0
    while (this.#record === undefined && position < bytes.length) {
      this.#framing = ((this.#framing << 8) | (bytes[position] ?? 0)) >>> 0
      this.#framingLength += 1
      position += 1
      if (this.#framingLength === framingBytes) this.#begin(this.#framing)
    }
    const record = this.#record
    if (record === undefined) return { position, isHeadWhole: false }
    const length = Math.min(bytes.length - position, record.length - this.#recordLength)
    record.set(bytes.subarray(position, position + length), this.#recordLength)
    this.#recordLength += length
    return { position: position + length, isHeadWhole: this.#recordLength === record.length }
  }

  #startsWhole(bytes: Uint8Array): boolean {
    return bytes.length >= framingBytes && recordLength(bytes, 0) <= bytes.length - framingBytes
  }

  #begin(length: number): void {
    if (length > this.#recordBytesMax) {
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        `a record of ${String(length)} bytes is longer than the ${String(this.#recordBytesMax)} that are allowed`,
        { fields: { recordBytes: length } },
      )
    }
    this.#framingLength = 0
    this.#record = new Uint8Array(length)
    this.#recordLength = 0
  }

  #takeRecord(): Uint8Array | undefined {
    const record = this.#record
    this.#record = undefined
    this.#recordLength = 0
    return record
  }
}
