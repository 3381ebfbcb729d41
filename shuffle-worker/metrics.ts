// Metrics of the worker's services; those of its disks are in storage/storage-metrics.ts. Counters
// are counted as things happen, gauges are asked at each scrape. Labels are closed sets.

import { Counter, Gauge, type Registry } from 'prom-client'
import { errorTable, type ShuffleError } from '../client/common/errors.ts'
import { serviceStates, type ServiceState } from '../client/manager/schemas.ts'

/** The parts of the memory ledger. */
const memoryPurposes = ['write', 'read', 'index', 'control'] as const
type MemoryPurpose = (typeof memoryPurposes)[number]

/** What is asked at each scrape. */
export interface WorkerFigures {
  readonly memoryBytes: Readonly<Record<MemoryPurpose, number>>
  readonly memoryWaiters: Readonly<Record<MemoryPurpose, number>>
  readonly connections: number
  readonly queuedBytes: number
  readonly channels: { readonly write: number; readonly read: number }
  readonly creditOutstanding: { readonly write: number; readonly read: number }
  readonly heldBuffers: { readonly write: number; readonly read: number }
  readonly aheadBuffers: number
  readonly waitingRegions: number
  readonly listedPartitions: number
  readonly waiters: number
  readonly eventLoopLagMs: number
  /** Takes no new writes: it stops, or was told to drain. */
  readonly isDraining: boolean
  readonly isStopping: boolean
  readonly serviceState: ServiceState
  readonly writeStateMs: Readonly<Record<string, number>>
  readonly readStateMs: Readonly<Record<string, number>>
}

type Values = Readonly<Record<string, number>>

export class WorkerMetrics {
  readonly registry: Registry
  /** Counted plainly, thousands of times a second, and put into the counters at a scrape. */
  readonly #moved = { in: { bytes: 0, frames: 0 }, out: { bytes: 0, frames: 0 } }
  readonly #uncompressedBytes: Counter
  readonly #errors: Counter<'code'>
  readonly #diskReadBytes: Counter

  constructor(registry: Registry) {
    this.registry = registry
    const registers = [registry]
    declareMoved(
      registry,
      {
        name: 'sluice_worker_data_bytes_total',
        help: 'Bytes of data frames, in: written by producers; out: read by consumers.',
      },
      () => ({ in: this.#moved.in.bytes, out: this.#moved.out.bytes }),
    )
    declareMoved(
      registry,
      {
        name: 'sluice_worker_data_frames_total',
        help: 'Data frames, in: WriteData; out: ReadData.',
      },
      () => ({ in: this.#moved.in.frames, out: this.#moved.out.frames }),
    )
    this.#uncompressedBytes = new Counter({
      name: 'sluice_worker_committed_uncompressed_bytes_total',
      help: 'Bytes of committed partitions before compression, broadcast ones once per subpartition.',
      registers,
    })
    this.#errors = new Counter({
      name: 'sluice_worker_errors_total',
      help: 'Errors that peers were told of or that ended their connections, by code.',
      labelNames: ['code'] as const,
      registers,
    })
    this.#diskReadBytes = new Counter({
      name: 'sluice_worker_sweep_read_bytes_total',
      help: 'Bytes that sweeps read from the disks, gaps between slices included.',
      registers,
    })
    for (const code of Object.keys(errorTable)) this.#errors.inc({ code }, 0)
  }

  received(frame: { readonly bytes: number }): void {
    this.#moved.in.bytes += frame.bytes
    this.#moved.in.frames += 1
  }

  sent(frame: { readonly bytes: number }): void {
    this.#moved.out.bytes += frame.bytes
    this.#moved.out.frames += 1
  }

  committed(partition: { readonly uncompressedBytes: number }): void {
    this.#uncompressedBytes.inc(partition.uncompressedBytes)
  }

  failed(error: ShuffleError): void {
    this.#errors.inc({ code: error.code })
  }

  diskRead(bytes: number): void {
    this.#diskReadBytes.inc(bytes)
  }

  /** The gauges, from `figures` at each scrape. Once. */
  observe(figures: () => WorkerFigures): void {
    const gauge = (name: string, help: string, value: (figures: WorkerFigures) => number) => {
      declareGauge(this.registry, { name, help }, () => value(figures()))
    }
    const labelled = (
      facts: { readonly name: string; readonly help: string; readonly label: string },
      values: (figures: WorkerFigures) => Values,
    ) => {
      declareLabelledGauge(this.registry, facts, () => values(figures()))
    }
    declareMemoryGauges(labelled)
    declareChannelGauges(gauge, labelled)
    declareStateGauges(labelled)
    gauge(
      'sluice_worker_event_loop_lag_seconds',
      'How late a regular timer was at worst in the last one to two minutes.',
      (now) => now.eventLoopLagMs / 1000,
    )
    gauge(
      'sluice_worker_timers',
      'Timers of the process that are set: of its deadlines, intervals and pauses.',
      () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length,
    )
    gauge('sluice_worker_waiters', 'Waits in the register of waiters.', (now) => now.waiters)
    gauge(
      'sluice_worker_draining',
      '1 while the worker takes no new writes: it is stopping, or was told to drain.',
      (now) => (now.isDraining ? 1 : 0),
    )
    gauge('sluice_worker_stopping', '1 while the process of the worker is stopping.', (now) =>
      now.isStopping ? 1 : 0,
    )
    labelled(
      {
        name: 'sluice_worker_service',
        help: 'What people want of the worker: 1 for serving, excluded or draining, 0 for the others.',
        label: 'state',
      },
      (now) =>
        Object.fromEntries(
          serviceStates.map((state) => [state, state === now.serviceState ? 1 : 0]),
        ),
    )
    gauge('sluice_worker_resident_memory_bytes', 'Resident memory of the process.', () =>
      process.memoryUsage.rss(),
    )
  }
}

