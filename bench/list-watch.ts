// Looks at the worker's lists while channels are read: how many partitions they had at most, and what
// the control part of its memory counted then.

import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchCluster } from './bench-cluster.ts'

const listedName = 'sluice_worker_partitions_listed'
const controlName = 'sluice_worker_memory_used_bytes{purpose="control"}'
/** Each look costs the worker a scrape: some milliseconds where a thousand channels are open. */
const intervalMs = 1000

export class ListWatch {
  readonly #counters: () => Promise<ReadonlyMap<string, number>>
  readonly #watching: Promise<void>
  #isStopped = false
  #listed = 0
  #controlBytes = 0

  constructor(cluster: Pick<BenchCluster, 'counters'>) {
    this.#counters = () => cluster.counters()
    this.#watching = this.#watch()
  }

  async stop(): Promise<Readonly<Record<string, number>>> {
    this.#isStopped = true
    await this.#watching
    const figures = { 'partitions listed at most': this.#listed }
    if (this.#listed === 0) return figures
    return { ...figures, 'control bytes per listed partition': this.#controlBytes / this.#listed }
  }

  async #watch(): Promise<void> {
    while (!this.#isStopped) {
      const counters = await this.#look()
      const listed = counters.get(listedName) ?? 0
      if (listed > this.#listed) {
        this.#listed = listed
        this.#controlBytes = counters.get(controlName) ?? NaN
      }
      await sleep(intervalMs)
    }
  }

  /** A look that a busy worker cut off is left out; that it is gone its readers find out. */
  async #look(): Promise<ReadonlyMap<string, number>> {
    try {
      return await this.#counters()
    } catch {
      return new Map()
    }
  }
}
