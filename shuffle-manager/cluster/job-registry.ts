// The jobs that the manager knows, each with its partition tables. Owned by the manager.

import { assert } from '../../client/common/assert.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { ClientId, DataSetId, JobId } from '../../client/common/ids.ts'
import { FailedPlaces } from './failed-places.ts'
import { PartitionTable, rowStates, type RowRef, type RowState } from './partition-table.ts'

/**
 * - `registered`: a client holds it
 * - `detached`: its client has gone and will come back
 * - `unclaimed`: known from workers alone
 * - `ending`: all of it is being released
 */
export type JobState = 'registered' | 'detached' | 'unclaimed' | 'ending'

export class JobRecord {
  readonly jobId: JobId
  state: JobState = 'unclaimed'
  clientId: ClientId | undefined
  tenant: string | undefined
  jobEpoch = 0
  /** Highest epoch of any allocation of the job; a new client gets a higher one. */
  highestEpoch = 0
  /** This manager gave the epoch, so no client came after the one that has it. */
  isEpochGivenHere = false
  /** Local monotonic time of the last receipt from its client. */
  heardMs: number
  /** After this long a silence it is released. */
  keepMs: number
  /** The client's list is in: of what is not in it something may be lost or released. */
  isListed = false
  /** The report under way: its name and the next page. */
  report: { readonly name: string; nextPage: number; readonly listed: Set<RowRef> } | undefined
  /** Last change of the list that came by heartbeat. */
  sequence = 0
  readonly tables = new Map<DataSetId, PartitionTable>()
  /** Claimed and lost, until the list no longer has them. */
  readonly lost = new Set<RowRef>()
  readonly lossCauses = new Map<RowRef, string>()
  /** Lost ones that no answer has told yet. */
  hasNewLost = false
  /** Not in the list: to be asked about. */
  readonly unclaimed = new Set<RowRef>()
  /** Asked about, not answered yet. */
  question: { readonly number: number; readonly refs: Set<RowRef> } | undefined
  questionNumber = 0
  /** Commits that the job master is to be told. */
  readonly news = new Set<RowRef>()
  toldNews: { readonly number: number; readonly refs: Set<RowRef> } | undefined
  newsNumber = 0
  /** Where round-robin goes on. */
  placementCursor = 0
  readonly failedPlaces = new FailedPlaces()
  /** Kept by the ledger. */
  readonly counts: Record<RowState, number> = countsOfNone()
  committedBytes = 0
  pendingBytes = 0
  readonly timeInStateMs = new Map<string, number>()

  constructor(options: {
    readonly jobId: JobId
    readonly heardMs: number
    readonly keepMs: number
  }) {
    this.jobId = options.jobId
    this.heardMs = options.heardMs
    this.keepMs = options.keepMs
  }

  /** Somebody else speaks for the job from now on: what was said and asked before no longer counts. */
  forgetClient(): void {
    this.clientId = undefined
    this.isListed = false
    this.report = undefined
    this.sequence = 0
    this.unclaimed.clear()
    this.question = undefined
    this.toldNews = undefined
    this.news.clear()
  }

  /**
   * Epochs below this one belong to clients that were followed by another. What an earlier manager gave
   * may be higher where the clock went back; a client that got its epoch here came later all the same.
   */
  get leastEpoch(): number {
    return this.isEpochGivenHere ? this.jobEpoch : this.highestEpoch
  }

  /**
   * A worker has an allocation of this epoch. Of a higher one than that of the client which registered
   * here: a later client was given it by an earlier manager and will be back. The present one may not
   * speak for what it does not know, and the later one has as long as any to come.
   */
  noteStoredEpoch(jobEpoch: number, nowMs: number): void {
    this.highestEpoch = Math.max(this.highestEpoch, jobEpoch)
    if (this.state === 'unclaimed' || this.jobEpoch === 0) return
    if (this.jobEpoch >= this.leastEpoch) return
    this.state = 'unclaimed'
    this.heardMs = nowMs
    this.forgetClient()
  }

  get partitionCount(): number {
    return rowStates.reduce((sum, state) => sum + this.counts[state], 0)
  }

