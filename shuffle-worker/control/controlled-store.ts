// What control needs of the data store, and how a directory of it looks to the manager.

import type { DirectoryStatus as ToldStatus } from '../../client/manager/schemas.ts'
import type { DataStore } from '../storage/data-store.ts'
import type { StorageDirectoryView } from '../storage/storage-types.ts'

export type ControlledStore = Pick<
  DataStore,
  'workerId' | 'workerEpoch' | 'directories' | 'release' | 'confirmReleased' | 'list' | 'onChange'
>

export function toldStatus(directory: StorageDirectoryView): ToldStatus {
  const { path, kind, health, isFull, availableBytes, totalBytes } = directory.status()
  return {
    name: path.slice(0, 1000),
    kind,
    health,
    isFull,
    freeBytes: Math.max(0, Math.floor(availableBytes)),
    totalBytes: Math.floor(totalBytes),
  }
}
