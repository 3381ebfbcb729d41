// Every partition that the worker has or still answers for, by key, each in exactly one state. Owned
// by the data store; bounded by what is on the disks and what the manager has yet to confirm.
//
//   writing --commit--> committed --release--> releasing --deleted--> released --confirmed--> (gone)
//      '------ release, then deleted ------------^

import type { ErrorCode } from '../../client/common/errors.ts'
import {
  compareAllocations,
  partitionKeyText,
  type AllocationId,
  type PartitionKey,
  type PartitionKeyText,
} from '../../client/common/ids.ts'
import type { OpenWrite } from './open-write.ts'
import type { PartitionStateLabel } from './storage-metrics.ts'
import type { PartitionReport } from './storage-types.ts'
import type { StoredPartition } from './stored-partition.ts'

export type RegistryEntry =
  | { readonly state: 'writing'; readonly write: OpenWrite }
  | { readonly state: 'committed'; readonly partition: StoredPartition }
  | {
      readonly state: 'releasing' | 'released'
      readonly key: PartitionKey
      readonly allocation: AllocationId
      readonly byteCount: number
      /** Where it still is, when it was committed. */
      readonly directoryIndex: number
    }

export class PartitionRegistry {
  readonly #entries = new Map<PartitionKeyText, RegistryEntry>()
  readonly #counts: Record<PartitionStateLabel, number> = {
    writing: 0,
    committed: 0,
    releasing: 0,
    released: 0,
  }

  get counts(): Readonly<Record<PartitionStateLabel, number>> {
    return this.#counts
  }

  get(key: PartitionKeyText): RegistryEntry | undefined {
    return this.#entries.get(key)
  }

  set(key: PartitionKeyText, entry: RegistryEntry): void {
    this.delete(key)
    this.#entries.set(key, entry)
    this.#counts[entry.state] += 1
  }

  /**
   * One that a start has found. Of two with one key, on different disks, the commit of the first failed
   * for its client and the next was answered: the later allocation stays. Returns the other, if there is.
   */
  adopt(partition: StoredPartition): StoredPartition | undefined {
    const text = keyTextOf(partition.key)
    const entry = this.#entries.get(text)
    const other = entry?.state === 'committed' ? entry.partition : undefined
    if (other !== undefined && compareAllocations(other.allocation, partition.allocation) >= 0) {
      return partition
    }
    this.set(text, { state: 'committed', partition })
    return other
  }

  delete(key: PartitionKeyText): void {
    const known = this.#entries.get(key)
    if (known === undefined) return
    this.#entries.delete(key)
    this.#counts[known.state] -= 1
  }

  values(): RegistryEntry[] {
    return [...this.#entries.values()]
  }

  openWrites(): OpenWrite[] {
    return this.values().flatMap((each) => (each.state === 'writing' ? [each.write] : []))
  }

  reports(): PartitionReport[] {
    return this.values().map(reportOf)
  }
}

export function allocationOf(entry: RegistryEntry): AllocationId {
  switch (entry.state) {
    case 'writing':
      return entry.write.allocation
    case 'committed':
      return entry.partition.allocation
    case 'releasing':
    case 'released':
      return entry.allocation
  }
}

export function reportOf(entry: RegistryEntry): PartitionReport {
  switch (entry.state) {
    case 'writing':
      return {
        key: entry.write.key,
        allocation: entry.write.allocation,
        state: 'writing',
        byteCount: 0,
      }
    case 'committed': {
      const { key, allocation, totals } = entry.partition
      return { key, allocation, state: 'committed', byteCount: totals.storedBytes }
    }
    case 'releasing':
    case 'released':
      return {
        key: entry.key,
        allocation: entry.allocation,
        state: entry.state,
        byteCount: entry.byteCount,
      }
  }
}

export function keyTextOf(key: PartitionKey): PartitionKeyText {
  return partitionKeyText(key)
}

/** What a reader is told of a lost partition, by its cause. */
export const lossCodes = {
  'disk-failed': 'DISK_FAILED',
  'data-corrupt': 'DATA_CORRUPT',
  'file-missing': 'PARTITION_NOT_FOUND',
  'not-durable': 'PARTITION_NOT_FOUND',
} as const satisfies Record<string, ErrorCode>
