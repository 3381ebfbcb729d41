// Whether the manager may allocate yet. After a start the workers come back one by one: a stage must
// not land on the first. Owned by the manager.

import type { Clock } from '../../client/common/clock.ts'
import type { ClusterOptions } from './cluster-options.ts'
import type { JobRegistry } from './job-registry.ts'
import type { WorkerRegistry } from './worker-registry.ts'

export class Settling {
  readonly #clock: Clock
  readonly #options: ClusterOptions
  readonly #jobs: JobRegistry
  readonly #workers: WorkerRegistry
  readonly #startMs: number
  #isSettled = false

  constructor(parts: {
    readonly clock: Clock
    readonly options: ClusterOptions
    readonly jobs: JobRegistry
    readonly workers: WorkerRegistry
  }) {
    this.#clock = parts.clock
    this.#options = parts.options
    this.#jobs = parts.jobs
    this.#workers = parts.workers
    this.#startMs = parts.clock.nowMs()
  }

  get upMs(): number {
    return this.#clock.nowMs() - this.#startMs
  }

  /** Once true it stays so. */
  get isSettled(): boolean {
    this.#isSettled ||= this.upMs >= this.#options.settleMs || this.#isEveryoneBack()
    return this.#isSettled
  }

  get remainingMs(): number {
    return this.isSettled ? 0 : this.#options.settleMs - this.upMs
  }

  #isEveryoneBack(): boolean {
    const registered = this.#workers.all().filter((worker) => worker.isRegistered).length
    if (registered === 0 || registered < this.#options.expectedWorkers) return false
    if (this.#workers.all().some((worker) => worker.state === 'expected')) return false
    const isNamed = [...this.#jobs.all()].some((job) => job.isListed && job.tables.size > 0)
    return isNamed || this.#options.expectedWorkers > 0
  }
}
