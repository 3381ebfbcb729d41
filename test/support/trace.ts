// What happened in a virtual world, as lines and as one hash: two runs of the same seed must agree.

import { createHash } from 'node:crypto'

/** A call of the hash costs more than a line. */
const hashedAtOnce = 16_384

export class Trace {
  readonly #hash = createHash('sha256')
  readonly #last: string[] = []
  readonly #linesMax: number
  #unhashed = ''
  #count = 0

  /** Keeps the last `linesMax` lines; the hash covers all. */
  constructor(linesMax = 500) {
    this.#linesMax = linesMax
  }

  note(line: string): void {
    this.#count += 1
    this.#unhashed += `${line}\n`
    if (this.#unhashed.length > hashedAtOnce) this.#flush()
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
    this.#flush()
    return this.#hash.copy().digest('hex')
  }

  #flush(): void {
    this.#hash.update(this.#unhashed)
    this.#unhashed = ''
  }
}
