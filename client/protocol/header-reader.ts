// Reads the fields of one header, in order, and never past its end. One per decoder, aimed at each
// header in turn. A value that can't be is a PROTOCOL error that names the message and the field.

import { ShuffleError } from '../common/errors.ts'

const noBytes: Buffer = Buffer.alloc(0)
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export class HeaderReader {
  #source = noBytes
  #offset = 0
  #end = 0
  #message = ''
  #field: string | number = ''

  /** Aims at `source[start, end)`, the header of a message of this name. */
  reset(source: Buffer, range: { start: number; end: number }, message: string): void {
    this.#source = source
    this.#offset = range.start
    this.#end = range.end
    this.#message = message
    this.#field = ''
  }

  /** The field that is read next, for the texts of errors; of a list the number of the entry. */
  enter(field: string | number): void {
    this.#field = field
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#end
  }

  uint8(): number {
    return this.#source.readUInt8(this.#take(1))
  }

  uint16(): number {
    return this.#source.readUInt16BE(this.#take(2))
  }

  uint32(): number {
    return this.#source.readUInt32BE(this.#take(4))
  }

  uint64(): bigint {
    return this.#source.readBigUInt64BE(this.#take(8))
  }

  /** A u64 that must fit a JavaScript number without loss. */
  safeUint64(): number {
    const offset = this.#take(8)
    const high = this.#source.readUInt32BE(offset)
    if (high > 0x1f_ffff) this.fail('is larger than 2^53 - 1')
    return high * 0x1_0000_0000 + this.#source.readUInt32BE(offset + 4)
  }

  /** Text as u16 length and UTF-8. */
  text(lengthMax: number): string {
    const length = this.#lengthOf(lengthMax)
    const offset = this.#take(length)
    try {
      return utf8.decode(this.#source.subarray(offset, offset + length))
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      return this.fail('is not UTF-8')
    }
  }

  /** Like {@link text}, one character a byte: for ids, whose characters the caller checks. */
  latin1(lengthMax: number): string {
    const length = this.#lengthOf(lengthMax)
    const offset = this.#take(length)
    return this.#source.toString('latin1', offset, offset + length)
  }

  /** Characters of one byte each that a u8 length precedes. */
  latin1Byte(): string {
    const length = this.uint8()
    const offset = this.#take(length)
    return this.#source.toString('latin1', offset, offset + length)
  }

  /** A copy of bytes that a u16 length precedes. */
  bytes(lengthMax: number): Uint8Array {
    const length = this.#lengthOf(lengthMax)
    const offset = this.#take(length)
    return new Uint8Array(this.#source.subarray(offset, offset + length))
  }

  fail(what: string): never {
    // Made here only: a list has thousands of entries.
    const field = typeof this.#field === 'number' ? `entry ${String(this.#field)}` : this.#field
    throw new ShuffleError('PROTOCOL', `${this.#message}: header field ${field} ${what}`, {
      fields: { message: this.#message, field },
    })
  }

  #lengthOf(lengthMax: number): number {
    const length = this.uint16()
    if (length > lengthMax) {
      this.fail(`has ${String(length)} bytes, more than the ${String(lengthMax)} allowed`)
    }
    return length
  }

  #take(length: number): number {
    const offset = this.#offset
    if (offset + length > this.#end) this.fail('is cut off by the end of the header')
    this.#offset = offset + length
    return offset
  }
}
