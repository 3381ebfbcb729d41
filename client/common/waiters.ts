// The register of waiters: every promise that something else must settle is made here, so that it
// has a name, a deadline that progress resets, and exactly one outcome (value, error, cancellation),
// and so that an operator can ask a process what it is waiting for. One register per process.

import type { Clock, Timer } from './clock.ts'
import { ShuffleError, type ErrorCode, type ErrorFields } from './errors.ts'

export interface WaitOptions {
  /** What is waited for, as it stands in the register and in the error: "credit of a region". */
  readonly name: string
  /** Longest time without progress; Infinity where something else bounds the wait. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  /** Ids of what is concerned; shown in the register and set on the error. */
  readonly fields?: ErrorFields
  /** The code of the error when the deadline passes; BUSY when not given. */
  readonly timeoutCode?: ErrorCode
}

/** One wait. The first of `resolve`, `reject`, deadline and abort decides; the others do nothing. */
export interface Waiter<T> {
  readonly promise: Promise<T>
  readonly isSettled: boolean
  resolve(value: T): void
  reject(error: Error): void
  /** Starts the deadline anew. Cheap: callable for each frame. */
  progress(): void
}

export interface WaiterDescription {
  readonly name: string
  readonly ageMs: number
  /** Infinity when it has no deadline of its own. */
  readonly remainingMs: number
  readonly fields: ErrorFields
}

export class WaiterRegister {
  readonly #clock: Clock
  readonly #waiters = new Set<Described>()

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock
  }

  get count(): number {
    return this.#waiters.size
  }

  wait<T>(options: WaitOptions): Waiter<T> {
    const waiter = new RegisteredWaiter<T>(this.#clock, options, this.#waiters)
    if (!waiter.isSettled) this.#waiters.add(waiter)
    return waiter
  }

  /** Everything that is waited for at this moment, oldest first. */
  list(): readonly WaiterDescription[] {
    return [...this.#waiters].map((waiter) => waiter.describe())
  }
}

/** The error of a wait that its signal ended; a ShuffleError given as the reason passes unchanged. */
export function cancelledError(name: string, reason: unknown, fields: ErrorFields = {}): Error {
  if (reason instanceof ShuffleError) return reason
  return new ShuffleError('CANCELLED', `the wait for ${name} was cancelled`, {
    cause: reason,
    fields,
  })
}

interface Described {
  describe(): WaiterDescription
}

class RegisteredWaiter<T> implements Waiter<T>, Described {
  readonly promise: Promise<T>
  readonly #clock: Clock
  readonly #options: WaitOptions
  readonly #register: Set<Described>
  readonly #startedMs: number
  #progressMs: number
  #timer: Timer | undefined
  #settled = false
  #accept: (value: T) => void = () => undefined
  #refuse: (error: Error) => void = () => undefined

  constructor(clock: Clock, options: WaitOptions, register: Set<Described>) {
    this.#clock = clock
    this.#options = options
    this.#register = register
    this.#startedMs = clock.nowMs()
    this.#progressMs = this.#startedMs
    this.promise = new Promise<T>((resolve, reject) => {
      this.#accept = resolve
      this.#refuse = reject
    })
    // A waiter may be rejected before anyone awaits it; that alone must not end the process.
    this.promise.catch(() => undefined)
    if (options.signal?.aborted === true) {
      this.#onAbort()
      return
    }
    options.signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (options.timeoutMs !== Infinity) this.#arm(options.timeoutMs)
  }

  get isSettled(): boolean {
    return this.#settled
  }

  resolve(value: T): void {
    if (this.#settle()) this.#accept(value)
  }

  reject(error: Error): void {
    if (this.#settle()) this.#refuse(error)
  }

  progress(): void {
    this.#progressMs = this.#clock.nowMs()
  }

  describe(): WaiterDescription {
    const nowMs = this.#clock.nowMs()
    return {
      name: this.#options.name,
      ageMs: nowMs - this.#startedMs,
      remainingMs: this.#progressMs + this.#options.timeoutMs - nowMs,
      fields: this.#options.fields ?? {},
    }
  }

  readonly #onAbort = () => {
    this.reject(
      cancelledError(this.#options.name, this.#options.signal?.reason, this.#options.fields),
    )
  }

  /** Progress does not touch the timer: when it fires early it is set again for what is left. */
  #arm(delayMs: number): void {
    this.#timer = this.#clock.setTimer(delayMs, () => {
      const { name, timeoutMs, timeoutCode, fields } = this.#options
      const leftMs = this.#progressMs + timeoutMs - this.#clock.nowMs()
      if (leftMs > 0) {
        this.#arm(leftMs)
        return
      }
      this.reject(
        new ShuffleError(
          timeoutCode ?? 'BUSY',
          `no progress for ${String(timeoutMs)} ms while waiting for ${name}`,
          { fields: { ...fields, waitedMs: timeoutMs } },
        ),
      )
    })
  }

  #settle(): boolean {
    if (this.#settled) return false
    this.#settled = true
    this.#timer?.cancel()
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
    this.#register.delete(this)
    return true
  }
}
