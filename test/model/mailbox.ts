// What is on its way through a network that only delays: everything handed in goes on together, half
// a millisecond later. One event for all, where an event for each frame would be most of a model's run.

import type { Clock } from '../../client/common/clock.ts'

const delayMs = 0.5

export class Mailbox {
  readonly #clock: Clock
  #waiting: (() => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(step: () => void): void {
    if (this.#waiting.length === 0) {
      this.#clock.setTimer(delayMs, () => {
        this.#deliver()
      })
    }
    this.#waiting.push(step)
  }

  #deliver(): void {
    const steps = this.#waiting
    this.#waiting = []
    for (const step of steps) step()
  }
}
