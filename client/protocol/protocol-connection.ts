// One connection of the data plane, either role: handshake, frames, signs of life, gathered writes,
// orderly ends. Owned by the client's connection pool or by the worker's connection handler, which
// see whole messages of established connections only.
//
//   network.Connection ──bytes──> FrameDecoder ──> FrameRules ──> handshake, Ping, or the handler
//                      <──gather lists── SendQueue <──frames── send()

import type { Clock, Timer } from '../common/clock.ts'
import { assert } from '../common/assert.ts'
import { ShuffleError } from '../common/errors.ts'
import type { Connection } from '../common/network.ts'
import type { Fields, FieldValues, MessageDeclaration } from './define-message.ts'
import { FrameDecoder } from './frame-decoder.ts'
import { FrameRules } from './frame-rules.ts'
import {
  acceptHello,
  acceptHelloAck,
  authenticateFields,
  checkAuthenticate,
  type Handshake,
  helloAckFields,
  helloFields,
  type Session,
} from './handshake.ts'
import { Heartbeat } from './heartbeat.ts'
import { queuedBytesBound } from './limits.ts'
import { type ControlMessage, messageList, type MessageFields, messages } from './messages.ts'
import type { ChannelMessage, ConnectionMessageName, ProtocolHandler } from './protocol-handler.ts'
import { type OnWritten, SendQueue } from './send-queue.ts'
import { errorOfWire, wireErrorFields } from './wire-error.ts'

export type { ChannelMessage, ConnectionMessageName, ProtocolHandler }

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
  /** How long what is queued may take to go out after `close`. Default 5 s. */
  readonly lingerMs?: number
  /** Default 4 MiB. */
  readonly queuedBytesBound?: number
  /** For tests of other versions: by default all messages of this one. */
  readonly declarations?: readonly MessageDeclaration[]
}

type State = 'new' | 'handshake' | 'ready' | 'ending' | 'closed'

export class ProtocolConnection {
  readonly #options: ProtocolConnectionOptions
  readonly #handler: ProtocolHandler
  readonly #connection: Connection
  readonly #rules: FrameRules
  readonly #decoder: FrameDecoder
  readonly #queue: SendQueue
  readonly #heartbeat: Heartbeat
  readonly #queuedBytesBound: number
  #state: State = 'new'
  /** Runs until the handshake is done, and again while ending. */
  #deadline: Timer | undefined
  #session: Session | undefined
  #isWaitingForRoom = false
  #pingSequence = 0
  #endError: ShuffleError | undefined

