// Whether a simulated process still runs. What a dead process set going may still happen in the
// world, but nothing of it is ever heard by the dead process.

export class Life {
  readonly name: string
  readonly #onEnd: (() => void)[] = []
  #isAlive = true

  constructor(name: string) {
    this.name = name
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  /**
   * Runs `callback` at the end of this life; the order of registration is the order of calls. At once
   * after the end: what a process that was killed in the middle of a turn still takes is not kept.
   */
  atEnd(callback: () => void): void {
    if (this.#isAlive) this.#onEnd.push(callback)
    else callback()
  }

  end(): void {
    if (!this.#isAlive) return
    this.#isAlive = false
    for (const callback of this.#onEnd.splice(0)) callback()
  }

  /** `promise` as the process sees it: after the end it stays pending for ever. */
  heard<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      promise.then(
        (value) => {
          if (this.#isAlive) resolve(value)
        },
        (error: unknown) => {
          if (this.#isAlive) reject(error)
        },
      )
    })
  }
}
