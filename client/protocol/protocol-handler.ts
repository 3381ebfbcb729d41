// What the owner of a ProtocolConnection hears of it.

import type { PooledBuffer } from '../common/buffer.ts'
import type { ShuffleError } from '../common/errors.ts'
import type { Session } from './handshake.ts'
import type { ControlMessage, DataMessage } from './messages.ts'

/** Messages that the connection deals with itself. */
export type ConnectionMessageName =
  'Hello' | 'HelloAck' | 'Authenticate' | 'Authenticated' | 'Ping' | 'Pong'

/** What reaches the handler: everything else, an Error on channel 0 excepted (it is `onClosed`). */
export type ChannelMessage = Exclude<ControlMessage, { readonly name: ConnectionMessageName }>

/**
 * None of these is ever called from within `send`, `close`, `destroy` or `start`. What they throw
 * ends the connection, with Error on channel 0 if it is a ShuffleError.
 */
export interface ProtocolHandler {
  /** The handshake is done: channels may be opened (client), are accepted from now on (worker). */
  onReady(session: Session): void
  /**
   * Memory for the body of a WriteData or ReadData. Undefined (an unknown or dropped channel): the
   * frame is skipped and not reported further. A body larger than the buffer is the peer's PROTOCOL
   * error.
   */
  bodyBuffer(message: DataMessage, channelId: number, bodyLength: number): PooledBuffer | undefined
  /** A whole data message; the buffer is the handler's now, its first `bodyLength` bytes are filled. */
  onData(message: DataMessage, channelId: number, buffer: PooledBuffer, bodyLength: number): void
  /** `body` is fresh memory, empty where there is none. Unknown channels are the handler's to ignore. */
  onMessage(message: ChannelMessage, channelId: number, body: Uint8Array): void
  /** `isWritable` is true again. */
  onWritable(): void
  /**
   * The last call, exactly once. Undefined after an orderly end by either side. Every pending
   * `onWritten` was called before, a partly received buffer is recycled.
   */
  onClosed(error: ShuffleError | undefined): void
}
