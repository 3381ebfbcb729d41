// Metrics of the worker's memory, read from the ledger at each scrape. Labels: the four purposes.

import { Gauge, type Registry } from 'prom-client'
import { memoryPurposes, type MemoryPurpose } from './memory-floors.ts'
import type { MemoryLedger } from './memory-ledger.ts'

export function declareMemoryMetrics(registry: Registry, ledger: MemoryLedger): void {
  const registers = [registry]
  const gauge = (name: string, help: string, valueOf: (purpose: MemoryPurpose) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['purpose'] as const,
      registers,
      collect() {
        for (const purpose of memoryPurposes) this.set({ purpose }, valueOf(purpose))
      },
    })
  gauge('sluice_worker_memory_used_bytes', 'Memory in use by purpose.', (purpose) =>
    ledger.usedBytes(purpose),
  )
  gauge('sluice_worker_memory_part_bytes', 'Most memory that the purpose may use.', (purpose) =>
    ledger.partBytes(purpose),
  )
  gauge('sluice_worker_memory_waiters', 'Requests that wait for memory.', (purpose) =>
    ledger.waiterCount(purpose),
  )
  new Gauge({
    name: 'sluice_worker_memory_slab_bytes',
    help: 'Memory really allocated for buffers; given back when quiet.',
    registers,
    collect() {
      this.set(ledger.slabBytes)
    },
  })
}
