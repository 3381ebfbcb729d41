// One connection of the data plane, either role: handshake, frames, signs of life, gathered writes,
// orderly ends. Owned by the client's connection pool or by the worker's connection handler, which
// see whole messages only.

import type { PooledBuffer } from '../common/buffer.ts'
import type { Clock } from '../common/clock.ts'
import type { ShuffleError } from '../common/errors.ts'
import type { Connection } from '../common/network.ts'
import type { FieldValues, MessageDeclaration, Fields } from './define-message.ts'
import type { Handshake, Session } from './handshake.ts'
import type { ControlMessage, DataMessage } from './messages.ts'

/** Messages that the connection deals with itself. */
export type ConnectionMessageName =
  'Hello' | 'HelloAck' | 'Authenticate' | 'Authenticated' | 'Ping' | 'Pong'

/** What reaches the handler: everything else, an Error on channel 0 excepted (it is `onClosed`). */
export type ChannelMessage = Exclude<ControlMessage, { readonly name: ConnectionMessageName }>

/** Never called from within a call into the connection, but for those made by its own callbacks. */
export interface ProtocolHandler {
  /** The handshake is done: channels may be opened (client), are accepted from now on (worker). */
  onReady(session: Session): void
  /**
   * Memory for the body of a WriteData or ReadData, at least `bodyLength` long. Undefined (an
   * unknown or dropped channel): the frame is skipped and not reported further.
   */
  bodyBuffer(message: DataMessage, channelId: number, bodyLength: number): PooledBuffer | undefined
  /** A whole data message; the buffer is the handler's now, its first `bodyLength` bytes are filled. */
  onData(message: DataMessage, channelId: number, buffer: PooledBuffer, bodyLength: number): void
  /** `body` is fresh memory, empty where there is none. Unknown channels are the handler's to ignore. */
  onMessage(message: ChannelMessage, channelId: number, body: Uint8Array): void
  /** `isWritable` is true again. */
  onWritable(): void
  /**
   * The last call, exactly once, never from within `close`. Undefined after an orderly end by
   * either side. Every pending `onWritten` was called before.
   */
  onClosed(error: ShuffleError | undefined): void
}

export interface ProtocolConnectionOptions {
  readonly connection: Connection
  readonly clock: Clock
  readonly handshake: Handshake
  readonly handler: ProtocolHandler
  /** Default 10 s. */
  readonly pingIntervalMs?: number
  /** Intervals without a byte from the other side, after which it is given up. Default 3. */
  readonly idlePingsMax?: number
  /** Until the handshake must be done. Default 10 s. */
  readonly handshakeTimeoutMs?: number
  /** Default 4 MiB. */
  readonly queuedBytesBound?: number
}

export class ProtocolConnection {
  constructor(options: ProtocolConnectionOptions) {
    void options
  }

  /** Begins to read; a client sends Hello. Once. */
  start(): void {
    throw new Error('to be written')
  }

  /** Undefined until the handshake is done. */
  get session(): Session | undefined {
    throw new Error('to be written')
  }

  /** Bytes sent and not yet taken by the system. */
  get queuedBytes(): number {
    throw new Error('to be written')
  }

  /** Whether `queuedBytes` is below its bound; a sender of data waits for `onWritable` otherwise. */
  get isWritable(): boolean {
    throw new Error('to be written')
  }

  /** A number for a new channel (client): they ascend and are never used twice. */
  nextChannelId(): number {
    throw new Error('to be written')
  }

  /**
   * Queues one frame; frames of one turn go out as one gather list. The body's memory must stay
   * untouched until `onWritten`, which is called exactly once, never synchronously: with no argument
   * when the system has taken the frame, with an error when the connection ended before. After the
   * end a call only reports that error. Before `onReady` it is an assertion failure.
   */
  send<F extends Fields>(
    declaration: MessageDeclaration<string, F>,
    channelId: number,
    values: FieldValues<F>,
    body?: readonly Uint8Array[],
    onWritten?: (error?: Error) => void,
  ): void {
    void [declaration, channelId, values, body, onWritten]
    throw new Error('to be written')
  }

  /**
   * Sends what is queued, then ends. With an error the other side is told (Error on channel 0) and
   * `onClosed` gets it. Idempotent; nothing but `onWritten` and `onClosed` is called afterwards.
   */
  close(error?: ShuffleError): void {
    void error
    throw new Error('to be written')
  }

  /** Ends at once, telling nobody. Idempotent. */
  destroy(error?: Error): void {
    void error
    throw new Error('to be written')
  }
}
