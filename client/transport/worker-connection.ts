// One connection to one worker and the channels on it, reads and writes alike. It hands each message
// to the channel it names and drops what is meant for a channel that is gone. Owned by the
// connection pool, which makes and closes it; channels belong to their partitions and gates.

import { assert } from '../common/assert.ts'
import type { PooledBuffer } from '../common/buffer.ts'
import type { Clock, Timer } from '../common/clock.ts'
import { ShuffleError } from '../common/errors.ts'
import type { WorkerId } from '../common/ids.ts'
import type { Connection } from '../common/network.ts'
import type { Fields, FieldValues, MessageDeclaration } from '../protocol/define-message.ts'
import type { ClientHandshake, Session } from '../protocol/handshake.ts'
import { messages, type DataMessage } from '../protocol/messages.ts'
import {
  ProtocolConnection,
  type ChannelMessage,
  type ProtocolHandler,
} from '../protocol/protocol-connection.ts'

/** What a channel's owner hears; nothing after `onClosed`, nor after {@link Channel.close}. */
export interface ChannelHandler {
  /** Memory for the body of a data frame; undefined: skip it. */
  bodyBuffer(bodyLength: number): PooledBuffer | undefined
  /** A data frame; the buffer is the handler's now. */
  onData(buffer: PooledBuffer, bodyLength: number): void
  onMessage(message: ChannelMessage, body: Uint8Array): void
  /** The connection ended and with it the channel. */
  onClosed(error: ShuffleError): void
}

/** One logical channel, alive until `close` or `onClosed`. */
export interface Channel {
  readonly session: Session
  /** While this is false a data frame waits for its turn, see `whenWritable`. */
  readonly isWritable: boolean
  /**
   * Calls back once, when the connection has room and everyone who asked before has had his turn. What
   * is sent must be sent within the call: only so is it known whether the next one still has room. It
   * may come when the channel is gone, and does not come when the connection is.
   */
  whenWritable(onTurn: () => void): void
  send<F extends Fields>(
    declaration: MessageDeclaration<string, F>,
    values: FieldValues<F>,
    body?: readonly Uint8Array[],
    onWritten?: (error?: Error) => void,
  ): void
  /**
   * Forgets the channel: its number is dead, late frames are dropped. With `tell` the worker hears
   * CloseChannel first; without, its last frame has been sent or received. Idempotent.
   */
  close(options: { readonly tell: boolean }): void
}

export interface WorkerConnectionOptions {
  readonly connection: Connection
  readonly clock: Clock
  readonly handshake: ClientHandshake
  readonly workerId: WorkerId
  readonly handshakeTimeoutMs: number
  readonly pingIntervalMs: number
  readonly idlePingsMax: number
  /** Without a channel it closes after this. */
  readonly idleMs: number
  readonly onReady: () => void
  /** Takes no new channels any more: it is ending, or the worker wants another one dialled. */
  readonly onRetired: () => void
  readonly onClosed: (error: ShuffleError) => void
}

export class WorkerConnection {
  readonly workerId: WorkerId
  readonly #options: WorkerConnectionOptions
  readonly #protocol: ProtocolConnection
  readonly #channels = new Map<number, OpenChannel>()
  /** Waking all for one frame's room would cost more than the frame where there are many. */
  readonly #waiting: (() => void)[] = []
  #state: 'handshake' | 'open' | 'retired' | 'closed' = 'handshake'
  #idleTimer: Timer | undefined