  constructor(options: ProtocolConnectionOptions) {
    const { clock, connection } = options
    this.#options = options
    this.#handler = options.handler
    this.#connection = connection
    this.#rules = new FrameRules(options.handshake.role)
    this.#queuedBytesBound = options.queuedBytesBound ?? queuedBytesBound
    this.#decoder = new FrameDecoder(
      {
        admit: (declaration, channelId) => {
          this.#rules.admit(declaration, channelId)
        },
        bodyBuffer: (message, channelId, bodyLength) =>
          this.#handler.bodyBuffer(message, channelId, bodyLength),
        onData: (message, channelId, buffer, bodyLength) => {
          this.#handler.onData(message, channelId, buffer, bodyLength)
        },
        onMessage: (message, channelId, body) => {
          this.#onMessage(message, channelId, body)
        },
      },
      options.declarations ?? messageList,
    )
    this.#queue = new SendQueue({
      connection,
      clock,
      onTaken: () => {
        this.#onTaken()
      },
      onFailure: (error) => {
        this.#end(error)
      },
    })
    this.#heartbeat = new Heartbeat({
      clock,
      intervalMs: this.#pingIntervalMs,
      idlePingsMax: options.idlePingsMax ?? 3,
      frameUnderWay: () => this.#decoder.frameUnderWay,
      sentCount: () => this.#queue.sentCount,
      onPing: () => {
        this.#pingSequence = (this.#pingSequence + 1) >>> 0
        this.#append(messages.Ping, 0, { sequence: this.#pingSequence })
      },
      onIdle: (silentMs) => {
        this.destroy(this.#lost(`nothing was heard from it for ${String(Math.round(silentMs))} ms`))
      },
      onFrameStuck: (stuckMs) => {
        this.destroy(this.#lost(`a frame of it did not end for ${String(Math.round(stuckMs))} ms`))
      },
    })
  }

  /** Begins to read; a client sends Hello. Once. */
  start(): void {
    assert(this.#state === 'new', 'a connection starts once')
    this.#state = 'handshake'
    this.#startReading()
    const { clock, handshake, handshakeTimeoutMs = 10_000 } = this.#options
    this.#deadline = clock.setTimer(handshakeTimeoutMs, () => {
      this.destroy(this.#lost(`the handshake took more than ${String(handshakeTimeoutMs)} ms`))
    })
    if (handshake.role === 'client') {
      this.#append(messages.Hello, 0, helloFields(handshake, this.#pingIntervalMs))
    }
  }

  /** Undefined until the handshake is done. */
  get session(): Session | undefined {
    return this.#session
  }

  /** Bytes sent and not yet taken by the system. */
  get queuedBytes(): number {
    return this.#queue.queuedBytes
  }

  /** How long the system has taken nothing of what is queued; 0 when nothing is. */
  get untakenMs(): number {
    return this.#queue.untakenMs
  }

  /** Whether `queuedBytes` is below its bound; a sender of data waits for `onWritable` otherwise. */
  get isWritable(): boolean {
    return this.#queue.queuedBytes < this.#queuedBytesBound
  }

  /** Frames of unknown types, and data frames for which the handler gave no buffer. */
  get skippedCount(): number {
    return this.#decoder.skippedCount
  }

  /** A number for a new channel (client): they ascend and are never used twice. */
  nextChannelId(): number {
    return this.#rules.nextChannelId()
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
    onWritten?: OnWritten,
  ): void {
    if (this.#state === 'ending' || this.#state === 'closed') {
      this.#refuse(onWritten)
      return
    }
    assert(this.#state === 'ready', `${declaration.name} is sent after the handshake`)
    this.#append(declaration, channelId, values, body, onWritten)
  }

  /**
   * Sends what is queued, then ends. With an error the other side is told (Error on channel 0) and
   * `onClosed` gets it. Idempotent; nothing but `onWritten` and `onClosed` is called afterwards.
   */
  close(error?: ShuffleError): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    if (this.#state === 'new') this.#startReading()
    else if (error !== undefined) this.#append(messages.Error, 0, wireErrorFields(error))
    this.#stop(error)
    this.#finishSending()
  }

  /** Ends at once, telling nobody; `onClosed` gets the error. Idempotent. */
  destroy(error?: ShuffleError): void {
    if (this.#state === 'closed') return
    if (this.#state === 'new') this.#startReading()
    if (this.#state !== 'ending') this.#stop(error)
    this.#connection.destroy()
  }

  get #pingIntervalMs(): number {
    return this.#options.pingIntervalMs ?? 10_000
  }

  #startReading(): void {
    this.#connection.start({
      onBytes: (bytes) => {
        this.#onBytes(bytes)
      },
      onDrain: () => undefined,
      onClose: (error) => {
        this.#onClose(error)
      },
    })
  }

  #append<F extends Fields>(
    declaration: MessageDeclaration<string, F>,
    channelId: number,
    values: FieldValues<F>,
    body?: readonly Uint8Array[],
    onWritten?: OnWritten,
  ): void {
    this.#rules.assertOutgoing(declaration, channelId)
    this.#queue.append(declaration, channelId, values, body, onWritten)
    if (!this.isWritable) this.#isWaitingForRoom = true
  }

  #refuse(onWritten: OnWritten | undefined): void {
    if (onWritten === undefined) return
    const error = this.#endError ?? this.#lost('it has been closed')
    this.#options.clock.setImmediate(() => {
      onWritten(error)
    })
  }

  #onBytes(bytes: Uint8Array): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    this.#heartbeat.heard()
    try {
      this.#decoder.push(bytes)
    } catch (error) {
      this.#end(error)
      return
    }
    if (this.#queue.isOverrun) {
      this.#end(
        new ShuffleError('PROTOCOL', 'the other side does not read the answers it asks for'),
      )
    }
  }

  #onMessage(message: ControlMessage, channelId: number, body: Uint8Array): void {
    switch (message.name) {
      case 'Ping':
        this.#append(messages.Pong, 0, message.fields)
        break
      case 'Pong':
        break
      case 'Hello':
        this.#onHello(message.fields)
        break
      case 'HelloAck':
        this.#onHelloAck(message.fields)
        break
      case 'Authenticate':
        this.#onAuthenticate(message.fields)
        break
      case 'Authenticated':
        this.#onReady()
        break
      case 'Error':
        if (channelId === 0) this.#onPeerError(message.fields)
        else this.#handler.onMessage(message, channelId, body)
        break
      default:
        this.#handler.onMessage(message, channelId, body)
    }
  }

  #onHello(fields: MessageFields<'Hello'>): void {
    const { handshake } = this.#options
    assert(handshake.role === 'worker', 'only a worker is greeted by Hello')
    this.#session = acceptHello(handshake, fields)
    const ack = helloAckFields(handshake, this.#pingIntervalMs)
    this.#append(messages.HelloAck, 0, ack)
    this.#rules.enter('authentication')
    if (ack.challenge.length === 0) this.#onReady()
  }

  #onHelloAck(fields: MessageFields<'HelloAck'>): void {
    const { handshake } = this.#options
    assert(handshake.role === 'client', 'only a client is answered by HelloAck')
    this.#session = acceptHelloAck(handshake, fields)
    const answer = authenticateFields(handshake, fields)
    this.#rules.enter('authentication')
    if (answer === undefined) this.#onReady()
    else this.#append(messages.Authenticate, 0, answer)
  }

  #onAuthenticate(fields: MessageFields<'Authenticate'>): void {
    const { handshake } = this.#options
    assert(handshake.role === 'worker', 'only a worker is answered by Authenticate')
    checkAuthenticate(handshake, fields)
    this.#append(messages.Authenticated, 0, {})
    this.#onReady()
  }

  #onReady(): void {
    const session = this.#session
    assert(session !== undefined, 'who is ready has a session')
    this.#deadline?.cancel()
    this.#rules.enter('ready')
    this.#state = 'ready'
    this.#heartbeat.start(session.peerHeartbeatIntervalMs)
    this.#handler.onReady(session)
  }

  #onPeerError(fields: MessageFields<'Error'>): void {
    this.#stop(errorOfWire(fields))
    this.#finishSending()
  }

  #onTaken(): void {
    if (!this.#isWaitingForRoom || !this.isWritable || this.#state !== 'ready') return
    this.#isWaitingForRoom = false
    try {
      this.#handler.onWritable()
    } catch (error) {
      this.#end(error)
    }
  }

  /** The top of this connection for whatever its frames or its handler threw. */
  #end(error: unknown): void {
    if (error instanceof ShuffleError) this.close(error)
    else this.destroy(this.#lost('this side failed', error))
  }

  /** No more frames are received, and none sent but those queued. */
  #stop(error: ShuffleError | undefined): void {
    this.#state = 'ending'
    this.#endError = error
    this.#deadline?.cancel()
    this.#heartbeat.stop()
    this.#decoder.close()
  }

  #finishSending(): void {
    this.#queue.flush()
    this.#connection.end()
    this.#deadline = this.#options.clock.setTimer(this.#options.lingerMs ?? 5_000, () => {
      this.#connection.destroy()
    })
  }

  #onClose(error: Error | undefined): void {
    if (this.#state === 'closed') return
    if (this.#state !== 'ending') this.#stop(this.#reasonOf(error))
    this.#deadline?.cancel()
    this.#state = 'closed'
    this.#queue.fail(this.#endError ?? this.#lost('it has been closed'))
    this.#handler.onClosed(this.#endError)
  }

  #reasonOf(error: Error | undefined): ShuffleError | undefined {
    if (error !== undefined) return this.#lost(error.message, error)
    if (this.#decoder.isInsideFrame) return this.#lost('it ended inside a frame')
    if (this.#state === 'handshake') return this.#lost('it ended during the handshake')
    return undefined
  }

  #lost(what: string, cause?: unknown): ShuffleError {
    const { host, port } = this.#connection.remote
    const isClient = this.#options.handshake.role === 'client'
    return new ShuffleError(
      isClient ? 'WORKER_UNREACHABLE' : 'WRITE_INTERRUPTED',
      `the connection with ${host}:${String(port)} is lost: ${what}`,
      { cause, fields: { host, port, workerId: this.#session?.workerId } },
    )
  }
}
