// What the manager knows of its cluster, wired: registries, ledger, lists, liveness, allocation. The
// HTTP routes speak to this alone. Owned by the manager.

import type { Clock } from '../../client/common/clock.ts'
import type { ClusterId, JobId, WorkerId } from '../../client/common/ids.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { Random } from '../../client/common/random.ts'
import type { PlacementName } from '../placement/placement.ts'
import { Allocator } from './allocator.ts'
import type { ClusterOptions } from './cluster-options.ts'
import { DataSetDescriptions } from './data-set-description.ts'
import { EventRing } from './event-ring.ts'
import { JobLists } from './job-lists.ts'
import { JobNews } from './job-news.ts'
import { JobRegistry, type JobRecord } from './job-registry.ts'
import { Liveness } from './liveness.ts'
import { LongPolls } from './long-polls.ts'
import { PartitionLedger } from './partition-ledger.ts'
import { Settling } from './settling.ts'
import { WorkerLists } from './worker-lists.ts'
import { WorkerRegistry, type WorkerRecord } from './worker-registry.ts'
import { WorkerService } from './worker-service.ts'

/** How far ahead of this machine's clock that of another manager may have been. */
const epochAheadMaxMs = 24 * 3600 * 1000

export interface ClusterSettings {
  readonly clock: Clock
  readonly random: Random
  readonly clusterId: ClusterId
  readonly managerEpoch: number
  readonly options: ClusterOptions
  readonly placement: PlacementName
  /** After each look at who is silent, with how late the look was. */
  readonly onLook: (lateMs: number) => void
}

export class Cluster {
  readonly clock: Clock
  readonly clusterId: ClusterId
  readonly managerEpoch: number
  readonly options: ClusterOptions
  readonly events: EventRing
  readonly jobs: JobRegistry
  readonly workers: WorkerRegistry
  readonly ledger: PartitionLedger
  readonly workerLists: WorkerLists
  readonly workerService: WorkerService
  readonly jobLists: JobLists
  readonly jobNews: JobNews
  readonly allocator: Allocator
  readonly descriptions: DataSetDescriptions
  readonly settling: Settling
  readonly polls: LongPolls
  readonly #liveness: Liveness
  #isClosed = false
  /** Of a manager that a caller has seen; while it is fresh, that one is to be obeyed. */
  #higher: { readonly epoch: number; readonly heardMs: number } | undefined

  constructor(settings: ClusterSettings) {
    const { clock, options, managerEpoch } = settings
    this.clock = clock
    this.clusterId = settings.clusterId
    this.managerEpoch = managerEpoch
    this.options = options
    this.polls = new LongPolls(clock)
    this.events = new EventRing({ clock, capacity: options.eventsMax })
    this.jobs = new JobRegistry(options)
    this.workers = new WorkerRegistry(options)
    const wakeWorker = (worker: WorkerRecord) => {
      this.polls.wake(workerPoll(worker.workerId))
    }
    this.ledger = new PartitionLedger({
      managerEpoch,
      jobs: this.jobs,
      workers: this.workers,
      events: this.events,
      wakeJob: (job) => {
        if (job.clientId !== undefined) this.polls.wake(jobPoll(job.clientId))
      },
      wakeWorker,
    })
    const parts = {
      clock,
      options,
      random: settings.random,
      managerEpoch,
      placement: settings.placement,
      jobs: this.jobs,
      workers: this.workers,
      ledger: this.ledger,
      events: this.events,
    }
    this.jobLists = new JobLists(parts)
    this.jobNews = new JobNews({ ...parts, lists: this.jobLists })
    this.workerLists = new WorkerLists({
      ...parts,
      addJob: (jobId) => this.jobLists.add(jobId, clock.nowMs()),
    })
    this.workerService = new WorkerService({
      events: this.events,
      workerLists: this.workerLists,
      wakeWorker,
    })
    this.allocator = new Allocator(parts)
    this.descriptions = new DataSetDescriptions(parts)
    this.settling = new Settling(parts)
    this.#liveness = new Liveness({
      ...parts,
      workerLists: this.workerLists,
      jobLists: this.jobLists,
      onLook: settings.onLook,
    })
  }

  start(): void {
    this.events.add({ type: 'manager-started', managerEpoch: this.managerEpoch })
    this.#liveness.start()
  }

  close(): void {
    this.#isClosed = true
    this.#liveness.stop()
    this.polls.close()
  }

  /**
   * A caller has seen a manager of this epoch; of a higher one: that one is to be obeyed, not this, for
   * as long as callers say so. One that no manager can have made (they begin at the wall clock) is
   * refused and changes nothing: INVALID_ARGUMENT.
   */
  noteEpoch(epoch: number): void {
    if (epoch <= this.managerEpoch) return
    const latest = Math.max(this.clock.wallMs(), this.managerEpoch) + epochAheadMaxMs
    if (epoch > latest) {
      throw new ShuffleError(
        'INVALID_ARGUMENT',
        `the manager epoch ${String(epoch)} of the call is of a day in the future, this manager has ${String(this.managerEpoch)}: no manager has made it, or one whose clock was wrong; restart the caller, and compare the clocks`,
        { fields: { epoch, managerEpoch: this.managerEpoch } },
      )
    }
    if (this.#supersededBy === undefined) {
      this.events.add({ type: 'manager-superseded', highestEpoch: epoch })
    }
    const known = this.#higher?.epoch ?? 0
    this.#higher = { epoch: Math.max(known, epoch), heardMs: this.clock.nowMs() }
  }

  /** Workers and job masters are heard in every heartbeat: silence means that nobody knows it any more. */
  get #supersededBy(): number | undefined {
    const higher = this.#higher
    if (higher === undefined) return undefined
    const isFresh = this.clock.nowMs() - higher.heardMs < this.options.workerSuspectMs
    return isFresh ? higher.epoch : undefined
  }

  /** Why nothing is allocated; undefined when it is. */
  get unreadyReason(): string | undefined {
    if (this.#isClosed) return 'it is stopping'
    const higher = this.#supersededBy
    if (higher !== undefined) {
      return `callers have seen a manager with the higher epoch ${String(higher)}; stop one of the two`
    }
    if (this.settling.isSettled) return undefined
    return `waits up to ${String(Math.ceil(this.settling.remainingMs))} ms more for workers to come back`
  }

  /** Throws NO_MANAGER once the manager stops: whoever polls would else be answered, and poll again. */
  checkOpen(): void {
    if (this.#isClosed) throw new ShuffleError('NO_MANAGER', 'the shuffle manager is stopping')
  }

  /** Throws NO_MANAGER while the manager is not ready to change anything. */
  checkReady(): void {
    const reason = this.unreadyReason
    if (reason === undefined) return
    throw new ShuffleError('NO_MANAGER', `the shuffle manager does not allocate yet: ${reason}`)
  }

  /** Throws JOB_UNKNOWN. */
  job(jobId: JobId): JobRecord {
    const job = this.jobs.get(jobId)
    if (job !== undefined) return job
    throw new ShuffleError('JOB_UNKNOWN', `no job ${jobId} is known to this manager`, {
      fields: { jobId },
    })
  }

  worker(workerId: WorkerId): WorkerRecord | undefined {
    return this.workers.get(workerId)
  }
}

/** Names of long polls. */
export function jobPoll(clientId: string): string {
  return `client ${clientId}`
}

export function workerPoll(workerId: string): string {
  return `worker ${workerId}`
}
