// One data directory on a virtual disk, for tests of what stands below the store.

import { Registry } from 'prom-client'
import { silentLogger } from '../../../../client/common/log.ts'
import type { World } from '../../../../client/common/world.ts'
import { DirectMemory } from '../../../../shuffle-worker/storage/direct-memory.ts'
import { openDirectories } from '../../../../shuffle-worker/storage/directory-opener.ts'
import { diskLimits } from '../../../../shuffle-worker/storage/disk-operation.ts'
import { DiskQueue } from '../../../../shuffle-worker/storage/disk-queue.ts'
import { QueuedDisk } from '../../../../shuffle-worker/storage/queued-disk.ts'
import { StorageDirectory } from '../../../../shuffle-worker/storage/storage-directory.ts'
import { declareStorageMetrics } from '../../../../shuffle-worker/storage/storage-metrics.ts'
import { clusterId } from './store-fixture.ts'

export function newDirectMemory(): DirectMemory {
  const { read, write } = diskLimits.ssd
  return new DirectMemory({ writeBytes: 65_536, writesMax: write, readsMax: read })
}

export function newQueuedDisk(
  world: World,
  operationTimeoutMs = 30_000,
  directMemory = newDirectMemory(),
): QueuedDisk {
  const queue = new DiskQueue({
    clock: world.clock,
    directory: '/data',
    limits: diskLimits.ssd,
    operationTimeoutMs,
    observer: { measured: () => undefined, troubled: () => undefined, full: () => undefined },
  })
  return new QueuedDisk(world.disk, queue, directMemory)
}

export interface DirectoryBench {
  readonly directory: StorageDirectory
  readonly events: string[]
}

export function newDirectory(
  world: World,
  options: { readonly path?: string; readonly index?: number; readonly isDirect?: boolean } = {},
): DirectoryBench {
  const events: string[] = []
  const directory = new StorageDirectory({
    index: options.index ?? 0,
    path: options.path ?? '/data',
    kind: 'ssd',
    isDirect: options.isDirect ?? true,
    writeBytes: 65_536,
    clock: world.clock,
    disk: world.disk,
    logger: silentLogger,
    metrics: declareStorageMetrics(new Registry(), () => undefined).directory('/data'),
    minReservedSpaceBytes: 0,
    diskOperationTimeoutMs: 30_000,
    probeIntervalMs: 10_000,
    diskFailedAfterMs: 60_000,
    onChange: ({ health, isFull }) => events.push(`${health} ${isFull ? 'full' : 'open'}`),
    onFailed: () => events.push('lost'),
  })
  return { directory, events }
}

export async function openDirectory(
  world: World,
  segmentSizeBytes = 64 * 1024,
): Promise<DirectoryBench> {
  const bench = newDirectory(world)
  await openDirectories({
    world,
    clusterId,
    directories: [bench.directory],
    segmentSizeBytes,
    sync: false,
    logger: silentLogger,
  })
  return bench
}
