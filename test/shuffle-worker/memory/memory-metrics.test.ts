import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import { declareMemoryMetrics } from '../../../shuffle-worker/memory/memory-metrics.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

it('memory metrics follow the ledger at each scrape', async () => {
  const registry = new Registry()
  const ledger = new MemoryLedger({ clock: new VirtualClock() })
  declareMemoryMetrics(registry, ledger)
  ledger.tryAcquire({ purpose: 'read', count: 2 })
  const text = await registry.metrics()
  expect(text).toContain('sluice_worker_memory_used_bytes{purpose="read"} 65536')
  expect(text).toContain('sluice_worker_memory_used_bytes{purpose="write"} 0')
  expect(text).toContain('sluice_worker_memory_slab_bytes 1048576')
})
