// One abort signal of two. Owned by one call, which releases it at its end. AbortSignal.any would do,
// but leaves a weak reference in a signal that lives long for every call that was ever joined to it.

export class JoinedSignal {
  readonly #controller = new AbortController()
  readonly #sources: readonly AbortSignal[]

  /** Aborts with the reason of the first that does, at once when one has already. */
  constructor(...sources: readonly AbortSignal[]) {
    this.#sources = sources
    for (const source of sources) source.addEventListener('abort', this.#onAbort, { once: true })
    if (sources.some((source) => source.aborted)) this.#onAbort()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Listens no more. Idempotent. */
  release(): void {
    for (const source of this.#sources) source.removeEventListener('abort', this.#onAbort)
  }

  readonly #onAbort = (): void => {
    this.release()
    this.#controller.abort(this.#sources.find((source) => source.aborted)?.reason)
  }
}
