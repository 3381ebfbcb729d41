// Every change of a tracked partition goes through here, so that counts, queues and rows agree. The
// states of a row:
//
//   allocated -> writing -> committed -> releasing -> (gone)
//        \          \          \-> lost -> (gone, once the list no longer has it; or committed again)
//         \----------\-----------> releasing -> (gone, once the worker says so or is lost)
//
// Owned by the manager.

import { assert } from '../../client/common/assert.ts'
import type { AllocationId, PartitionKey } from '../../client/common/ids.ts'
import type { DataSetKey } from '../../client/manager/key-columns.ts'
import type { DataSetFacts } from '../../client/manager/schemas.ts'
import type { EventRing } from './event-ring.ts'
import type { JobRecord, JobRegistry } from './job-registry.ts'
import type { PartitionTable, RowRef, RowState } from './partition-table.ts'
import type { WorkerRecord, WorkerRegistry } from './worker-registry.ts'

export interface TableRow {
  readonly table: PartitionTable
  readonly row: number
}

export interface Loss {
  readonly cause: string
  readonly detector: 'worker' | 'liveness' | 'lists'
}

/** Partition indices that one event names. */
const indicesTold = 20

export class PartitionLedger {
  readonly #managerEpoch: number
  readonly #jobs: JobRegistry
  readonly #workers: WorkerRegistry
  readonly #events: EventRing
  /** Called when an answer to this job's client would have something new. */
  readonly #wakeJob: (job: JobRecord) => void
  /** Called when there is something for this worker to do. */
  readonly #wakeWorker: (worker: WorkerRecord) => void

  constructor(options: {
    readonly managerEpoch: number
    readonly jobs: JobRegistry
    readonly workers: WorkerRegistry
    readonly events: EventRing
    readonly wakeJob: (job: JobRecord) => void
    readonly wakeWorker: (worker: WorkerRecord) => void
  }) {
    this.#managerEpoch = options.managerEpoch
    this.#jobs = options.jobs
    this.#workers = options.workers
    this.#events = options.events
    this.#wakeJob = options.wakeJob
    this.#wakeWorker = options.wakeWorker
  }

  /** What the job master says of the data set; later words count, as expected bytes get better. */
  setFacts(table: PartitionTable, facts: DataSetFacts): void {
    const rows = table.facts?.expectedBytes === facts.expectedBytes ? [] : [...table.rows()]
    for (const row of rows) this.#account({ table, row }, -1)
    table.facts = facts
    for (const row of rows) this.#account({ table, row }, 1)
    table.touch()
  }

  find(job: JobRecord, key: DataSetKey): TableRow | undefined {
    const table = job.tables.get(key.dataSetId)
    const row = table?.find(key.partitionIndex, key.attemptId) ?? -1
    return table === undefined || row < 0 ? undefined : { table, row }
  }

  /**
   * Allocated by a manager before this one and not known as opened: it may have been committed while
   * no manager was there to hear of it.
   */
  isOfOlderEpoch({ table, row }: TableRow): boolean {
    const { managerEpoch } = table.allocation(row)
    return table.state(row) === 'allocated' && managerEpoch < this.#managerEpoch
  }

  keyOf(ref: RowRef): PartitionKey | undefined {
    const found = this.#jobs.resolve(ref)
    if (found === undefined) return undefined
    const { table, row } = found
    return {
      jobId: table.jobId,
      dataSetId: table.dataSetId,
      partitionIndex: table.index(row),
      attemptId: table.attemptId(row),
    }
  }

  insert(
    job: JobRecord,
    key: DataSetKey,
    fields: {
      readonly worker: WorkerRecord
      readonly state: RowState
      readonly allocation: AllocationId
      readonly isClaimed: boolean
    },
  ): TableRow {
    const table = this.#jobs.tableOf(job, key.dataSetId)
    const row = table.insert({
      partitionIndex: key.partitionIndex,
      attemptId: key.attemptId,
      worker: fields.worker.number,
      state: fields.state,
      allocation: fields.allocation,
    })
    job.highestEpoch = Math.max(job.highestEpoch, fields.allocation.jobEpoch)
    if (fields.isClaimed) table.setFlag(row, 'claimed', true)
    this.#account({ table, row }, 1)
    return { table, row }
  }

