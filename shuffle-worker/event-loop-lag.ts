// How late timers are: the one number that tells when the loop that serves all channels is held up.

import type { Clock, Timer } from '../client/common/clock.ts'

const intervalMs = 500
const windowMs = 60_000

export class EventLoopLag {
  readonly #clock: Clock
  #timer: Timer | undefined
  #worst = 0
  #worstBefore = 0
  #windowEndMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  start(): void {
    const dueMs = this.#clock.nowMs() + intervalMs
    this.#timer = this.#clock.setTimer(intervalMs, () => {
      const nowMs = this.#clock.nowMs()
      if (nowMs >= this.#windowEndMs) {
        this.#worstBefore = this.#worst
        this.#worst = 0
        this.#windowEndMs = nowMs + windowMs
      }
      this.#worst = Math.max(this.#worst, nowMs - dueMs)
      this.start()
    })
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** The worst of the last one to two minutes, whoever asks and how often. */
  get worstMs(): number {
    return Math.max(this.#worstBefore, this.#worst)
  }
}
