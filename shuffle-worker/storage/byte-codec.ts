// Numbers and texts as bytes on the disk: big-endian fixed fields, and varints (LEB128: seven bits a
// byte, lowest first, the high bit says that more follow) up to 2^53 - 1. A reader never passes its
// end and never returns a number that was not written: everything malformed is DATA_CORRUPT.

import { assert } from '../../client/common/assert.ts'
import { ShuffleError } from '../../client/common/errors.ts'

/** Longest varint: eight bytes hold 56 bits. */
export const varintLengthMax = 8

export class ByteWriter {
  #bytes: Buffer
  #length = 0

  constructor(sizeBytes = 256) {
    // Of Node's pool when it is small: most are, and memory of its own costs each more than its bytes.
    this.#bytes = Buffer.allocUnsafe(sizeBytes)
  }

  get length(): number {
    return this.#length
  }

  /** A view of all that was written; valid until the next write. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  u8(value: number): this {
    this.#grow(1)
    this.#length = this.#bytes.writeUInt8(value, this.#length)
    return this
  }

  u16(value: number): this {
    this.#grow(2)
    this.#length = this.#bytes.writeUInt16BE(value, this.#length)
    return this
  }

  u32(value: number): this {
    this.#grow(4)
    this.#length = this.#bytes.writeUInt32BE(value, this.#length)
    return this
  }

  u64(value: number): this {
    this.#grow(8)
    this.#length = this.#bytes.writeBigUInt64BE(BigInt(value), this.#length)
    return this
  }

  varint(value: number): this {
    assert(Number.isSafeInteger(value) && value >= 0, 'a varint is an integer from 0 to 2^53 - 1')
    this.#grow(varintLengthMax)
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#length++] = rest
    return this
  }

  /** Printable ASCII (ids, names) with its length before it. */
  text(value: string): this {
    this.varint(value.length)
    this.#grow(value.length)
    this.#length += this.#bytes.write(value, this.#length, 'latin1')
    return this
  }

  append(bytes: Uint8Array): this {
    this.#grow(bytes.byteLength)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.byteLength
    return this
  }

  #grow(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.byteLength) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.byteLength * 2))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

export class ByteReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get remaining(): number {
    return this.#bytes.byteLength - this.#at
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#take(1))
  }

  u16(): number {
    return this.#bytes.readUInt16BE(this.#take(2))
  }

  u32(): number {
    return this.#bytes.readUInt32BE(this.#take(4))
  }

  u64(): number {
    const value = Number(this.#bytes.readBigUInt64BE(this.#take(8)))
    if (!Number.isSafeInteger(value)) throw corrupt('a number passes 2^53 - 1')
    return value
  }

  varint(): number {
    let value = 0
    let scale = 1
    for (let length = 1; length <= varintLengthMax; length += 1) {
      const byte = this.u8()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) throw corrupt('a number passes 2^53 - 1')
        return value
      }
      scale *= 0x80
    }
    throw corrupt('a number has no end')
  }

  /** `lengthMax` is the longest text that could have been written here. */
  text(lengthMax: number): string {
    const length = this.varint()
    if (length > lengthMax) throw corrupt(`a text of ${String(length)} characters is too long`)
    const start = this.#take(length)
    return this.#bytes.toString('latin1', start, start + length)
  }

  end(): void {
    if (this.remaining > 0) throw corrupt('bytes follow the last field')
  }

  #take(count: number): number {
    if (count > this.remaining) throw corrupt('a field is cut off')
    const start = this.#at
    this.#at += count
    return start
  }
}

export function corrupt(what: string): ShuffleError {
  return new ShuffleError('DATA_CORRUPT', `stored data is damaged: ${what}`)
}
