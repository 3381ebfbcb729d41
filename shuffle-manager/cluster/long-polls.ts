// Answers that wait for something to say: one waiter a caller, a new one ends the old one. Each has a
// deadline and exactly one outcome. Owned by the manager.

import type { Clock, Timer } from '../../client/common/clock.ts'

interface Waiter {
  readonly timer: Timer
  readonly end: () => void
}

export class LongPolls {
  readonly #clock: Clock
  readonly #waiters = new Map<string, Waiter>()
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get waitingCount(): number {
    return this.#waiters.size
  }

  /** Resolves when `name` is woken or polls again, after `waitMs`, or at {@link close}. */
  wait(name: string, waitMs: number): Promise<void> {
    this.wake(name)
    if (waitMs <= 0 || this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel()
        this.#waiters.delete(name)
        resolve()
      }
      const timer = this.#clock.setTimer(waitMs, end)
      this.#waiters.set(name, { timer, end })
    })
  }

  wake(name: string): void {
    this.#waiters.get(name)?.end()
  }

  /** Ends all waits, and those to come at once. */
  close(): void {
    this.#isClosed = true
    for (const waiter of [...this.#waiters.values()]) waiter.end()
  }
}