function declareMoved(
  registry: Registry,
  facts: { readonly name: string; readonly help: string },
  values: () => { readonly in: number; readonly out: number },
): void {
  const made: Counter<'direction'> = new Counter({
    ...facts,
    labelNames: ['direction'] as const,
    registers: [registry],
    collect: () => {
      const { in: received, out: sent } = values()
      made.reset()
      made.inc({ direction: 'in' }, received)
      made.inc({ direction: 'out' }, sent)
    },
  })
}

type DeclareGauge = (name: string, help: string, value: (figures: WorkerFigures) => number) => void
type DeclareLabelled = (
  facts: { readonly name: string; readonly help: string; readonly label: string },
  values: (figures: WorkerFigures) => Values,
) => void

function declareMemoryGauges(labelled: DeclareLabelled): void {
  labelled(
    {
      name: 'sluice_worker_memory_used_bytes',
      help: 'Memory of the ledger in use, by purpose.',
      label: 'purpose',
    },
    (now) => now.memoryBytes,
  )
  labelled(
    {
      name: 'sluice_worker_memory_waiters',
      help: 'Requests that wait for memory, by purpose; also open regions, read channels and disks that lack it.',
      label: 'purpose',
    },
    (now) => now.memoryWaiters,
  )
}

function declareChannelGauges(gauge: DeclareGauge, labelled: DeclareLabelled): void {
  gauge(
    'sluice_worker_heap_used_bytes',
    "Memory of the process's own objects, garbage not yet collected included; not the buffers.",
    () => process.memoryUsage().heapUsed,
  )
  gauge('sluice_worker_connections', 'Open connections of the data port.', (now) => now.connections)
  gauge(
    'sluice_worker_connection_queued_bytes',
    'Bytes sent and not yet taken by the system, over all connections.',
    (now) => now.queuedBytes,
  )
  labelled(
    { name: 'sluice_worker_channels', help: 'Open channels, by kind.', label: 'kind' },
    (now) => now.channels,
  )
  labelled(
    {
      name: 'sluice_worker_credit_outstanding',
      help: 'Credits granted and not yet used, by kind: to producers, or by consumers.',
      label: 'kind',
    },
    (now) => now.creditOutstanding,
  )
  labelled(
    {
      name: 'sluice_worker_buffers_held',
      help: 'Buffers in the hands of channels, by kind.',
      label: 'kind',
    },
    (now) => now.heldBuffers,
  )
  gauge(
    'sluice_worker_buffers_ahead_of_credit',
    'Buffers filled for consumers beyond the credit they have granted.',
    (now) => now.aheadBuffers,
  )
  gauge(
    'sluice_worker_regions_waiting',
    'Open regions that wait for their first credit.',
    (now) => now.waitingRegions,
  )
  gauge(
    'sluice_worker_partitions_listed',
    'Partitions in the lists of read channels, neither finished nor failed.',
    (now) => now.listedPartitions,
  )
}

function declareStateGauges(labelled: DeclareLabelled): void {
  labelled(
    {
      name: 'sluice_worker_write_state_seconds',
      help: 'Time of all write channels so far, by what they were waiting for.',
      label: 'state',
    },
    (now) => inSeconds(now.writeStateMs),
  )
  labelled(
    {
      name: 'sluice_worker_read_state_seconds',
      help: 'Time of all read channels so far, by what they were waiting for.',
      label: 'state',
    },
    (now) => inSeconds(now.readStateMs),
  )
}

function inSeconds(sums: Values): Values {
  return Object.fromEntries(Object.entries(sums).map(([state, ms]) => [state, ms / 1000]))
}

function declareGauge(
  registry: Registry,
  facts: { readonly name: string; readonly help: string },
  value: () => number,
): void {
  const made: Gauge = new Gauge({
    ...facts,
    registers: [registry],
    collect: () => {
      made.set(value())
    },
  })
}

function declareLabelledGauge(
  registry: Registry,
  facts: { readonly name: string; readonly help: string; readonly label: string },
  values: () => Values,
): void {
  const { name, help, label } = facts
  const made: Gauge = new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect: () => {
      for (const [key, value] of Object.entries(values())) made.set({ [label]: key }, value)
    },
  })
}

/** `of` for each purpose. */
export function byPurpose(of: (purpose: MemoryPurpose) => number): Record<MemoryPurpose, number> {
  return Object.fromEntries(memoryPurposes.map((purpose) => [purpose, of(purpose)])) as Record<
    MemoryPurpose,
    number
  >
}
