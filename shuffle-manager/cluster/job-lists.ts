// What job masters say: registration, the list of what should exist in pages, its changes, releases.
// A job master's list is the truth about what should exist. Owned by the manager.

import { ShuffleError } from '../../client/common/errors.ts'
import type { ClientId, DataSetId, JobId, WorkerId } from '../../client/common/ids.ts'
import type { managerApi } from '../../client/manager/api.ts'
import type { CallInput } from '../../client/manager/route.ts'
import { decodeAttempts, decodeKeys } from '../../client/manager/key-columns.ts'
import type { KeyGroup, ListGroup } from '../../client/manager/schemas.ts'
import type { ClusterOptions } from './cluster-options.ts'
import type { EventRing } from './event-ring.ts'
import type { JobRecord, JobRegistry } from './job-registry.ts'
import type { PartitionLedger, TableRow } from './partition-ledger.ts'
import type { WorkerRegistry } from './worker-registry.ts'

type Registration = CallInput<typeof managerApi.registerJob>['body']
type Report = CallInput<typeof managerApi.reportPartitions>['body']
type Release = CallInput<typeof managerApi.releasePartitions>['body']

export class JobLists {
  readonly #options: ClusterOptions
  readonly #managerEpoch: number
  readonly #jobs: JobRegistry
  readonly #workers: WorkerRegistry
  readonly #ledger: PartitionLedger
  readonly #events: EventRing

  constructor(parts: {
    readonly options: ClusterOptions
    readonly managerEpoch: number
    readonly jobs: JobRegistry
    readonly workers: WorkerRegistry
    readonly ledger: PartitionLedger
    readonly events: EventRing
  }) {
    this.#options = parts.options
    this.#managerEpoch = parts.managerEpoch
    this.#jobs = parts.jobs
    this.#workers = parts.workers
    this.#ledger = parts.ledger
    this.#events = parts.events
  }

  /** Answers the epoch of the job. Throws JOB_ID_IN_USE, SUPERSEDED or LIMIT_EXCEEDED. */
  register(
    jobId: JobId,
    registration: Registration,
    now: { readonly nowMs: number; readonly wallMs: number },
  ): number {
    const job = this.#jobs.get(jobId) ?? this.#begin(jobId, now.nowMs)
    const clientId = registration.clientId as ClientId
    const ownEpoch = this.#epochFor(job, registration)
    const jobEpoch = ownEpoch ?? this.#nextEpoch(job, registration, now)
    if (jobEpoch !== job.jobEpoch) job.isEpochGivenHere = ownEpoch === undefined
    const isNewHolder = job.clientId !== clientId || job.jobEpoch !== jobEpoch
    if (isNewHolder) this.#takeOver(job, clientId)
    job.clientId = clientId
    job.tenant = registration.tenant ?? job.tenant
    job.jobEpoch = jobEpoch
    job.highestEpoch = Math.max(job.highestEpoch, jobEpoch)
    job.state = 'registered'
    job.heardMs = now.nowMs
    job.keepMs = this.#options.jobTimeoutMs
    return jobEpoch
  }

  /** A job that nobody has registered here. */
  add(jobId: JobId, nowMs: number): JobRecord {
    return this.#jobs.add({ jobId, heardMs: nowMs, keepMs: this.#options.jobTimeoutMs })
  }

  /** The job, when the caller holds it. Throws JOB_UNKNOWN or SUPERSEDED. */
  held(jobId: JobId, jobEpoch: number): JobRecord {
    const job = this.#jobs.get(jobId)
    const isKnown = job !== undefined && job.clientId !== undefined && job.state !== 'ending'
    if (!isKnown || jobEpoch > job.jobEpoch) {
      throw new ShuffleError(
        'JOB_UNKNOWN',
        `job ${jobId} is not registered with epoch ${String(jobEpoch)}; register it again`,
        { fields: { jobId } },
      )
    }
    if (jobEpoch < job.jobEpoch) {
      throw new ShuffleError('SUPERSEDED', `another client took job ${jobId} over`, {
        fields: { jobId, jobEpoch, presentEpoch: job.jobEpoch },
      })
    }
    return job
  }

  /**
   * Whether a client with this epoch may end the job: its holder, and while nobody has registered here
   * all but those that were followed by another. Throws JOB_UNKNOWN or SUPERSEDED.
   */
  checkMayEnd(job: JobRecord, jobEpoch: number): void {
    checkNotSuperseded(job, jobEpoch)
    if (job.clientId !== undefined) this.held(job.jobId, jobEpoch)
  }

