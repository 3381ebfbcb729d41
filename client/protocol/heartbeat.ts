// Signs of life of one connection: says when to ping, and when the other side has been silent for
// too long. Owned by one ProtocolConnection.

import type { Clock, Timer } from '../common/clock.ts'

export interface HeartbeatOptions {
  readonly clock: Clock
  readonly intervalMs: number
  /** Intervals of silence after which the other side is given up. */
  readonly idlePingsMax: number
  /** Frames that this side has sent in all. */
  readonly sentCount: () => number
  readonly onPing: () => void
  readonly onIdle: (silentMs: number) => void
}

export class Heartbeat {
  readonly #options: HeartbeatOptions
  #timer: Timer | undefined
  #tickDueMs = 0
  #heardMs = 0
  #sentAtTick = 0
  #silenceMaxMs = 0

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  /** `peerIntervalMs`: how often the other side promised to send something. */
  start(peerIntervalMs: number): void {
    const { clock, intervalMs, idlePingsMax } = this.#options
    this.#silenceMaxMs = idlePingsMax * Math.max(intervalMs, peerIntervalMs)
    this.#heardMs = clock.nowMs()
    this.#schedule()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** Bytes have come. */
  heard(): void {
    this.#heardMs = this.#options.clock.nowMs()
  }

  #schedule(): void {
    const { clock, intervalMs } = this.#options
    this.#tickDueMs = clock.nowMs() + intervalMs
    this.#timer = clock.setTimer(intervalMs, () => {
      this.#tick()
    })
  }

  #tick(): void {
    const { clock, intervalMs, sentCount, onIdle, onPing } = this.#options
    const now = clock.nowMs()
    // A process that was late itself could not hear: it begins to judge anew.
    if (now - this.#tickDueMs > intervalMs) this.#heardMs = now
    const silentMs = now - this.#heardMs
    if (silentMs >= this.#silenceMaxMs) {
      onIdle(silentMs)
      return
    }
    if (silentMs >= intervalMs || sentCount() === this.#sentAtTick) onPing()
    this.#sentAtTick = sentCount()
    this.#schedule()
  }
}
