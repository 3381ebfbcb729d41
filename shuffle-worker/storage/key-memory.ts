// What the worker still knows of keys that it holds nothing of: that they were released, why they
// were lost, and the highest allocation that was tried. Bounded; the oldest is forgotten first, and
// a forgotten key reads as unknown.

import type { ErrorCode } from '../../client/common/errors.ts'
import {
  compareAllocations,
  type AllocationId,
  type PartitionKeyText,
} from '../../client/common/ids.ts'

export type KeyFate =
  { readonly state: 'released' } | { readonly state: 'lost'; readonly code: ErrorCode }

/** A stage of 10,000 producers, several attempts each, and some stages back. */
export const rememberedKeysMax = 100_000

export class KeyMemory {
  readonly #countMax: number
  readonly #fates = new Map<PartitionKeyText, KeyFate>()
  readonly #allocations = new Map<PartitionKeyText, AllocationId>()

  constructor(options: { readonly countMax?: number } = {}) {
    this.#countMax = options.countMax ?? rememberedKeysMax
  }

  fateOf(key: PartitionKeyText): KeyFate | undefined {
    return this.#fates.get(key)
  }

  remember(key: PartitionKeyText, fate: KeyFate): void {
    this.#fates.delete(key)
    this.#fates.set(key, fate)
    forgetOldest(this.#fates, this.#countMax)
  }

  forgetFate(key: PartitionKeyText): void {
    this.#fates.delete(key)
  }

  /** The highest allocation tried for the key, as far as it is remembered. */
  highestAllocation(key: PartitionKeyText): AllocationId | undefined {
    return this.#allocations.get(key)
  }

  sawAllocation(key: PartitionKeyText, allocation: AllocationId): void {
    const known = this.#allocations.get(key)
    if (known !== undefined && compareAllocations(known, allocation) >= 0) return
    this.#allocations.delete(key)
    this.#allocations.set(key, allocation)
    forgetOldest(this.#allocations, this.#countMax)
  }
}

function forgetOldest(map: Map<PartitionKeyText, unknown>, countMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= countMax) return
    map.delete(key)
  }
}