  /** One page of the list; with the last one the job is judged. */
  report(job: JobRecord, page: Report, nowMs: number): void {
    const report = reportUnderWay(job, page)
    report.nextPage = page.page + 1
    for (const address of page.workers) {
      const worker = this.#workers.getOrAdd(address.workerId as WorkerId, nowMs)
      if (worker.host === '') worker.moveTo(address.host, address.port)
    }
    for (const group of page.groups) this.#takeListed(job, group, report.listed, nowMs)
    for (const facts of page.dataSets) {
      const table = job.tables.get(facts.dataSetId as DataSetId)
      if (table !== undefined) this.#ledger.setFacts(table, facts)
    }
    if (page.last) this.#completeReport(job)
  }

  /** Keys of a change of the list: answers to questions, or partitions that came back. */
  claim(job: JobRecord, groups: readonly KeyGroup[]): void {
    const lost: TableRow[] = []
    for (const key of decodeKeys(groups)) {
      const at = this.#ledger.find(job, key)
      if (at === undefined) continue
      this.#ledger.claim(at, false)
      if (this.isMissing(at)) lost.push(at)
    }
    this.#lose(lost)
  }

  /** Releases by key; answers how many that were. */
  releaseKeys(job: JobRecord, groups: readonly KeyGroup[]): number {
    let count = 0
    for (const key of decodeKeys(groups)) {
      const at = this.#ledger.find(job, key)
      if (at === undefined || at.table.state(at.row) === 'releasing') continue
      this.#ledger.release(at)
      count++
    }
    return count
  }

  release(job: JobRecord, body: Release): number {
    let count = this.releaseKeys(job, body.keys ?? [])
    if (body.filter === undefined) return count
    const { belowJobEpoch, allBut } = body.filter
    const kept = new Set<number>()
    for (const key of decodeKeys(allBut ?? [])) {
      const at = this.#ledger.find(job, key)
      if (at !== undefined) kept.add(at.table.ref(at.row))
    }
    for (const at of rowsOf(job)) {
      const { table, row } = at
      const isBelow = table.allocation(row).jobEpoch < (belowJobEpoch ?? Infinity)
      if (!isBelow || kept.has(table.ref(row)) || table.state(row) === 'releasing') continue
      this.#ledger.release(at)
      count++
    }
    return count
  }

  /** Releases everything of the job; its record goes with the last partition. */
  end(job: JobRecord): number {
    job.state = 'ending'
    job.forgetClient()
    job.hasNewLost = false
    const before = job.counts.releasing
    const count = job.partitionCount - before
    for (const at of rowsOf(job)) this.#ledger.release(at)
    if (job.tables.size === 0) this.#jobs.remove(job)
    return count
  }

  /** In the list, was there once, and its worker, here or lost, does not have it. */
  isMissing(at: TableRow): boolean {
    const { table, row } = at
    const state = table.state(row)
    const worker = this.#workers.at(table.worker(row))
    const isGone = worker.state === 'lost' && this.#ledger.isOfOlderEpoch(at)
    return (
      (state === 'committed' || state === 'writing' || isGone) &&
      table.has(row, 'claimed') &&
      !table.has(row, 'held') &&
      worker.isDecided
    )
  }