  constructor(options: WorkerConnectionOptions) {
    this.#options = options
    this.workerId = options.workerId
    this.#protocol = new ProtocolConnection({
      connection: options.connection,
      clock: options.clock,
      handshake: options.handshake,
      handler: this.#handler(),
      handshakeTimeoutMs: options.handshakeTimeoutMs,
      pingIntervalMs: options.pingIntervalMs,
      idlePingsMax: options.idlePingsMax,
    })
  }

  start(): void {
    this.#protocol.start()
  }

  get channelCount(): number {
    return this.#channels.size
  }

  /** Throws WORKER_UNREACHABLE when the connection has ended meanwhile: connect again. */
  openChannel(handler: ChannelHandler): Channel {
    const session = this.#protocol.session
    if (this.#state !== 'open' || session === undefined) {
      throw new ShuffleError('WORKER_UNREACHABLE', 'the connection to the worker has ended', {
        fields: { workerId: this.workerId },
      })
    }
    this.#idleTimer?.cancel()
    this.#idleTimer = undefined
    const id = this.#protocol.nextChannelId()
    const channel = new OpenChannel({
      id,
      session,
      handler,
      protocol: this.#protocol,
      waiting: this.#waiting,
      onClose: () => {
        this.#channels.delete(id)
        this.#closeWhenUnused()
      },
    })
    this.#channels.set(id, channel)
    return channel
  }

  /** Ends it now; every channel hears `onClosed`. Idempotent. */
  close(error?: ShuffleError): void {
    if (this.#state === 'closed') return
    this.#protocol.close(error)
    this.#ended(error ?? endedError(this.workerId))
  }

  #handler(): ProtocolHandler {
    return {
      onReady: () => {
        this.#state = 'open'
        this.#options.onReady()
        this.#closeWhenUnused()
      },
      bodyBuffer: (message, channelId, bodyLength) =>
        message.name === 'ReadData'
          ? this.#channels.get(channelId)?.handler.bodyBuffer(bodyLength)
          : undefined,
      onData: (message, channelId, buffer, bodyLength) => {
        this.#onData(message, channelId, buffer, bodyLength)
      },
      onMessage: (message, channelId, body) => {
        if (message.name === 'GoAway') this.#retire()
        else this.#channels.get(channelId)?.handler.onMessage(message, body)
      },
      onWritable: () => {
        this.#giveTurns()
      },
      onClosed: (error) => {
        this.#ended(error ?? endedError(this.workerId))
      },
    }
  }

  #onData(message: DataMessage, channelId: number, buffer: PooledBuffer, length: number): void {
    const channel = this.#channels.get(channelId)
    // The channel may have been closed after it gave the buffer and before the frame was whole.
    if (channel === undefined || message.name !== 'ReadData') buffer.recycle()
    else channel.handler.onData(buffer, length)
  }

  /** In the order of asking, as far as there is room. */
  #giveTurns(): void {
    while (this.#protocol.isWritable) {
      const onTurn = this.#waiting.shift()
      if (onTurn === undefined) return
      onTurn()
    }
  }

  #retire(): void {
    if (this.#state !== 'open') return
    this.#state = 'retired'
    this.#options.onRetired()
    this.#closeWhenUnused()
  }

  #closeWhenUnused(): void {
    if (this.#channels.size > 0) return
    if (this.#state === 'retired') this.close()
    if (this.#state !== 'open') return
    this.#idleTimer ??= this.#options.clock.setTimer(this.#options.idleMs, () => {
      this.close()
    })
  }

  #ended(error: ShuffleError): void {
    if (this.#state === 'closed') return
    const wasOpen = this.#state === 'open'
    this.#state = 'closed'
    this.#idleTimer?.cancel()
    if (wasOpen) this.#options.onRetired()
    this.#options.onClosed(error)
    const channels = [...this.#channels.values()]
    this.#channels.clear()
    this.#waiting.length = 0
    for (const channel of channels) channel.lose(error)
  }
}

class OpenChannel implements Channel {
  readonly session: Session
  readonly handler: ChannelHandler
  readonly #id: number
  readonly #protocol: ProtocolConnection
  /** For a turn to send, of all channels of the connection. */
  readonly #waiting: (() => void)[]
  readonly #onClose: () => void
  #closed = false

  constructor(options: {
    readonly id: number
    readonly session: Session
    readonly handler: ChannelHandler
    readonly protocol: ProtocolConnection
    readonly waiting: (() => void)[]
    readonly onClose: () => void
  }) {
    this.#id = options.id
    this.session = options.session
    this.handler = options.handler
    this.#protocol = options.protocol
    this.#waiting = options.waiting
    this.#onClose = options.onClose
  }

  get isWritable(): boolean {
    return this.#waiting.length === 0 && this.#protocol.isWritable
  }

  whenWritable(onTurn: () => void): void {
    assert(!this.isWritable, 'who can send does not wait')
    this.#waiting.push(onTurn)
  }

  send<F extends Fields>(
    declaration: MessageDeclaration<string, F>,
    values: FieldValues<F>,
    body?: readonly Uint8Array[],
    onWritten?: (error?: Error) => void,
  ): void {
    assert(!this.#closed, 'nothing is sent on a closed channel')
    this.#protocol.send(declaration, this.#id, values, body, onWritten)
  }

  close(options: { readonly tell: boolean }): void {
    if (this.#closed) return
    this.#closed = true
    if (options.tell) this.#protocol.send(messages.CloseChannel, this.#id, { code: 0 })
    this.#onClose()
  }

  lose(error: ShuffleError): void {
    if (this.#closed) return
    this.#closed = true
    this.handler.onClosed(error)
  }
}

function endedError(workerId: WorkerId): ShuffleError {
  return new ShuffleError('WORKER_UNREACHABLE', 'the connection to the worker has ended', {
    fields: { workerId },
  })
}
