// Puts frames into gather lists: prefixes and headers go into small slabs of its own, one after the
// other, bodies stay where they are. Owned by one ProtocolConnection.

import { assert } from '../common/assert.ts'
import type { Fields, FieldValues, MessageDeclaration } from './define-message.ts'
import { frameLengthMin, framePrefixLength } from './frame.ts'

/** Large enough that headers cost one allocation per hundreds of frames. */
const slabLength = 16_384

export class FrameEncoder {
  #slab: Buffer = Buffer.allocUnsafeSlow(slabLength)
  #parts: Uint8Array[] = []
  /** The part of the slab that is written and not yet in `#parts`. */
  #start = 0
  #end = 0

  /** Appends one frame; returns its bytes. The body's memory is only referred to. */
  append<F extends Fields>(
    declaration: MessageDeclaration<string, F>,
    channelId: number,
    values: FieldValues<F>,
    body: readonly Uint8Array[] = [],
  ): number {
    const headerLength = declaration.sizeOf(values)
    let bodyLength = 0
    for (const part of body) bodyLength += part.length
    const offset = this.#reserve(framePrefixLength + headerLength)
    const slab = this.#slab
    slab.writeUInt32BE(frameLengthMin + headerLength + bodyLength, offset)
    slab.writeUInt8(declaration.id, offset + 4)
    slab.writeUInt8(0, offset + 5)
    slab.writeUInt16BE(headerLength, offset + 6)
    slab.writeUInt32BE(channelId, offset + 8)
    const end = declaration.write(values, slab, offset + framePrefixLength)
    assert(end === this.#end, `${declaration.name}: the header has the size that was counted`)
    if (bodyLength > 0) {
      this.#closePart()
      for (const part of body) if (part.length > 0) this.#parts.push(part)
    }
    return framePrefixLength + headerLength + bodyLength
  }

  /** All that was appended since the last call, as one gather list. */
  take(): readonly Uint8Array[] {
    this.#closePart()
    const parts = this.#parts
    this.#parts = []
    return parts
  }

  #reserve(length: number): number {
    if (this.#end + length > this.#slab.length) {
      this.#closePart()
      this.#slab = Buffer.allocUnsafeSlow(Math.max(slabLength, length))
      this.#start = 0
      this.#end = 0
    }
    const offset = this.#end
    this.#end += length
    return offset
  }

  #closePart(): void {
    if (this.#start === this.#end) return
    this.#parts.push(this.#slab.subarray(this.#start, this.#end))
    this.#start = this.#end
  }
}
