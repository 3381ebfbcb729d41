// Two ends of a byte stream in memory, for tests that say themselves when what arrives in which
// pieces, and when the system takes what was written.

import type { Address, Connection, ConnectionHandler } from '../../../../client/common/network.ts'
import type { VirtualClock } from '../../../support/virtual-clock.ts'

/** Cuts what arrives into pieces. */
export type Split = (bytes: Buffer) => readonly Buffer[]

export const whole: Split = (bytes) => [bytes]
export const byteByByte: Split = (bytes) => Array.from(bytes, (byte) => Buffer.from([byte]))

export class MemoryConnection implements Connection {
  readonly remote: Address = { host: 'peer.test', port: 9710 }
  readonly #clock: VirtualClock
  #handler: ConnectionHandler | undefined
  #state: 'open' | 'ended' | 'closed' = 'open'
  #pending: { bytes: Buffer; onWritten: ((error?: Error) => void) | undefined }[] = []
  peer: MemoryConnection | undefined
  split: Split = whole
  /** While false, what is written stays with the system. */
  isTaking = true
  /** Bytes of each gather list written, in order. */
  readonly writes: number[] = []
  received: Buffer = Buffer.alloc(0)

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  get bufferedBytes(): number {
    return this.#pending.reduce((sum, { bytes }) => sum + bytes.length, 0)
  }

  start(handler: ConnectionHandler): void {
    this.#handler = handler
  }

  write(parts: readonly Uint8Array[], onWritten?: (error?: Error) => void): void {
    const bytes = Buffer.concat(parts)
    this.writes.push(bytes.length)
    this.#pending.push({ bytes, onWritten })
    this.#clock.schedule(0, () => {
      this.take()
    })
  }

  /** The system takes what was written. */
  take(): void {
    if (!this.isTaking || this.#state === 'closed') return
    const pending = this.#pending
    this.#pending = []
    for (const { bytes, onWritten } of pending) {
      this.peer?.arrive(bytes)
      onWritten?.()
    }
    if (this.#state === 'ended') this.#close(undefined)
  }

  /** Bytes reach this end. */
  arrive(bytes: Buffer): void {
    this.received = Buffer.concat([this.received, bytes])
    for (const piece of this.split(bytes)) {
      if (this.#state !== 'closed') {
        const view = new Uint8Array(piece)
        this.#handler?.onBytes(view)
        view.fill(0xdb)
      }
    }
  }

  end(): void {
    if (this.#state !== 'open') return
    this.#state = 'ended'
    this.#clock.schedule(0, () => {
      this.take()
    })
  }

  destroy(error?: Error): void {
    this.#close(error)
  }

  #close(error: Error | undefined): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    const pending = this.#pending
    this.#pending = []
    this.#clock.schedule(0, () => {
      for (const { onWritten } of pending) onWritten?.(error ?? new Error('closed'))
      this.#handler?.onClose(error)
      this.peer?.destroy()
    })
  }
}

export function memoryPair(clock: VirtualClock): [MemoryConnection, MemoryConnection] {
  const a = new MemoryConnection(clock)
  const b = new MemoryConnection(clock)
  a.peer = b
  b.peer = a
  return [a, b]
}
