// Metrics of the worker's disks and partitions. Labels: the data directory (as many as configured)
// and closed sets; never a job or a partition.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { DiskOperationKind } from './disk-operation.ts'
import { lossCauses, type DirectoryStatus, type DiskHealth } from './storage-types.ts'

export interface DirectoryMetrics {
  readonly measured: (
    kind: DiskOperationKind,
    seconds: number,
    outcome: 'ok' | 'failed' | 'late',
  ) => void
}

/** What is asked at each scrape. */
export interface StorageFigures {
  readonly directories: readonly {
    readonly status: DirectoryStatus
    readonly inFlight: number
    readonly waiting: number
    readonly openFiles: number
    readonly reservedBytes: number
    readonly driftBytes: number
  }[]
  readonly partitions: Readonly<Record<PartitionStateLabel, number>>
  readonly heldBytes: number
}

export const partitionStateLabels = ['writing', 'committed', 'releasing', 'released'] as const
export type PartitionStateLabel = (typeof partitionStateLabels)[number]

const healthLabels: readonly DiskHealth[] = ['healthy', 'suspect', 'failed']

export interface StorageMetrics {
  directory(path: string): DirectoryMetrics
  committed(byteCount: number): void
  failed(): void
  lost(cause: string, count: number): void
}

/** `figures` is undefined while the store is being opened. */
export function declareStorageMetrics(
  registry: Registry,
  figures: () => StorageFigures | undefined,
): StorageMetrics {
  const registers = [registry]
  const seconds = new Histogram({
    name: 'sluice_worker_disk_operation_seconds',
    help: 'Time of file calls at the disk, without the wait for their turn.',
    labelNames: ['directory', 'operation'] as const,
    buckets: [0.0001, 0.0005, 0.002, 0.008, 0.03, 0.1, 0.4, 1.5, 6, 30],
    registers,
  })
  const operations = new Counter({
    name: 'sluice_worker_disk_operations_total',
    help: 'File calls by outcome; late: ended after its deadline.',
    labelNames: ['directory', 'operation', 'outcome'] as const,
    registers,
  })
  const commits = new Counter({
    name: 'sluice_worker_partitions_committed_total',
    help: 'Partitions committed.',
    registers,
  })
  const committedBytes = new Counter({
    name: 'sluice_worker_partitions_committed_bytes_total',
    help: 'Bytes that committed partitions take on the disks.',
    registers,
  })
  const failures = new Counter({
    name: 'sluice_worker_partition_writes_failed_total',
    help: 'Open writes that ended without a commit.',
    registers,
  })
  const losses = declareLosses(registers)
  declareDirectoryGauges(registers, figures)
  declarePartitionGauges(registers, figures)
  return {
    directory: (path) => ({
      measured: (operation, duration, outcome) => {
        seconds.observe({ directory: path, operation }, duration)
        operations.inc({ directory: path, operation, outcome })
      },
    }),
    committed: (byteCount) => {
      commits.inc()
      committedBytes.inc(byteCount)
    },
    failed: () => {
      failures.inc()
    },
    lost: (cause, count) => {
      losses.inc({ cause }, count)
    },
  }
}

function declareLosses(registers: Registry[]): Counter<'cause'> {
  const losses = new Counter({
    name: 'sluice_worker_partitions_lost_total',
    help: 'Committed partitions that can no longer be served.',
    labelNames: ['cause'] as const,
    registers,
  })
  // An alert sees a counter rise from 0, not begin at 1.
  for (const cause of lossCauses) losses.inc({ cause }, 0)
  return losses
}

function declareDirectoryGauges(
  registers: Registry[],
  figures: () => StorageFigures | undefined,
): void {
  type Directory = StorageFigures['directories'][number]
  const gauge = (name: string, help: string, valueOf: (directory: Directory) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['directory'] as const,
      registers,
      collect() {
        for (const each of figures()?.directories ?? []) {
          this.set({ directory: each.status.path }, valueOf(each))
        }
      },
    })
  gauge('sluice_worker_disk_operations_in_flight', 'File calls at the disk.', (d) => d.inFlight)
  gauge(
    'sluice_worker_disk_operations_waiting',
    'File calls that wait for a slot.',
    (d) => d.waiting,
  )
  gauge('sluice_worker_disk_open_files', 'Files open for reading.', (d) => d.openFiles)
  gauge('sluice_worker_disk_total_bytes', 'Size of the file system.', (d) => d.status.totalBytes)
  gauge(
    'sluice_worker_disk_available_bytes',
    'What new regions may reserve.',
    (d) => d.status.availableBytes,
  )
  gauge(
    'sluice_worker_disk_reserved_bytes',
    'Reserved and not yet written.',
    (d) => d.reservedBytes,
  )
  gauge(
    'sluice_worker_disk_drift_bytes',
    'Free space found at the last sample less what was expected.',
    (d) => d.driftBytes,
  )
  gauge('sluice_worker_disk_full', '1 while closed to new partitions for want of space.', (d) =>
    d.status.isFull ? 1 : 0,
  )
  gauge(
    'sluice_worker_disk_partition_bytes',
    'Bytes of the committed partitions.',
    (d) => d.status.partitionBytes,
  )
  declareHealthGauge(registers, figures)
}

function declareHealthGauge(
  registers: Registry[],
  figures: () => StorageFigures | undefined,
): void {
  new Gauge({
    name: 'sluice_worker_disk_health',
    help: '1 for the state that the disk is in.',
    labelNames: ['directory', 'health'] as const,
    registers,
    collect() {
      for (const { status } of figures()?.directories ?? []) {
        for (const health of healthLabels) {
          this.set({ directory: status.path, health }, status.health === health ? 1 : 0)
        }
      }
    },
  })
}

function declarePartitionGauges(
  registers: Registry[],
  figures: () => StorageFigures | undefined,
): void {
  new Gauge({
    name: 'sluice_worker_partitions',
    help: 'Partitions by state.',
    labelNames: ['state'] as const,
    registers,
    collect() {
      const partitions = figures()?.partitions
      for (const state of partitionStateLabels) this.set({ state }, partitions?.[state] ?? 0)
    },
  })
  new Gauge({
    name: 'sluice_worker_held_small_partition_bytes',
    help: 'Bytes of small open partitions that are held in memory until they finish.',
    registers,
    collect() {
      this.set(figures()?.heldBytes ?? 0)
    },
  })
}
