// Turns the byte stream of a connection into messages, whatever the pieces it arrives in. Owned by
// one ProtocolConnection. A frame that breaks a limit or a layout throws ShuffleError PROTOCOL, which
// ends the connection; an unknown type is skipped by its length.
//
//   prefix (12 bytes) ──> header ──> body ──> onData / onMessage ──> prefix …
//        └── unknown type ──> skip ──┘ └── no buffer ──> skip ──┘
//
// Bytes are copied once: a body straight to its place, prefix and header only where the pieces cut
// them.

import { assert } from '../common/assert.ts'
import type { PooledBuffer } from '../common/buffer.ts'
import { ShuffleError } from '../common/errors.ts'
import { bufferView } from './buffer-view.ts'
import type { MessageDeclaration } from './define-message.ts'
import { frameLengthMin, framePrefixLength } from './frame.ts'
import { HeaderReader } from './header-reader.ts'
import { controlBodyLengthMax, dataBodyLengthMax, headerLengthMax } from './limits.ts'
import { type ControlMessage, type DataMessage, messageList } from './messages.ts'

export interface FrameHandler {
  /**
   * A frame begins, before its header is read; undefined where the type is unknown and the frame
   * will be skipped. Throws when it may not come now.
   */
  admit(declaration: MessageDeclaration | undefined, channelId: number): void
  /**
   * Memory for a data body, at least `bodyLength` long; undefined to skip the body and the message.
   * The buffer is the decoder's until it comes back with `onData`, or is recycled by `close`.
   */
  bodyBuffer(message: DataMessage, channelId: number, bodyLength: number): PooledBuffer | undefined
  /** A whole data message; the buffer is the handler's now. */
  onData(message: DataMessage, channelId: number, buffer: PooledBuffer, bodyLength: number): void
  /** Any other message; `body` is fresh memory, empty where there is none. */
  onMessage(message: ControlMessage, channelId: number, body: Uint8Array): void
}

type Stage = 'prefix' | 'header' | 'body' | 'skip' | 'closed'

const frameLengthMax =
  frameLengthMin + headerLengthMax + Math.max(controlBodyLengthMax, dataBodyLengthMax)

const emptyBody = new Uint8Array(0)

export class FrameDecoder {
  readonly #handler: FrameHandler
  readonly #declarations: readonly (MessageDeclaration | undefined)[]
  readonly #reader = new HeaderReader()
  readonly #prefix = Buffer.alloc(framePrefixLength)
  #stage: Stage = 'prefix'
  /** Bytes of the present stage that have come, and that it needs. */
  #filled = 0
  #needed = framePrefixLength

  // The frame under way.
  #type = 0
  #channelId = 0
  #bodyLength = 0
  #declaration: MessageDeclaration | undefined
  /** Only where the pieces cut a header. */
  #header: Buffer = this.#prefix
  #message: DataMessage | ControlMessage | undefined
  #buffer: PooledBuffer | undefined
  #body: Uint8Array = emptyBody

  #frameCount = 0
  #skippedCount = 0

  constructor(handler: FrameHandler, declarations: readonly MessageDeclaration[] = messageList) {
    this.#handler = handler
    const byId = new Array<MessageDeclaration | undefined>(256).fill(undefined)
    for (const declaration of declarations) byId[declaration.id] = declaration
    this.#declarations = byId
  }

  /** Frames of unknown types, and data frames that found no buffer. */
  get skippedCount(): number {
    return this.#skippedCount
  }

  /** Whether the stream may not end here. */
  get isInsideFrame(): boolean {
    return this.#stage !== 'closed' && (this.#stage !== 'prefix' || this.#filled > 0)
  }

  /** Number of the frame that has begun and not ended. */
  get frameUnderWay(): number | undefined {
    if (!this.isInsideFrame) return undefined
    return this.#stage === 'prefix' ? this.#frameCount + 1 : this.#frameCount
  }

  /** Bytes as they arrived; nothing of them is kept by reference. */
  push(bytes: Uint8Array): void {
    const source = bufferView(bytes)
    let offset = 0
    while (offset < source.length && this.#stage !== 'closed') {
      offset = this.#step(source, offset)
    }
  }

  /** Recycles a body that is partly received. After it nothing is called. Idempotent. */
  close(): void {
    this.#stage = 'closed'
    const buffer = this.#buffer
    this.#buffer = undefined
    this.#body = emptyBody
    buffer?.recycle()
  }

