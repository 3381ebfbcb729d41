// The store of one worker: all its directories, all its partitions, from open to the confirmed
// release. The worker owns it; write, read and control services share it.

import type { Registry } from 'prom-client'
import type { ClusterId, PartitionKey, WorkerId } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import type { World } from '../../client/common/world.ts'
import type { MemoryLedger } from '../memory/memory-ledger.ts'
import type {
  DiskKind,
  Durability,
  LookupResult,
  OpenWriteRequest,
  PartitionReport,
  PartitionWriter,
  StorageDirectoryView,
  StoreChange,
} from './storage-types.ts'

export interface DataStoreOptions {
  readonly durability: Durability
  readonly preferredDiskKind: DiskKind
  /** Left free on each disk for others. */
  readonly minReservedSpaceBytes: number
  readonly diskOperationTimeoutMs: number
  readonly probeIntervalMs: number
  /** No probe succeeded for so long: the disk has failed. */
  readonly diskFailedAfterMs: number
  readonly smallPartitionBytesMax: number
  readonly releasedReadersTimeoutMs: number
}

export interface DataStoreSettings {
  readonly world: World
  readonly clusterId: ClusterId
  readonly directories: readonly { readonly path: string; readonly kind: DiskKind }[]
  readonly ledger: MemoryLedger
  readonly options?: Partial<DataStoreOptions>
  readonly registry: Registry
  readonly logger: Logger
}

export class DataStore {
  readonly workerId: WorkerId = '' as WorkerId
  readonly workerEpoch: number = 0
  readonly directories: readonly StorageDirectoryView[] = []

  /** Locks the directories, recovers what they hold, raises the epoch. */
  static open(_settings: DataStoreSettings): Promise<DataStore> {
    throw new Error('being written')
  }

  /** WRITER_CONFLICT, STALE_ALLOCATION, NO_SPACE, DISK_FAILED, LIMIT_EXCEEDED. */
  openWrite(_request: OpenWriteRequest): Promise<PartitionWriter> {
    throw new Error('being written')
  }

  lookup(_key: PartitionKey): LookupResult {
    throw new Error('being written')
  }

  /** At once for lookups; the bytes go when readers are done. Unknown keys are remembered too. */
  release(_keys: readonly PartitionKey[]): void {
    throw new Error('being written')
  }

  /** The manager knows that they are gone: drops their records. */
  confirmReleased(_keys: readonly PartitionKey[]): void {
    throw new Error('being written')
  }

  list(): readonly PartitionReport[] {
    throw new Error('being written')
  }

  /** One listener; called after the change, never within a call of the listener's. */
  onChange(_listener: (change: StoreChange) => void): void {
    throw new Error('being written')
  }

  /** Aborts open writes, syncs what is not durable (within the budget), marks a clean stop. */
  close(_options?: { readonly timeoutMs?: number }): Promise<void> {
    throw new Error('being written')
  }
}

/** Sum of in-flight limits of these disks: what the thread pool needs, plus four for the rest. */
export function diskOperationsInFlightMax(_kinds: readonly DiskKind[]): number {
  throw new Error('being written')
}
