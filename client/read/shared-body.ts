// The body of one ReadData frame while several entries of it are still needed: the buffer goes back
// to its pool when the last of them is done with. Owned in parts by the entries.

import { assert } from '../common/assert.ts'
import type { PooledBuffer } from '../common/buffer.ts'

export class SharedBody {
  readonly #buffer: PooledBuffer
  #holders = 1

  /** Held once by its maker, who releases it when all entries have been handed on. */
  constructor(buffer: PooledBuffer) {
    this.#buffer = buffer
  }

  get bytes(): Uint8Array {
    return this.#buffer.bytes
  }

  retain(): void {
    assert(this.#holders > 0, 'a body that was given back is not held again')
    this.#holders += 1
  }

  release(): void {
    this.#holders -= 1
    assert(this.#holders >= 0, 'a body is released as often as it was retained')
    if (this.#holders === 0) this.#buffer.recycle()
  }
}
