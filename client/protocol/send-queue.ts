// Frames on their way out: those of one turn of the event loop go to the system as one gather list.
// Owned by one ProtocolConnection. One write per frame would cost three to four times as much.
//
//   append ──> batch being filled ──(1 MiB, or the end of the turn)──> batches ──> in flight (2)
//                                                                                   └──> onWritten

import type { Clock, Timer } from '../common/clock.ts'
import type { Connection } from '../common/network.ts'
import type { Fields, FieldValues, MessageDeclaration } from './define-message.ts'
import { FrameEncoder } from './frame-encoder.ts'
import { outgoingControlBytesMax } from './limits.ts'

export type OnWritten = (error?: Error) => void

/** One gather list: enough for the system to work in large pieces, small enough to be taken soon. */
const batchBytes = 1_048_576
/** One is being taken while the next waits behind it. */
const batchesInFlightMax = 2

interface Batch {
  readonly parts: readonly Uint8Array[]
  readonly bytes: number
  /** Of these, frames without a body: neither credit nor their sender bounds them. */
  readonly answerBytes: number
  readonly callbacks: readonly OnWritten[]
}

export interface SendQueueOptions {
  readonly connection: Connection
  readonly clock: Clock
  /** `queuedBytes` has fallen. */
  readonly onTaken: () => void
  /** An `onWritten` threw. */
  readonly onFailure: (error: unknown) => void
}

export class SendQueue {
  readonly #options: SendQueueOptions
  readonly #encoder = new FrameEncoder()
  readonly #inFlight = new Set<Batch>()
  #batches: Batch[] = []
  #filling: { bytes: number; answerBytes: number; callbacks: OnWritten[] } = emptyFilling()
  #queuedBytes = 0
  #untakenSinceMs = 0
  #queuedAnswerBytes = 0
  #turnEnd: Timer | undefined
  #sentCount = 0

  constructor(options: SendQueueOptions) {
    this.#options = options
  }

  /** Bytes appended and not yet taken by the system. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** How long the system has taken nothing of what is queued; 0 when nothing is. */
  get untakenMs(): number {
    return this.#queuedBytes === 0 ? 0 : this.#options.clock.nowMs() - this.#untakenSinceMs
  }

  /** Whether the other side doesn't read what it makes us say. */
  get isOverrun(): boolean {
    return this.#queuedAnswerBytes > outgoingControlBytesMax
  }

  /** Frames ever appended. */
  get sentCount(): number {
    return this.#sentCount
  }

  append<F extends Fields>(
    declaration: MessageDeclaration<string, F>,
    channelId: number,
    values: FieldValues<F>,
    body: readonly Uint8Array[] | undefined,
    onWritten: OnWritten | undefined,
  ): void {
    const bytes = this.#encoder.append(declaration, channelId, values, body)
    const filling = this.#filling
    filling.bytes += bytes
    if (this.#queuedBytes === 0) this.#untakenSinceMs = this.#options.clock.nowMs()
    this.#queuedBytes += bytes
    if (declaration.body === 'none') {
      filling.answerBytes += bytes
      this.#queuedAnswerBytes += bytes
    }
    if (onWritten !== undefined) filling.callbacks.push(onWritten)
    this.#sentCount += 1
    if (filling.bytes >= batchBytes) {
      this.#closeBatch()
      this.#write(batchesInFlightMax)
    } else this.#turnEnd ??= this.#options.clock.setImmediate(this.#onTurnEnd)
  }

  /** Hands everything to the connection, however much is in flight. */
  flush(): void {
    this.#closeBatch()
    this.#write(Infinity)
  }

  /** The connection has ended: every pending `onWritten` is called with `error`. */
  fail(error: Error): void {
    this.#turnEnd?.cancel()
    this.#turnEnd = undefined
    this.#closeBatch()
    const pending = [...this.#inFlight, ...this.#batches]
    this.#inFlight.clear()
    this.#batches = []
    for (const batch of pending) this.#settle(batch, error)
  }

  readonly #onTurnEnd = (): void => {
    this.#turnEnd = undefined
    this.#write(batchesInFlightMax)
  }

  #closeBatch(): void {
    const filling = this.#filling
    if (filling.bytes === 0) return
    this.#filling = emptyFilling()
    this.#batches.push({ parts: this.#encoder.take(), ...filling })
  }

  #write(inFlightMax: number): void {
    while (this.#inFlight.size < inFlightMax) {
      if (this.#batches.length === 0 && this.#turnEnd === undefined) this.#closeBatch()
      const batch = this.#batches.shift()
      if (batch === undefined) return
      this.#inFlight.add(batch)
      this.#options.connection.write(batch.parts, (error) => {
        this.#onWritten(batch, error)
      })
    }
  }

  #onWritten(batch: Batch, error: Error | undefined): void {
    if (!this.#inFlight.delete(batch)) return
    this.#untakenSinceMs = this.#options.clock.nowMs()
    this.#settle(batch, error)
    if (error !== undefined) return
    this.#write(batchesInFlightMax)
    this.#options.onTaken()
  }

  #settle(batch: Batch, error: Error | undefined): void {
    this.#queuedBytes -= batch.bytes
    this.#queuedAnswerBytes -= batch.answerBytes
    for (const callback of batch.callbacks) {
      try {
        callback(error)
      } catch (failure) {
        this.#options.onFailure(failure)
      }
    }
  }
}

function emptyFilling(): { bytes: number; answerBytes: number; callbacks: OnWritten[] } {
  return { bytes: 0, answerBytes: 0, callbacks: [] }
}
