// Back-off between attempts: each pause is up to twice the one before, with jitter so that the tasks
// of a stage do not come back in step. Owned by whoever retries.

import type { Clock } from '../common/clock.ts'
import { sleep } from '../common/clock.ts'
import type { Random } from '../common/random.ts'

export interface BackoffOptions {
  readonly clock: Clock
  readonly random: Random
  readonly delayMinMs: number
  readonly delayMaxMs: number
}

export class Backoff {
  readonly #options: BackoffOptions
  #failures = 0
  #sinceMs: number | undefined

  constructor(options: BackoffOptions) {
    this.#options = options
  }

  /** Since the first failure after the last success; 0 when nothing has failed. */
  get failingForMs(): number {
    return this.#sinceMs === undefined ? 0 : this.#options.clock.nowMs() - this.#sinceMs
  }

  /** The attempt succeeded: the next failure begins anew. */
  reset(): void {
    this.#failures = 0
    this.#sinceMs = undefined
  }

  /** Counts a failure; answers how long to pause. */
  nextDelayMs(): number {
    const { clock, random, delayMinMs, delayMaxMs } = this.#options
    this.#sinceMs ??= clock.nowMs()
    const fullMs = Math.min(delayMaxMs, delayMinMs * 2 ** Math.min(this.#failures, 20))
    this.#failures += 1
    return fullMs * (0.5 + random.float() / 2)
  }

  /** Counts a failure and pauses; rejects as soon as `signal` aborts. */
  pause(signal?: AbortSignal): Promise<void> {
    return sleep(this.#options.clock, this.nextDelayMs(), signal)
  }
}