  #begin(jobId: JobId, nowMs: number): JobRecord {
    this.#jobs.checkRoom(jobId)
    return this.add(jobId, nowMs)
  }

  /** The epoch that the client has, if it has one that still counts. */
  #epochFor(job: JobRecord, { clientId, jobEpoch }: Registration): number | undefined {
    const isHolder = job.clientId === clientId
    if (jobEpoch !== undefined) {
      checkNotSuperseded(job, jobEpoch)
      if (isHolder) return jobEpoch
      // Given by an earlier manager, whose clock was ahead: whoever got an epoch here came later.
      if (job.isEpochGivenHere && jobEpoch > job.jobEpoch) throw supersededBy(job, jobEpoch)
      if (jobEpoch > job.jobEpoch) return jobEpoch
    }
    return isHolder && job.state === 'registered' ? job.jobEpoch : undefined
  }

  #nextEpoch(
    job: JobRecord,
    { takeOver }: Registration,
    now: { readonly nowMs: number; readonly wallMs: number },
  ): number {
    if (takeOver !== true && this.#isHeldByLiving(job, now.nowMs)) {
      throw new ShuffleError(
        'JOB_ID_IN_USE',
        `job ${job.jobId} is held by the living client ${job.clientId ?? ''}; choose another job id or take it over`,
        { fields: { jobId: job.jobId, clientId: job.clientId } },
      )
    }
    return Math.max(job.highestEpoch + 1, now.wallMs)
  }

  /** Its client was heard of lately, and has not detached. */
  #isHeldByLiving(job: JobRecord, nowMs: number): boolean {
    const isHeld = job.clientId !== undefined && job.state === 'registered'
    return isHeld && nowMs - job.heardMs < this.#options.workerSuspectMs
  }

  #takeOver(job: JobRecord, clientId: ClientId): void {
    const { jobId } = job
    const oldClientId = job.clientId
    if (oldClientId === undefined || oldClientId === clientId) {
      this.#events.add({ type: 'job-registered', jobId, clientId })
    } else {
      this.#events.add({ type: 'job-took-over', jobId, clientId, oldClientId })
    }
    job.forgetClient()
  }

  #takeListed(job: JobRecord, group: ListGroup, listed: Set<number>, nowMs: number): void {
    const worker = this.#workers.getOrAdd(group.workerId as WorkerId, nowMs)
    const dataSetId = group.dataSetId as DataSetId
    decodeAttempts(group, [group.sequences], (partitionIndex, attemptId, position) => {
      const key = { dataSetId, partitionIndex, attemptId }
      const known = this.#ledger.find(job, key)
      const { managerEpoch, jobEpoch, isCommitted } = group
      const allocation = { managerEpoch, jobEpoch, sequence: group.sequences[position] ?? 0 }
      // What this manager allocated it has known: it went since, with its job for instance.
      const isGone = known === undefined && managerEpoch === this.#managerEpoch
      const state = isGone ? 'releasing' : isCommitted ? 'committed' : 'allocated'
      const at =
        known ?? this.#ledger.insert(job, key, { worker, state, allocation, isClaimed: true })
      listed.add(at.table.ref(at.row))
      if (at.table.state(at.row) !== 'releasing') this.#ledger.claim(at, isCommitted)
      if (isCommitted) this.#ledger.expectCommitted(at)
    })
  }

  #completeReport(job: JobRecord): void {
    const listed = job.report?.listed
    job.report = undefined
    if (listed === undefined) return
    job.isListed = true
    job.sequence = 0
    const lost: TableRow[] = []
    for (const at of rowsOf(job)) {
      const { table, row } = at
      const state = table.state(row)
      if (!listed.has(table.ref(row))) this.#ledger.ask(at)
      else if (state === 'releasing') this.#ledger.loseReleased(at)
      else if (state === 'lost') this.#ledger.tellLoss(at)
      else if (this.isMissing(at)) lost.push(at)
    }
    this.#lose(lost)
  }

  #lose(rows: readonly TableRow[]): void {
    const byWorker = new Map<number, TableRow[]>()
    for (const at of rows) {
      const worker = at.table.worker(at.row)
      const missing = byWorker.get(worker)
      if (missing === undefined) byWorker.set(worker, [at])
      else missing.push(at)
    }
    for (const [worker, missing] of byWorker) {
      const record = this.#workers.at(worker)
      const cause =
        record.state === 'lost' ? 'the worker is lost' : 'the worker came back without it'
      this.#ledger.lose(missing, record, { cause, detector: 'lists' })
    }
  }
}

/** Throws SUPERSEDED when a later client than one with this epoch is known. */
function checkNotSuperseded(job: JobRecord, jobEpoch: number): void {
  if (jobEpoch < job.leastEpoch) throw supersededBy(job, jobEpoch)
}

function supersededBy({ jobId, leastEpoch }: JobRecord, jobEpoch: number): ShuffleError {
  return new ShuffleError('SUPERSEDED', `another client took job ${jobId} over`, {
    fields: { jobId, jobEpoch, leastEpoch },
  })
}

/** Throws RESYNC when the page is neither the next one nor the last one again. */
function reportUnderWay(job: JobRecord, page: Report): NonNullable<JobRecord['report']> {
  if (page.page === 0) job.report = { name: page.report, nextPage: 0, listed: new Set() }
  const { report } = job
  const isNext = page.page === report?.nextPage || page.page === (report?.nextPage ?? 0) - 1
  if (report?.name === page.report && isNext) return report
  throw new ShuffleError(
    'RESYNC',
    `page ${String(page.page)} of the list of job ${job.jobId} is not the next one; begin again`,
    { fields: { jobId: job.jobId } },
  )
}

/** All rows; the one at hand may be removed, and the job's tables with it. */
export function* rowsOf(job: JobRecord): Generator<TableRow> {
  for (const table of [...job.tables.values()]) {
    for (const row of table.rows()) yield { table, row }
  }
}
