// A Connection over one of Node's TCP sockets. It owns the socket: nobody else reads from it, writes
// to it or listens to it. How bytes come in is real-socket.ts's affair.

import type { Socket } from 'node:net'
import type { Address, Connection, ConnectionHandler } from './network.ts'
import { assert } from './assert.ts'
import type { ByteSource } from './real-socket.ts'

/**
 * How long a connection that we ended waits for the peer's end. Closing with unread bytes sends a
 * reset, which can overtake what we sent last.
 */
const lingerDefaultMs = 2_000

interface PendingWrite {
  readonly byteCount: number
  readonly onWritten: ((error?: Error) => void) | undefined
}

export class RealConnection implements Connection {
  readonly remote: Address
  readonly #socket: Socket
  readonly #source: ByteSource
  readonly #lingerMs: number
  readonly #pending: PendingWrite[] = []
  #handler: ConnectionHandler | undefined
  #bufferedBytes = 0
  #error: Error | undefined
  #isEnding = false
  #isClosed = false
  #linger: NodeJS.Timeout | undefined

  constructor(source: ByteSource, lingerMs = lingerDefaultMs) {
    this.#lingerMs = lingerMs
    this.#source = source
    this.#socket = source.socket
    this.remote = {
      host: this.#socket.remoteAddress ?? '',
      port: this.#socket.remotePort ?? 0,
    }
    this.#socket.setNoDelay(true)
    this.#socket.on('error', (error) => {
      this.#error ??= error
    })
    this.#socket.once('close', () => {
      this.#onClose()
    })
  }

  start(handler: ConnectionHandler): void {
    assert(this.#handler === undefined, 'a connection is started once')
    this.#handler = handler
    if (this.#isClosed) {
      process.nextTick(() => {
        handler.onClose(this.#error)
      })
      return
    }
    this.#source.start((bytes) => {
      this.#onBytes(bytes)
    })
  }

  write(parts: readonly Uint8Array[], onWritten?: (error?: Error) => void): void {
    let byteCount = 0
    for (const part of parts) byteCount += part.byteLength
    if (this.#isClosed || this.#isEnding) {
      process.nextTick(() => onWritten?.(this.#error ?? closedError()))
      return
    }
    const pending = { byteCount, onWritten }
    this.#pending.push(pending)
    this.#bufferedBytes += byteCount
    const done = (error?: Error | null) => {
      this.#onWritten(pending, error)
    }
    // Corked parts reach the system as one writev, together with all that waits behind them.
    this.#socket.cork()
    const last = parts.length - 1
    for (const [index, part] of parts.entries()) {
      if (index === last) this.#socket.write(part, done)
      else this.#socket.write(part)
    }
    if (parts.length === 0) this.#socket.write(emptyPart, done)
    this.#socket.uncork()
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  end(): void {
    if (this.#isEnding || this.#isClosed) return
    this.#isEnding = true
    // Reading goes on, into nothing, so that the peer's end is seen.
    if (this.#handler === undefined) this.#source.start(() => undefined)
    this.#socket.end(() => {
      if (this.#isClosed) return
      this.#linger = setTimeout(() => {
        this.#socket.destroy()
      }, this.#lingerMs)
    })
  }

  destroy(error?: Error): void {
    this.#error ??= error
    this.#socket.destroy()
  }

  #onBytes(bytes: Uint8Array): void {
    if (this.#isDone) return
    try {
      this.#handler?.onBytes(bytes)
    } catch (error) {
      this.destroy(error as Error)
    }
  }

  #onWritten(pending: PendingWrite, error?: Error | null): void {
    // Node answers in order; what it does not answer, the close does.
    if (this.#pending[0] !== pending) return
    this.#pending.shift()
    this.#bufferedBytes -= pending.byteCount
    const isDestroyed = this.#socket.destroyed
    // Node reports a write that was cut off by destroy() as a success.
    const failure = error ?? (isDestroyed ? (this.#error ?? closedError()) : undefined)
    if (failure !== undefined) {
      pending.onWritten?.(failure)
      return
    }
    pending.onWritten?.()
    if (this.#bufferedBytes === 0 && !this.#isDone) this.#handler?.onDrain()
  }

  get #isDone(): boolean {
    return this.#isEnding || this.#socket.destroyed
  }

  #onClose(): void {
    this.#isClosed = true
    clearTimeout(this.#linger)
    for (const pending of this.#pending.splice(0)) {
      pending.onWritten?.(this.#error ?? closedError())
    }
    this.#bufferedBytes = 0
    this.#handler?.onClose(this.#error)
  }
}

const emptyPart = new Uint8Array(0)

function closedError(): Error {
  return Object.assign(new Error('the connection is closed'), { code: 'EPIPE' })
}
