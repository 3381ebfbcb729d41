// What a process holds of a virtual link: a Connection for the data plane, a Duplex for HTTP. Both
// are silent once their process is dead.

import { Duplex } from 'node:stream'
import { assert } from '../../client/common/assert.ts'
import type { Address, Connection, ConnectionHandler } from '../../client/common/network.ts'
import type { VirtualClock } from './virtual-clock.ts'
import type { Life } from './virtual-life.ts'
import { linkError } from './virtual-link.ts'
import type { VirtualSide } from './virtual-link.ts'

export interface EndpointOptions {
  readonly clock: VirtualClock
  readonly life: Life
  readonly side: VirtualSide
  readonly remote: Address
}

/** As the real one: how long an ended connection waits for the peer's end. */
const lingerMs = 2_000

export class VirtualConnection implements Connection {
  readonly remote: Address
  readonly #clock: VirtualClock
  readonly #life: Life
  readonly #side: VirtualSide
  #handler: ConnectionHandler | undefined
  #bufferedBytes = 0
  #error: Error | undefined
  #isEnding = false
  #isOutgoingDone = false
  #isClosing = false
  #isClosed = false

  constructor(options: EndpointOptions) {
    this.remote = options.remote
    this.#clock = options.clock
    this.#life = options.life
    this.#side = options.side
    this.#side.onReset((error) => {
      this.#close(error)
    })
    this.#life.atEnd(() => {
      this.#side.close()
    })
  }

  start(handler: ConnectionHandler): void {
    assert(this.#handler === undefined, 'a connection is started once')
    this.#handler = handler
    if (!this.#isClosed) {
      this.#read()
      return
    }
    this.#later(() => {
      handler.onClose(this.#error)
    })
  }

  write(parts: readonly Uint8Array[], onWritten?: (error?: Error) => void): void {
    if (this.#isEnding || this.#isClosing) {
      this.#later(() => onWritten?.(this.#error ?? linkError('EPIPE', 'the connection is closed')))
      return
    }
    let byteCount = 0
    for (const part of parts) byteCount += part.byteLength
    this.#bufferedBytes += byteCount
    this.#side.outgoing.write(parts, (error) => {
      this.#bufferedBytes -= byteCount
      if (!this.#life.isAlive) return
      if (error !== undefined) onWritten?.(this.#error ?? error)
      else {
        onWritten?.()
        if (this.#bufferedBytes === 0 && !this.#isEnding && !this.#isClosing) {
          this.#handler?.onDrain()
        }
      }
    })
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  end(): void {
    if (this.#isEnding || this.#isClosing) return
    this.#isEnding = true
    if (this.#handler === undefined) this.#read()
    this.#side.outgoing.end(() => {
      this.#isOutgoingDone = true
      this.#closeWhenBothEnded()
      this.#later(() => {
        this.#close(undefined)
      }, lingerMs)
    })
  }

  destroy(error?: Error): void {
    this.#close(error)
  }

  #read(): void {
    this.#side.incoming.setReader({
      onBytes: (bytes) => {
        this.#onBytes(bytes)
        return true
      },
      onEnd: () => {
        this.end()
        this.#closeWhenBothEnded()
      },
    })
  }

  #onBytes(bytes: Uint8Array): void {
    if (this.#isEnding || this.#isClosing || !this.#life.isAlive) return
    try {
      this.#handler?.onBytes(bytes)
    } catch (error) {
      this.destroy(error as Error)
    }
    // The memory is the connection's own: who kept the view must not find its bytes there.
    bytes.fill(0xdb)
  }

  #closeWhenBothEnded(): void {
    if (this.#isOutgoingDone && this.#side.incoming.isEndTold) this.#close(undefined)
  }

  #close(error: Error | undefined): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#error = error
    this.#clock.schedule(0, () => {
      this.#side.close()
      this.#isClosed = true
      if (this.#life.isAlive) this.#handler?.onClose(this.#error)
    })
  }

  #later(callback: () => void, delayMs = 0): void {
    this.#clock.schedule(delayMs, () => {
      if (this.#life.isAlive) callback()
    })
  }
}

/** The same end as a Node stream, with the few methods of a socket that HTTP libraries call. */
export class VirtualStream extends Duplex {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly #life: Life
  readonly #side: VirtualSide
  #hasReader = false

  constructor(options: EndpointOptions & { readonly allowHalfOpen: boolean }) {
    super({ allowHalfOpen: options.allowHalfOpen })
    this.remoteAddress = options.remote.host
    this.remotePort = options.remote.port
    this.#life = options.life
    this.#side = options.side
    // Errors arrive through the library; without a listener Node would end the test's process.
    this.on('error', () => undefined)
    this.#side.onReset((error) => {
      if (this.#life.isAlive) this.destroy(error)
    })
    this.#life.atEnd(() => {
      this.#side.close()
    })
  }

  override _read(): void {
    if (this.#hasReader) {
      this.#side.incoming.resume()
      return
    }
    this.#hasReader = true
    this.#side.incoming.setReader({
      onBytes: (bytes) => this.#life.isAlive && this.push(bytes),
      onEnd: () => {
        if (this.#life.isAlive) this.push(null)
      },
    })
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#side.outgoing.write([chunk], (error) => {
      if (this.#life.isAlive) done(error)
    })
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#side.outgoing.end(() => {
      if (this.#life.isAlive) done()
    })
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#side.close()
    done(error)
  }

  setTimeout(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}
