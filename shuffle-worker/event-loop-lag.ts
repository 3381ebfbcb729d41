// How late timers are: the one number that tells when the loop that serves all channels is held up.

import type { Clock, Timer } from '../client/common/clock.ts'

const intervalMs = 500

export class EventLoopLag {
  readonly #clock: Clock
  #timer: Timer | undefined
  #worstMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  start(): void {
    const dueMs = this.#clock.nowMs() + intervalMs
    this.#timer = this.#clock.setTimer(intervalMs, () => {
      this.#worstMs = Math.max(this.#worstMs, this.#clock.nowMs() - dueMs)
      this.start()
    })
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** The worst since it was last taken. */
  take(): number {
    const worstMs = this.#worstMs
    this.#worstMs = 0
    return worstMs
  }
}
