import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../client/common/errors.ts'
import { byPurpose, type WorkerFigures, WorkerMetrics } from '../../shuffle-worker/metrics.ts'

const figures: WorkerFigures = {
  memoryBytes: byPurpose((purpose) => purpose.length),
  memoryWaiters: byPurpose(() => 0),
  connections: 3,
  queuedBytes: 4,
  channels: { write: 5, read: 6 },
  creditOutstanding: { write: 7, read: 8 },
  heldBuffers: { write: 9, read: 10 },
  aheadBuffers: 11,
  waitingRegions: 12,
  listedPartitions: 13,
  waiters: 14,
  eventLoopLagMs: 1500,
  isDraining: true,
  isStopping: false,
  serviceState: 'excluded',
  writeStateMs: { disk: 2000 },
  readStateMs: { credit: 3000 },
}

describe('worker metrics', () => {
  it('count frames, bytes and errors, and show every direction and code from the start', async () => {
    const registry = new Registry()
    const metrics = new WorkerMetrics(registry)
    expect(await registry.metrics()).toContain('sluice_worker_errors_total{code="NO_SPACE"} 0')
    metrics.received({ bytes: 10 })
    metrics.sent({ bytes: 20 })
    metrics.sent({ bytes: 20 })
    metrics.failed(new ShuffleError('NO_SPACE', 'full'))
    metrics.diskRead(30)
    const text = await registry.metrics()
    expect(text).toContain('sluice_worker_data_bytes_total{direction="in"} 10')
    expect(text).toContain('sluice_worker_data_frames_total{direction="out"} 2')
    expect(text).toContain('sluice_worker_errors_total{code="NO_SPACE"} 1')
    expect(text).toContain('sluice_worker_sweep_read_bytes_total 30')
  })

  it('ask for the gauges at each scrape, in base units', async () => {
    const registry = new Registry()
    let connections = 3
    new WorkerMetrics(registry).observe(() => ({ ...figures, connections }))
    expect(await registry.metrics()).toContain('sluice_worker_connections 3')
    connections = 4
    const text = await registry.metrics()
    expect(text).toContain('sluice_worker_connections 4')
    expect(text).toContain('sluice_worker_event_loop_lag_seconds 1.5')
    expect(text).toContain('sluice_worker_read_state_seconds{state="credit"} 3')
    expect(text).toContain('sluice_worker_memory_used_bytes{purpose="control"} 7')
    expect(text).toContain('sluice_worker_draining 1')
  })

  it('say in a sentence what each is', async () => {
    const registry = new Registry()
    new WorkerMetrics(registry).observe(() => figures)
    for (const { help } of await registry.getMetricsAsJSON()) expect(help).toMatch(/^\S.*\.$/)
  })
})
