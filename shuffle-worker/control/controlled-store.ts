// What control needs of the data store, and how a directory of it looks to the manager.

import type { PartitionKey, WorkerId } from '../../client/common/ids.ts'
import type { DirectoryStatus as ToldStatus, ServiceRecord } from '../../client/manager/schemas.ts'
import type {
  PartitionReport,
  StorageDirectoryView,
  StoreChange,
} from '../storage/storage-types.ts'

/** The DataStore is one. */
export interface ControlledStore {
  readonly workerId: WorkerId
  readonly workerEpoch: number
  readonly directories: readonly Pick<StorageDirectoryView, 'status'>[]
  readonly service: ServiceRecord
  /** Holds at once; resolves to what is kept, `record` or one set since. Never rejects. */
  setService(record: ServiceRecord): Promise<ServiceRecord>
  release(keys: readonly PartitionKey[]): void
  confirmReleased(keys: readonly PartitionKey[]): void
  list(): readonly PartitionReport[]
  onChange(listener: (change: StoreChange) => void): void
}

export function toldStatus(directory: Pick<StorageDirectoryView, 'status'>): ToldStatus {
  const { path, kind, health, isFull, availableBytes, totalBytes, fileSystem } = directory.status()
  return {
    name: path.slice(0, 1000),
    kind,
    health,
    isFull,
    freeBytes: Math.max(0, Math.floor(availableBytes)),
    totalBytes: Math.floor(totalBytes),
    ...(fileSystem === undefined ? {} : { fileSystem }),
  }
}