  /** Takes from `source` what the present stage can use; returns the offset after it. */
  #step(source: Buffer, offset: number): number {
    const available = Math.min(source.length - offset, this.#needed - this.#filled)
    const end = offset + available
    if (this.#filled === 0 && available === this.#needed) {
      if (this.#stage === 'prefix') {
        this.#onPrefix(source, offset)
        return end
      }
      if (this.#stage === 'header') {
        this.#onHeader(source, offset)
        return end
      }
    }
    if (this.#stage === 'prefix') source.copy(this.#prefix, this.#filled, offset, end)
    else if (this.#stage === 'header') this.#keepHeader(source, offset, end)
    else if (this.#stage === 'body') source.copy(this.#body, this.#filled, offset, end)
    this.#filled += available
    if (this.#filled === this.#needed) this.#onStageFilled()
    return end
  }

  #onStageFilled(): void {
    switch (this.#stage) {
      case 'prefix':
        this.#onPrefix(this.#prefix, 0)
        break
      case 'header':
        this.#onHeader(this.#header, 0)
        break
      case 'body':
        this.#deliver()
        break
      case 'skip':
        this.#enter('prefix', framePrefixLength)
        break
      case 'closed':
        break
    }
  }

  #keepHeader(source: Buffer, start: number, end: number): void {
    if (this.#filled === 0) this.#header = Buffer.allocUnsafe(this.#needed)
    source.copy(this.#header, this.#filled, start, end)
  }

  #enter(stage: Stage, needed: number): void {
    this.#stage = stage
    this.#filled = 0
    this.#needed = needed
  }

  #onPrefix(source: Buffer, offset: number): void {
    const length = source.readUInt32BE(offset)
    const headerLength = source.readUInt16BE(offset + 6)
    this.#frameCount += 1
    this.#type = source.readUInt8(offset + 4)
    this.#channelId = source.readUInt32BE(offset + 8)
    this.#declaration = this.#declarations[this.#type]
    this.#bodyLength = length - frameLengthMin - headerLength
    this.#checkLengths(length, headerLength)
    this.#handler.admit(this.#declaration, this.#channelId)
    if (this.#declaration === undefined) this.#skip(length - frameLengthMin)
    else if (headerLength > 0) this.#enter('header', headerLength)
    else {
      this.#enter('header', 0)
      this.#onHeader(source, offset)
    }
  }

  #checkLengths(length: number, headerLength: number): void {
    if (length > frameLengthMax) {
      this.#fail(`its length ${String(length)} is above the ${String(frameLengthMax)} allowed`)
    }
    if (headerLength > headerLengthMax) {
      this.#fail(
        `its header of ${String(headerLength)} bytes is above the ${String(headerLengthMax)} allowed`,
      )
    }
    if (this.#bodyLength < 0) {
      this.#fail(
        `its length ${String(length)} is less than its header of ${String(headerLength)} bytes takes`,
      )
    }
    this.#checkBodyLength()
  }

  #checkBodyLength(): void {
    const bodyLength = this.#bodyLength
    switch (this.#declaration?.body) {
      case 'none':
        if (bodyLength > 0)
          this.#fail(`it has a body of ${String(bodyLength)} bytes, but may have none`)
        break
      case 'control':
        this.#checkBodyMax(controlBodyLengthMax)
        break
      case 'data':
        if (bodyLength === 0) this.#fail('its body is empty, but holds at least one entry')
        this.#checkBodyMax(dataBodyLengthMax)
        break
      case undefined:
        break
    }
  }

  #checkBodyMax(lengthMax: number): void {
    if (this.#bodyLength <= lengthMax) return
    this.#fail(
      `its body of ${String(this.#bodyLength)} bytes is above the ${String(lengthMax)} allowed`,
    )
  }

  #onHeader(source: Buffer, offset: number): void {
    const declaration = this.#declaration
    assert(declaration !== undefined, 'only known types have their header read')
    this.#reader.reset(source, { start: offset, end: offset + this.#needed }, declaration.name)
    const fields = declaration.read(this.#reader)
    const message = { name: declaration.name, fields } as unknown as DataMessage | ControlMessage
    this.#message = message
    if (declaration.body === 'data') this.#startDataBody(message as DataMessage)
    else if (this.#bodyLength === 0) this.#deliver()
    else {
      this.#body = new Uint8Array(this.#bodyLength)
      this.#enter('body', this.#bodyLength)
    }
  }

  #startDataBody(message: DataMessage): void {
    const buffer = this.#handler.bodyBuffer(message, this.#channelId, this.#bodyLength)
    // The handler may have closed us from within.
    if (this.#stage === 'closed') {
      buffer?.recycle()
      return
    }
    if (buffer === undefined) {
      this.#skip(this.#bodyLength)
      return
    }
    if (buffer.bytes.length < this.#bodyLength) {
      const size = buffer.bytes.length
      buffer.recycle()
      this.#fail(
        `its body of ${String(this.#bodyLength)} bytes is larger than the buffer of ${String(size)}`,
      )
    }
    this.#buffer = buffer
    this.#body = buffer.bytes
    this.#enter('body', this.#bodyLength)
  }

  #skip(length: number): void {
    this.#skippedCount += 1
    if (length === 0) this.#enter('prefix', framePrefixLength)
    else this.#enter('skip', length)
  }

  #deliver(): void {
    const message = this.#message
    const buffer = this.#buffer
    const body = this.#bodyLength === 0 ? emptyBody : this.#body
    this.#message = undefined
    this.#buffer = undefined
    this.#body = emptyBody
    this.#enter('prefix', framePrefixLength)
    assert(message !== undefined, 'a delivered frame has a message')
    if (buffer === undefined) {
      this.#handler.onMessage(message as ControlMessage, this.#channelId, body)
    } else {
      this.#handler.onData(message as DataMessage, this.#channelId, buffer, this.#bodyLength)
    }
  }

  #fail(what: string): never {
    const name = this.#declaration?.name ?? `unknown type ${String(this.#type)}`
    throw new ShuffleError(
      'PROTOCOL',
      `frame ${String(this.#frameCount)} of the connection (${name}, channel ${String(this.#channelId)}): ${what}`,
      { fields: { message: name, channelId: this.#channelId, frame: this.#frameCount } },
    )
  }
}
