// Seam: time. Everything inside client and services that waits or measures takes a Clock.

export interface Timer {
  /** Idempotent; after it the callback never runs. */
  cancel(): void
}

export interface Clock {
  /** Monotonic milliseconds since an arbitrary origin; for every duration and deadline. */
  nowMs(): number
  /** Milliseconds since 1970; for people and for epochs, never for durations. */
  wallMs(): number
  /** Runs `callback` once, not before `delayMs` (0 or more) has passed. */
  setTimer(delayMs: number, callback: () => void): Timer
  /** Runs `callback` after the IO of the present turn, as setImmediate does. */
  setImmediate(callback: () => void): Timer
}

export const realClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return {
      cancel: () => {
        clearTimeout(timer)
      },
    }
  },
  setImmediate(callback) {
    const immediate = setImmediate(callback)
    return {
      cancel: () => {
        clearImmediate(immediate)
      },
    }
  },
}

/** Resolves after `delayMs`; rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error)
      return
    }
    const onAbort = () => {
      timer.cancel()
      reject(signal?.reason as Error)
    }
    const timer = clock.setTimer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
