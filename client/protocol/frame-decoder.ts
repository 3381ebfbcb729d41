// Turns the byte stream of a connection into messages, whatever the pieces it arrives in. Owned by
// one ProtocolConnection. A frame that breaks a limit or a layout throws ShuffleError PROTOCOL, which
// ends the connection; an unknown type is skipped by its length.

import type { PooledBuffer } from '../common/buffer.ts'
import type { ControlMessage, DataMessage } from './messages.ts'

export interface FrameHandler {
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

export class FrameDecoder {
  constructor(handler: FrameHandler) {
    void handler
  }

  /** Bytes as they arrived; nothing of them is kept by reference. */
  push(bytes: Uint8Array): void {
    void bytes
    throw new Error('to be written')
  }

  /** Recycles a body that is partly received. After it nothing is called. Idempotent. */
  close(): void {
    throw new Error('to be written')
  }
}
