import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import {
  declareStorageMetrics,
  type StorageFigures,
} from '../../../shuffle-worker/storage/storage-metrics.ts'

const figures: StorageFigures = {
  directories: [
    {
      status: {
        index: 0,
        path: '/data',
        kind: 'ssd',
        health: 'suspect',
        isFull: true,
        totalBytes: 100,
        availableBytes: 40,
        partitionCount: 2,
        partitionBytes: 30,
      },
      inFlight: 3,
      waiting: 4,
      openFiles: 5,
      reservedBytes: 6,
      driftBytes: -7,
    },
  ],
  partitions: { writing: 1, committed: 2, releasing: 3, released: 4 },
  heldBytes: 8,
}

describe('storage metrics', () => {
  it('are read at each scrape', async () => {
    const registry = new Registry()
    declareStorageMetrics(registry, () => figures)
    const text = await registry.metrics()
    for (const line of [
      'sluice_worker_disk_operations_in_flight{directory="/data"} 3',
      'sluice_worker_disk_operations_waiting{directory="/data"} 4',
      'sluice_worker_disk_open_files{directory="/data"} 5',
      'sluice_worker_disk_total_bytes{directory="/data"} 100',
      'sluice_worker_disk_available_bytes{directory="/data"} 40',
      'sluice_worker_disk_reserved_bytes{directory="/data"} 6',
      'sluice_worker_disk_drift_bytes{directory="/data"} -7',
      'sluice_worker_disk_full{directory="/data"} 1',
      'sluice_worker_disk_partition_bytes{directory="/data"} 30',
      'sluice_worker_disk_health{directory="/data",health="suspect"} 1',
      'sluice_worker_disk_health{directory="/data",health="healthy"} 0',
      'sluice_worker_partitions{state="releasing"} 3',
      'sluice_worker_held_small_partition_bytes 8',
    ]) {
      expect(text).toContain(line)
    }
  })

  it('count operations, commits, failures and losses', async () => {
    const registry = new Registry()
    const metrics = declareStorageMetrics(registry, () => undefined)
    metrics.directory('/data').measured('read', 0.001, 'late')
    metrics.committed(50)
    metrics.failed()
    metrics.lost('disk-failed', 3)
    const text = await registry.metrics()
    for (const line of [
      'sluice_worker_disk_operations_total{directory="/data",operation="read",outcome="late"} 1',
      'sluice_worker_disk_operation_seconds_count{directory="/data",operation="read"} 1',
      'sluice_worker_partitions_committed_bytes_total 50',
      'sluice_worker_partition_writes_failed_total 1',
      'sluice_worker_partitions_lost_total{cause="disk-failed"} 3',
      'sluice_worker_partitions{state="writing"} 0',
    ]) {
      expect(text).toContain(line)
    }
  })
})
