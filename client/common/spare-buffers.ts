// Memory of pools that were closed, kept for the next ones: a task's partitions and gates come and go,
// and fresh memory costs more than filling it (each page is found and zeroed by the system when it is
// first touched). Taken before any is allocated, so that a process never has more than its pools had
// out at the same time. One per environment.

import type { Clock, Timer } from './clock.ts'

export interface SpareBuffersOptions {
  readonly clock: Clock
  /** Kept at most. */
  readonly bytesMax: number
  /** When none was taken for so long, all are let go. */
  readonly quietMs: number
}

export class SpareBuffers {
  readonly #options: SpareBuffersOptions
  readonly #bySize = new Map<number, Uint8Array[]>()
  #bytes = 0
  #takenMs = 0
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: SpareBuffersOptions) {
    this.#options = options
  }

  /** Bytes kept now. */
  get bytes(): number {
    return this.#bytes
  }

  /** Memory of this size with whatever it held last; undefined when there is none. */
  take(sizeBytes: number): Uint8Array | undefined {
    const memory = this.#bySize.get(sizeBytes)?.pop()
    if (memory === undefined) return undefined
    this.#bytes -= sizeBytes
    this.#takenMs = this.#options.clock.nowMs()
    return memory
  }

  /** Nobody else refers to it any more. */
  give(memory: Uint8Array): void {
    const sizeBytes = memory.length
    if (this.#isClosed || this.#bytes + sizeBytes > this.#options.bytesMax) return
    const alike = this.#bySize.get(sizeBytes)
    if (alike === undefined) this.#bySize.set(sizeBytes, [memory])
    else alike.push(memory)
    this.#bytes += sizeBytes
    if (this.#timer !== undefined) return
    this.#takenMs = this.#options.clock.nowMs()
    this.#dropIn(this.#options.quietMs)
  }

  /** Lets all go, and whatever comes later. Idempotent. */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#drop()
  }

  #dropIn(delayMs: number): void {
    const { clock, quietMs } = this.#options
    this.#timer = clock.setTimer(delayMs, () => {
      this.#timer = undefined
      const leftMs = this.#takenMs + quietMs - clock.nowMs()
      if (leftMs > 0) this.#dropIn(leftMs)
      else this.#drop()
    })
  }

  #drop(): void {
    this.#bySize.clear()
    this.#bytes = 0
  }
}
