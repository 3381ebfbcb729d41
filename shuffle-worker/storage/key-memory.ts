// What the worker still knows of keys that it holds nothing of: that they were released, why they
// were lost, and the highest allocation that was tried. Bounded; what was touched longest ago is
// forgotten first, and a forgotten key reads as unknown.
//
// A runtime's keys are hundreds of characters, so each is known by 16 bytes of its SHA-256.

import { createHash } from 'node:crypto'
import { assert } from '../../client/common/assert.ts'
import type { ErrorCode } from '../../client/common/errors.ts'
import {
  compareAllocations,
  type AllocationId,
  type PartitionKeyText,
} from '../../client/common/ids.ts'

export type KeyFate =
  { readonly state: 'released' } | { readonly state: 'lost'; readonly code: ErrorCode }

/** A stage of 10,000 producers, several attempts each, and some stages back; about 14 MB. */
export const rememberedKeysMax = 100_000
const digestBytes = 16
const released: KeyFate = { state: 'released' }

export class KeyMemory {
  readonly #countMax: number
  /** Where in the columns a key is; the one touched longest ago comes first. */
  readonly #rows = new Map<string, number>()
  readonly #fates: (KeyFate | undefined)[] = []
  /** NaN where no allocation was seen. */
  readonly #managerEpochs: number[] = []
  readonly #jobEpochs: number[] = []
  readonly #sequences: number[] = []
  #lastKey: PartitionKeyText | undefined
  #lastDigest = ''

  constructor(options: { readonly countMax?: number } = {}) {
    this.#countMax = options.countMax ?? rememberedKeysMax
  }

  fateOf(key: PartitionKeyText): KeyFate | undefined {
    const row = this.#rows.get(this.#digestOf(key))
    return row === undefined ? undefined : this.#fates[row]
  }

  remember(key: PartitionKeyText, fate: KeyFate): void {
    this.#fates[this.#touch(key)] = fate.state === 'released' ? released : fate
  }

  /** The highest allocation tried for the key, as far as it is remembered. */
  highestAllocation(key: PartitionKeyText): AllocationId | undefined {
    const row = this.#rows.get(this.#digestOf(key))
    if (row === undefined) return undefined
    const managerEpoch = this.#managerEpochs[row] ?? NaN
    if (Number.isNaN(managerEpoch)) return undefined
    const [jobEpoch = 0, sequence = 0] = [this.#jobEpochs[row], this.#sequences[row]]
    return { managerEpoch, jobEpoch, sequence }
  }

  sawAllocation(key: PartitionKeyText, allocation: AllocationId): void {
    const highest = this.highestAllocation(key)
    if (highest !== undefined && compareAllocations(highest, allocation) >= 0) return
    const row = this.#touch(key)
    this.#managerEpochs[row] = allocation.managerEpoch
    this.#jobEpochs[row] = allocation.jobEpoch
    this.#sequences[row] = allocation.sequence
  }

  /** The row of the key, which is the latest now; a new one is that of the oldest, if there are many. */
  #touch(key: PartitionKeyText): number {
    const digest = this.#digestOf(key)
    const known = this.#rows.get(digest)
    const row = known ?? this.#newRow()
    this.#rows.delete(digest)
    this.#rows.set(digest, row)
    return row
  }

  #newRow(): number {
    const row = this.#rows.size < this.#countMax ? this.#rows.size : this.#forgetOldest()
    this.#fates[row] = undefined
    this.#managerEpochs[row] = NaN
    return row
  }

  #forgetOldest(): number {
    const [oldest] = this.#rows
    assert(oldest !== undefined, 'one key at least is remembered')
    this.#rows.delete(oldest[0])
    return oldest[1]
  }

  /** One key is mostly asked about several times in a row. */
  #digestOf(key: PartitionKeyText): string {
    if (key !== this.#lastKey) {
      const digest = createHash('sha256').update(key).digest()
      this.#lastDigest = digest.toString('latin1', 0, digestBytes)
      this.#lastKey = key
    }
    return this.#lastDigest
  }
}