  /** The worker has this partition, in the given state and of the given size. */
  hold(at: TableRow, state: 'writing' | 'committed', bytes: number): void {
    const { table, row } = at
    const job = this.#jobs.ownerOf(table)
    table.setFlag(row, 'held', true)
    if (table.state(row) === 'releasing') {
      this.#tellRelease(at)
      return
    }
    if (table.state(row) === 'lost') this.#forget(job, table.ref(row))
    if (state === 'committed' || table.state(row) !== 'committed') {
      this.#change(at, () => {
        table.setState(row, state)
        table.setBytes(row, bytes)
      })
    }
    if (state === 'committed') {
      job.failedPlaces.forget(table.dataSetId, table.index(row))
      this.#tellCommit(job, at)
    }
    if (!table.has(row, 'claimed')) this.ask(at)
  }

  /** The worker's present registration has not reported it (yet). */
  unhold({ table, row }: TableRow): void {
    table.setFlag(row, 'held', false)
  }

  /** It is in the job master's list; the master knows of its commit if `isCommitTold`. */
  claim(at: TableRow, isCommitTold: boolean): void {
    const { table, row } = at
    const job = this.#jobs.ownerOf(table)
    // An earlier client may have been told; this one says what it knows.
    table.setFlag(row, 'commitTold', isCommitTold)
    job.unclaimed.delete(table.ref(row))
    if (table.has(row, 'doubted')) {
      table.setFlag(row, 'doubted', false)
      table.setFlag(row, 'confirmed', true)
    }
    if (!table.has(row, 'claimed')) {
      table.setFlag(row, 'claimed', true)
      table.touch()
    }
    if (table.state(row) === 'committed') this.#tellCommit(job, at)
    if (table.state(row) === 'lost') this.tellLoss(at)
  }

  /** The job master knows that it was committed: a worker that does not report it has lost it. */
  expectCommitted(at: TableRow): void {
    const state = at.table.state(at.row)
    if (state !== 'allocated' && state !== 'writing') return
    this.#change(at, () => {
      at.table.setState(at.row, 'committed')
    })
  }

  /** It is not in the job master's list: asked about before anything is done. */
  ask(at: TableRow): void {
    const { table, row } = at
    const job = this.#jobs.ownerOf(table)
    if (table.has(row, 'claimed')) {
      table.setFlag(row, 'claimed', false)
      table.touch()
    }
    if (job.state === 'ending') {
      this.release(at)
      return
    }
    if (!job.isListed || table.state(row) === 'releasing') return
    if (job.question?.refs.has(table.ref(row)) === true) return
    job.unclaimed.add(table.ref(row))
    this.#wakeJob(job)
  }

  /**
   * Called now and then. What has been allocated for long and was never opened may be the work of a call
   * that was late: its caller had given up, and released what was not there yet. The master is asked
   * about it, once; until it has answered the row stays as it is.
   */
  age(at: TableRow): void {
    const { table, row } = at
    const job = this.#jobs.ownerOf(table)
    if (table.state(row) !== 'allocated' || !table.has(row, 'claimed') || !job.isListed) return
    if (table.has(row, 'doubted') || table.has(row, 'confirmed')) return
    if (!table.has(row, 'aged')) {
      table.setFlag(row, 'aged', true)
      return
    }
    table.setFlag(row, 'doubted', true)
    job.unclaimed.add(table.ref(row))
    this.#wakeJob(job)
  }

  /** What the master was asked about, and has not answered for. */
  isUnanswered({ table, row }: TableRow): boolean {
    return !table.has(row, 'claimed') || table.has(row, 'doubted')
  }

  /** Nobody wants it any more. Idempotent. */
  release(at: TableRow): void {
    const { table, row } = at
    if (table.state(row) === 'releasing') return
    const worker = this.#workers.at(table.worker(row))
    this.#forget(this.#jobs.ownerOf(table), table.ref(row))
    this.#noteUnfinished(at)
    table.setFlag(row, 'claimed', false)
    const isGone = table.state(row) === 'lost' && !table.has(row, 'held')
    if (isGone || worker.state === 'lost') {
      this.remove(at)
      return
    }
    this.#change(at, () => {
      table.setState(row, 'releasing')
    })
    this.#tellRelease(at)
  }

  /** Data that the job master counts on is gone; several at once make one event a data set. */
  lose(rows: readonly TableRow[], worker: WorkerRecord, loss: Loss): void {
    const byTable = new Map<PartitionTable, number[]>()
    for (const at of rows) {
      const { table, row } = at
      const job = this.#jobs.ownerOf(table)
      const indices = byTable.get(table)
      if (indices === undefined) byTable.set(table, [table.index(row)])
      else indices.push(table.index(row))
      table.setFlag(row, 'held', false)
      this.#noteUnfinished(at)
      this.#change(at, () => {
        table.setState(row, 'lost')
      })
      if (table.has(row, 'claimed')) this.tellLoss(at)
      else if (job.isListed) this.ask(at)
      job.lossCauses.set(table.ref(row), loss.cause)
    }
    for (const [table, indices] of byTable) {
      this.#events.add({
        type: 'partitions-lost',
        jobId: table.jobId,
        dataSetId: table.dataSetId,
        workerId: worker.workerId,
        detector: loss.detector,
        cause: loss.cause,
        count: indices.length,
        partitionIndices: indices.slice(0, indicesTold),
      })
    }
  }

  /** Released by one client of the job, and counted on by the next: it goes, and that is told. */
  loseReleased(at: TableRow): void {
    const { table, row } = at
    const job = this.#jobs.ownerOf(table)
    this.#change(at, () => {
      table.setState(row, 'lost')
    })
    table.setFlag(row, 'claimed', true)
    this.tellLoss(at)
    job.lossCauses.set(table.ref(row), 'it was released')
  }

  /** A newer allocation of the key is at another worker; the copy where it was is a stray. */
  move(at: TableRow, worker: WorkerRecord, allocation: AllocationId): void {
    const { table, row } = at
    const key = this.keyOf(table.ref(row))
    assert(key !== undefined, 'a row that moves exists')
    const old = this.#workers.at(table.worker(row))
    if (old.commands.releases.delete(table.ref(row)) || table.has(row, 'held')) {
      old.commands.releaseStray(key)
      this.#wakeWorker(old)
    }
    this.#change(at, () => {
      table.setWorker(row, worker.number)
      table.setAllocation(row, allocation)
      table.setState(row, 'allocated')
      table.setFlag(row, 'held', false)
    })
  }

  /** Gone for good: nobody has it and nobody wants it. */
  remove(at: TableRow): void {
    const { table, row } = at
    const job = this.#jobs.ownerOf(table)
    const ref = table.ref(row)
    this.#forget(job, ref)
    // The next partition in this row is another one: nothing that is still to be said may mean it.
    job.news.delete(ref)
    job.toldNews?.refs.delete(ref)
    job.report?.listed.delete(ref)
    this.#workers.at(table.worker(row)).commands.releases.delete(ref)
    this.#noteUnfinished(at)
    this.#account(at, -1)
    table.remove(row)
    if (table.rowCount > 0) return
    this.#jobs.dropTable(job, table)
    if (job.state === 'ending' && job.tables.size === 0) this.#jobs.remove(job)
  }

  /** For a worker that took the command in and has not said that it is done. */
  repeatRelease(at: TableRow): void {
    if (at.table.state(at.row) === 'releasing') this.#tellRelease(at)
  }

  #tellRelease({ table, row }: TableRow): void {
    const worker = this.#workers.at(table.worker(row))
    worker.commands.releases.add(table.ref(row))
    if (worker.isRegistered) this.#wakeWorker(worker)
  }

  #tellCommit(job: JobRecord, { table, row }: TableRow): void {
    if (!table.has(row, 'claimed') || table.has(row, 'commitTold')) return
    table.setFlag(row, 'commitTold', true)
    job.news.add(table.ref(row))
    this.#wakeJob(job)
  }

  /** A claimed and lost one is told until the list no longer has it. */
  tellLoss({ table, row }: TableRow): void {
    const job = this.#jobs.ownerOf(table)
    if (!job.isListed) return
    job.lost.add(table.ref(row))
    job.hasNewLost = true
    this.#wakeJob(job)
  }

  #forget(job: JobRecord, ref: RowRef): void {
    job.lost.delete(ref)
    job.lossCauses.delete(ref)
    job.unclaimed.delete(ref)
    job.question?.refs.delete(ref)
  }

  /** It goes before it was committed: its attempt came to nothing there. */
  #noteUnfinished({ table, row }: TableRow): void {
    const state = table.state(row)
    if (state !== 'allocated' && state !== 'writing') return
    const job = this.#jobs.ownerOf(table)
    job.failedPlaces.add(table.dataSetId, table.index(row), table.worker(row))
  }

  #change(at: TableRow, mutate: () => void): void {
    this.#account(at, -1)
    mutate()
    this.#account(at, 1)
    at.table.touch()
  }

  /** Adds to, or takes from, all counts what this row stands for in its present state. */
  #account({ table, row }: TableRow, sign: 1 | -1): void {
    const job = this.#jobs.ownerOf(table)
    const worker = this.#workers.at(table.worker(row))
    const state = table.state(row)
    job.counts[state] += sign
    if (state !== 'lost') worker.partitionCount += sign
    if (state === 'allocated' || state === 'writing') {
      const expected = (table.facts?.expectedBytes ?? 0) * sign
      worker.pendingBytes += expected
      job.pendingBytes += expected
    } else if (state === 'committed') {
      worker.committedBytes += table.bytes(row) * sign
      job.committedBytes += table.bytes(row) * sign
    }
    assert(job.counts[state] >= 0, 'partitions of a state are counted down only as often as up')
  }
}