  /** Whether a heartbeat's answer has something that the client was not told yet. */
  get hasSomethingToSay(): boolean {
    return (
      this.hasNewLost ||
      (this.news.size > 0 && this.toldNews === undefined) ||
      (this.isListed && this.question === undefined && this.unclaimed.size > 0)
    )
  }
}

/** States of time-in-state sums of one job; clients choose the names, so they are bounded. */
const timeStatesMax = 64

/** Data sets of all jobs that were ever made: 2^21 table numbers of 2^32 rows are exact. */
const tablesMax = 2 ** 21

export class JobRegistry {
  readonly #jobsMax: number
  readonly #jobs = new Map<JobId, JobRecord>()
  readonly #tables = new Map<number, PartitionTable>()
  /** Of all jobs since the start. */
  readonly timeInStateMs = new Map<string, number>()
  #nextTable = 0

  constructor(options: { readonly jobsMax: number }) {
    this.#jobsMax = options.jobsMax
  }

  get size(): number {
    return this.#jobs.size
  }

  get(jobId: JobId): JobRecord | undefined {
    return this.#jobs.get(jobId)
  }

  all(): IterableIterator<JobRecord> {
    return this.#jobs.values()
  }

  /**
   * Throws LIMIT_EXCEEDED when there are too many for a client to begin one more. What workers hold is
   * there all the same, and must be known to be released: their lists are not measured by it.
   */
  checkRoom(jobId: JobId): void {
    if (this.#jobs.size < this.#jobsMax) return
    throw new ShuffleError(
      'LIMIT_EXCEEDED',
      `the manager holds ${String(this.#jobs.size)} jobs, of ${String(this.#jobsMax)} at most; release some or raise jobs-max`,
      { fields: { jobId } },
    )
  }

  add(options: {
    readonly jobId: JobId
    readonly heardMs: number
    readonly keepMs: number
  }): JobRecord {
    const job = new JobRecord(options)
    this.#jobs.set(options.jobId, job)
    return job
  }

  remove(job: JobRecord): void {
    for (const table of job.tables.values()) this.#tables.delete(table.number)
    this.#jobs.delete(job.jobId)
  }

  tableOf(job: JobRecord, dataSetId: DataSetId): PartitionTable {
    const known = job.tables.get(dataSetId)
    if (known !== undefined) return known
    while (this.#tables.has(this.#nextTable)) this.#nextTable = (this.#nextTable + 1) % tablesMax
    const table = new PartitionTable({ number: this.#nextTable, jobId: job.jobId, dataSetId })
    this.#nextTable = (this.#nextTable + 1) % tablesMax
    this.#tables.set(table.number, table)
    job.tables.set(dataSetId, table)
    return table
  }

  dropTable(job: JobRecord, table: PartitionTable): void {
    job.tables.delete(table.dataSetId)
    this.#tables.delete(table.number)
  }

  /** Table and row; undefined when the row is gone. */
  resolve(ref: RowRef): { readonly table: PartitionTable; readonly row: number } | undefined {
    const table = this.#tables.get(Math.floor(ref / 2 ** 32))
    const row = ref % 2 ** 32
    return table?.isLive(row) === true ? { table, row } : undefined
  }

  /** Adds a client's or worker's sums; names beyond the bound are not kept. */
  addTimeInState(job: JobRecord, sums: Readonly<Record<string, number>>): void {
    addSums(job.timeInStateMs, sums)
    addSums(this.timeInStateMs, sums)
  }

  ownerOf(table: PartitionTable): JobRecord {
    const job = this.#jobs.get(table.jobId)
    assert(job !== undefined, 'a table has a job')
    return job
  }
}

function addSums(to: Map<string, number>, sums: Readonly<Record<string, number>>): void {
  for (const [state, ms] of Object.entries(sums)) {
    const known = to.get(state)
    if (known === undefined && to.size >= timeStatesMax) continue
    to.set(state, (known ?? 0) + ms)
  }
}

function countsOfNone(): Record<RowState, number> {
  return { allocated: 0, writing: 0, committed: 0, lost: 0, releasing: 0 }
}
