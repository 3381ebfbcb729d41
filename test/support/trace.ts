// What happened in a virtual world, as lines and as one hash: two runs of the same seed must agree.

import { createHash } from 'node:crypto'

export class Trace {
  readonly #hash = createHash('sha256')
  readonly #last: string[] = []
  readonly #linesMax: number
  #count = 0

  /** Keeps the last `linesMax` lines; the hash covers all. */
  constructor(linesMax = 500) {
    this.#linesMax = linesMax
  }

  note(line: string): void {
    this.#count += 1
    this.#hash.update(`${line}\n`)
    this.#last.push(line)
    if (this.#last.length > 2 * this.#linesMax) this.#last.splice(0, this.#linesMax)
  }

  get count(): number {
    return this.#count
  }

  get lines(): readonly string[] {
    return this.#last.slice(-this.#linesMax)
  }

  digest(): string {
    return this.#hash.copy().digest('hex')
  }
}
