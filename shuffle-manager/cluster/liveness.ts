// Who is silent for too long. Judged by the local monotonic time of receipt; a manager that finds its
// own timer late by more than a heartbeat was itself away, and restarts its judgement of everyone.
// Owned by the manager.

import type { Clock, Timer } from '../../client/common/clock.ts'
import type { ClusterOptions } from './cluster-options.ts'
import type { EventRing } from './event-ring.ts'
import type { JobLists } from './job-lists.ts'
import type { JobRecord, JobRegistry } from './job-registry.ts'
import type { PartitionLedger } from './partition-ledger.ts'
import { rowsOf } from './job-lists.ts'
import type { WorkerLists } from './worker-lists.ts'
import type { WorkerRecord, WorkerRegistry } from './worker-registry.ts'

/** Looks per heartbeat interval: a silence is noticed late by a fifth of a heartbeat at most. */
const looksPerHeartbeat = 5

/** Heartbeats between two sweeps: releases that no worker has confirmed are told again, and so on. */
const heartbeatsPerSweep = 12

export class Liveness {
  readonly #clock: Clock
  readonly #options: ClusterOptions
  readonly #jobs: JobRegistry
  readonly #workers: WorkerRegistry
  readonly #ledger: PartitionLedger
  readonly #workerLists: WorkerLists
  readonly #jobLists: JobLists
  readonly #events: EventRing
  readonly #onLook: (lateMs: number) => void
  #timer: Timer | undefined
  #lookedMs = 0
  #sweptMs = 0
  /** Nobody is judged for a silence before this time. */
  #judgesFromMs = 0

  constructor(parts: {
    readonly clock: Clock
    readonly options: ClusterOptions
    readonly jobs: JobRegistry
    readonly workers: WorkerRegistry
    readonly ledger: PartitionLedger
    readonly workerLists: WorkerLists
    readonly jobLists: JobLists
    readonly events: EventRing
    /** After each look, with how late it was: for the metrics. */
    readonly onLook: (lateMs: number) => void
  }) {
    this.#clock = parts.clock
    this.#options = parts.options
    this.#jobs = parts.jobs
    this.#workers = parts.workers
    this.#ledger = parts.ledger
    this.#workerLists = parts.workerLists
    this.#jobLists = parts.jobLists
    this.#events = parts.events
    this.#onLook = parts.onLook
  }

  start(): void {
    this.#lookedMs = this.#clock.nowMs()
    this.#sweptMs = this.#lookedMs
    this.#judgesFromMs = this.#lookedMs + this.#options.graceMs
    this.#arm()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  get #intervalMs(): number {
    return this.#options.heartbeatIntervalMs / looksPerHeartbeat
  }

  get #sweepIntervalMs(): number {
    return this.#options.heartbeatIntervalMs * heartbeatsPerSweep
  }

  #arm(): void {
    this.#timer = this.#clock.setTimer(this.#intervalMs, () => {
      this.#look()
      this.#arm()
    })
  }

  #look(): void {
    const nowMs = this.#clock.nowMs()
    const lateMs = nowMs - this.#lookedMs - this.#intervalMs
    this.#lookedMs = nowMs
    if (lateMs > this.#options.heartbeatIntervalMs) this.#restart(nowMs, lateMs)
    if (nowMs >= this.#judgesFromMs) {
      for (const worker of this.#workers.all()) this.#judgeWorker(worker, nowMs)
      for (const job of [...this.#jobs.all()]) this.#judgeJob(job, nowMs)
    }
    if (nowMs - this.#sweptMs >= this.#sweepIntervalMs) this.#sweep(nowMs)
    this.#onLook(Math.max(0, lateMs))
  }

  /** What we did not hear while we were away is not their silence. */
  #restart(nowMs: number, lateMs: number): void {
    this.#events.add({ type: 'manager-late', lateMs: Math.round(lateMs) })
    this.#judgesFromMs = Math.max(this.#judgesFromMs, nowMs + this.#options.workerSuspectMs)
    // Who was heard since has not been silent: nobody is heard of in the future.
    for (const worker of this.#workers.all()) {
      worker.heardMs = Math.min(nowMs, worker.heardMs + lateMs)
    }
    for (const job of this.#jobs.all()) job.heardMs = Math.min(nowMs, job.heardMs + lateMs)
  }

  #judgeWorker(worker: WorkerRecord, nowMs: number): void {
    const silentMs = nowMs - worker.heardMs
    if (worker.state === 'lost') {
      // Taken away for good: nobody need hear of a loss that costs nothing.
      const isPlanned = worker.wantedService.state !== 'serving'
      const { workerForgetMs, workerRecoveryMs } = this.#options
      if (silentMs >= (isPlanned ? workerRecoveryMs : workerForgetMs))
        this.#forget(worker, silentMs)
      return
    }
    if (silentMs >= this.#options.workerRecoveryMs) {
      this.#workerLists.workerLost(worker, 'the worker is silent')
      return
    }
    if (worker.state !== 'alive' || silentMs < this.#options.workerSuspectMs) return
    worker.state = 'suspect'
    const { workerId } = worker
    this.#events.add({ type: 'worker-silent', workerId, silentMs: Math.round(silentMs) })
  }

  /** Unless a job still has something of it in its list. */
  #forget(worker: WorkerRecord, silentMs: number): void {
    const { workerId, number } = worker
    for (const job of this.#jobs.all()) {
      for (const table of job.tables.values()) if (table.countsByWorker.has(number)) return
    }
    this.#workers.forget(worker)
    this.#events.add({ type: 'worker-forgotten', workerId, silentMs: Math.round(silentMs) })
  }

  #judgeJob(job: JobRecord, nowMs: number): void {
    const silentMs = nowMs - job.heardMs
    if (job.state === 'ending' || silentMs < job.keepMs) return
    const { jobId } = job
    this.#events.add({ type: 'job-expired', jobId, silentMs: Math.round(silentMs) })
    this.#jobLists.end(job)
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs
    for (const job of [...this.#jobs.all()]) {
      if (job.counts.releasing === 0 && job.counts.allocated === 0) continue
      for (const at of rowsOf(job)) {
        this.#ledger.repeatRelease(at)
        this.#ledger.age(at)
      }
    }
  }
}
