// What workers say: registration with the full list in pages, then numbered deltas. A worker's list is
// the truth about what exists; it is judged when its last page is in. Owned by the manager.

import type { AllocationId, DataSetId, JobId } from '../../client/common/ids.ts'
import { compareAllocations } from '../../client/common/ids.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { managerApi } from '../../client/manager/api.ts'
import type { CallInput } from '../../client/manager/route.ts'
import { decodeAttempts, type DataSetKey } from '../../client/manager/key-columns.ts'
import type { DirectoryStatus, ReportGroup, ServiceRecord } from '../../client/manager/schemas.ts'
import type { EventRing } from './event-ring.ts'
import type { JobRecord, JobRegistry } from './job-registry.ts'
import type { PartitionLedger, TableRow } from './partition-ledger.ts'
import type { WorkerRecord } from './worker-registry.ts'

type Registration = CallInput<typeof managerApi.registerWorker>['body']
type Heartbeat = CallInput<typeof managerApi.heartbeatWorker>['body']

export class WorkerLists {
  readonly #jobs: JobRegistry
  readonly #ledger: PartitionLedger
  readonly #events: EventRing
  readonly #addJob: (jobId: JobId) => JobRecord

  constructor(options: {
    readonly jobs: JobRegistry
    readonly ledger: PartitionLedger
    readonly events: EventRing
    /** Makes the record of a job that is known from workers alone. */
    readonly addJob: (jobId: JobId) => JobRecord
  }) {
    this.#jobs = options.jobs
    this.#ledger = options.ledger
    this.#events = options.events
    this.#addJob = options.addJob
  }

  /**
   * One page. One that was taken before changes nothing, however late it comes: what it says may be old.
   * One out of order, or of an earlier registration, is RESYNC: begin anew.
   */
  register(worker: WorkerRecord, page: Registration, nowMs: number): void {
    if (page.workerEpoch < worker.workerEpoch) {
      throw new ShuffleError(
        'SUPERSEDED',
        `worker ${worker.workerId} has registered with a higher epoch: two processes use one identity`,
        { fields: { workerEpoch: page.workerEpoch, highestEpoch: worker.workerEpoch } },
      )
    }
    if (isTaken(worker, page)) return
    if (page.page === 0 && !isLate(worker, page)) this.#begin(worker, page)
    const isNext = page.page === worker.nextPage && worker.state === 'registering'
    if (page.registration !== worker.registration || !isNext) {
      throw new ShuffleError(
        'RESYNC',
        `page ${String(page.page)} of the registration of worker ${worker.workerId} is not the next one; begin again`,
      )
    }
    worker.heardMs = nowMs
    for (const group of page.groups) this.#take(worker, group)
    worker.nextPage = page.page + 1
    if (page.last) this.#complete(worker)
  }

  /** False when the worker has to register again. */
  heartbeat(worker: WorkerRecord, beat: Heartbeat, nowMs: number): boolean {
    const isKnown =
      worker.isRegistered &&
      worker.registration === beat.registration &&
      worker.workerEpoch === beat.workerEpoch
    if (!isKnown) return false
    const isFresh = beat.delta !== undefined && beat.sequence === worker.sequence + 1
    if (!isFresh && beat.sequence > worker.sequence) return false
    const silentMs = nowMs - worker.heardMs
    worker.heardMs = nowMs
    if (isFresh) {
      for (const group of beat.delta ?? []) this.#take(worker, group)
      worker.sequence = beat.sequence
    }
    worker.commands.seen(beat.commandsSeen)
    this.#takeStatus(worker, beat, silentMs)
    return true
  }

  /** Not back with its data within the recovery time, or gone for ever. */
  workerLost(worker: WorkerRecord, cause: string): void {
    worker.state = 'lost'
    worker.commands.reset()
    this.#events.add({ type: 'worker-lost', workerId: worker.workerId, cause })
    const lost: TableRow[] = []
    for (const at of this.#rowsOf(worker)) {
      if (this.#judge(at, worker)) lost.push(at)
    }
    this.#ledger.lose(lost, worker, { cause, detector: 'liveness' })
  }

  #begin(worker: WorkerRecord, page: Registration): void {
    worker.state = 'registering'
    worker.workerEpoch = page.workerEpoch
    worker.registration = page.registration
    worker.registrationNumber = page.number ?? 0
    worker.nextPage = 0
    worker.sequence = 0
    worker.moveTo(page.host, page.port)
    worker.httpPort = page.httpPort
    worker.version = page.version
    worker.isDraining = page.isDraining
    worker.isLeaving = false
    worker.openWrites = 0
    worker.commands.reset()
    this.#takeService(worker, page.service)
    this.#takeDirectories(worker, page.directories)
    for (const at of this.#rowsOf(worker)) this.#ledger.unhold(at)
  }

  #complete(worker: WorkerRecord): void {
    if (worker.isRegistered) return
    worker.state = 'alive'
    const { workerId, workerEpoch } = worker
    this.#events.add({ type: 'worker-joined', workerId, workerEpoch })
    const lost: TableRow[] = []
    for (const at of this.#rowsOf(worker)) {
      if (at.table.has(at.row, 'held')) continue
      if (this.#judge(at, worker)) lost.push(at)
    }
    const cause = 'the worker came back without it'
    this.#ledger.lose(lost, worker, { cause, detector: 'lists' })
  }

  /** Of a row that its worker does not have: true when it is to be told as lost. */
  #judge(at: TableRow, worker: WorkerRecord): boolean {
    const { table, row } = at
    const state = table.state(row)
    if (state === 'releasing') {
      this.#ledger.remove(at)
      return false
    }
    const isGone = worker.state === 'lost' && this.#ledger.isOfOlderEpoch(at)
    const wasOpened = state === 'committed' || state === 'writing' || isGone
    const job = this.#jobs.ownerOf(table)
    return wasOpened && (table.has(row, 'claimed') || !job.isListed)
  }

  #take(worker: WorkerRecord, group: ReportGroup): void {
    const jobId = group.jobId as JobId
    const dataSetId = group.dataSetId as DataSetId
    const lost: TableRow[] = []
    decodeAttempts(
      group,
      [group.sequences, group.byteCounts],
      (partitionIndex, attemptId, position) => {
        const key = { dataSetId, partitionIndex, attemptId }
        const allocation = {
          managerEpoch: group.managerEpoch,
          jobEpoch: group.jobEpoch,
          sequence: group.sequences[position] ?? 0,
        }
        if (group.state === 'writing' || group.state === 'committed') {
          const bytes = group.byteCounts[position] ?? 0
          this.#takeHeld(worker, jobId, { key, allocation, state: group.state, bytes })
        } else {
          const at = this.#takeGone(worker, jobId, { key, allocation, state: group.state })
          if (at !== undefined) lost.push(at)
        }
      },
    )
    if (lost.length === 0) return
    const cause =
      group.cause ?? (group.state === 'released' ? 'released at the worker' : 'lost at the worker')
    this.#ledger.lose(lost, worker, { cause, detector: 'worker' })
  }

  #takeHeld(
    worker: WorkerRecord,
    jobId: JobId,
    held: {
      readonly key: DataSetKey
      readonly allocation: AllocationId
      readonly state: 'writing' | 'committed'
      readonly bytes: number
    },
  ): void {
    const { key, allocation, state, bytes } = held
    const job = this.#jobs.get(jobId) ?? this.#addJob(jobId)
    job.noteStoredEpoch(allocation.jobEpoch, worker.heardMs)
    const known = this.#ledger.find(job, key)
    const at =
      known ??
      this.#ledger.insert(job, key, { worker, state: 'allocated', allocation, isClaimed: false })
    if (at.table.worker(at.row) !== worker.number) {
      if (compareAllocations(allocation, at.table.allocation(at.row)) <= 0) {
        worker.commands.releaseStray({ jobId, ...key })
        return
      }
      this.#ledger.move(at, worker, allocation)
    }
    this.#ledger.hold(at, state, bytes)
  }

  /** Answers the row that is to be told as lost, if there is one. */
  #takeGone(
    worker: WorkerRecord,
    jobId: JobId,
    gone: {
      readonly key: DataSetKey
      readonly allocation: AllocationId
      readonly state: 'released' | 'lost'
    },
  ): TableRow | undefined {
    const { key, allocation } = gone
    worker.commands.confirm({ jobId, ...key })
    const job = this.#jobs.get(jobId)
    job?.noteStoredEpoch(allocation.jobEpoch, worker.heardMs)
    const at = job && this.#ledger.find(job, key)
    if (job === undefined || at === undefined) {
      if (gone.state === 'released') return undefined
      return this.#insertLost(worker, job ?? this.#addJob(jobId), { key, allocation })
    }
    const { table, row } = at
    const state = table.state(row)
    if (table.worker(row) !== worker.number) return undefined
    if (state === 'lost') {
      this.#ledger.unhold(at)
      return undefined
    }
    const isWanted = table.has(row, 'claimed') || !job.isListed
    if (state !== 'releasing' && isWanted) return at
    this.#ledger.remove(at)
    return undefined
  }

  /** A list that is still to come may count on it; then it must be known that it is lost. */
  #insertLost(
    worker: WorkerRecord,
    job: JobRecord,
    lost: { readonly key: DataSetKey; readonly allocation: AllocationId },
  ): TableRow | undefined {
    if (job.isListed || job.state === 'ending') return undefined
    const { key, allocation } = lost
    const state = 'allocated'
    return this.#ledger.insert(job, key, { worker, state, allocation, isClaimed: false })
  }

  #takeStatus(worker: WorkerRecord, beat: Heartbeat, silentMs: number): void {
    if (beat.directories !== undefined) this.#takeDirectories(worker, beat.directories)
    if (beat.isDraining !== undefined) worker.isDraining = beat.isDraining
    if (beat.openWrites !== undefined) worker.openWrites = beat.openWrites
    this.#takeService(worker, beat.service)
    for (const [jobId, sums] of Object.entries(beat.timeInStateMs ?? {})) {
      const job = this.#jobs.get(jobId as JobId)
      if (job !== undefined) this.#jobs.addTimeInState(job, sums)
    }
    const { workerId } = worker
    if (beat.leaving !== undefined) {
      worker.isLeaving = true
      const isForEver = beat.leaving === 'for-ever'
      this.#events.add({ type: 'worker-leaving', workerId, isForEver })
      if (isForEver) this.workerLost(worker, 'the worker left for ever')
      else worker.state = 'suspect'
      return
    }
    // One that has left says no more: what comes was late.
    if (worker.state !== 'suspect' || worker.isLeaving) return
    worker.state = 'alive'
    this.#events.add({ type: 'worker-back', workerId, silentMs: Math.round(silentMs) })
  }

  #takeService(worker: WorkerRecord, told: ServiceRecord | undefined): void {
    if (told === undefined) return
    const isNews = told.number > worker.service.number && worker.isServiceTold
    worker.tookService(told)
    // A registration says again what was asked before: nothing new.
    if (!worker.isServiceTold) worker.askService(worker.wantedService)
    if (!isNews) return
    const { workerId } = worker
    const { state, reason } = told
    this.#events.add({ type: 'worker-service', workerId, state, reason, askedBy: 'worker' })
  }

  #takeDirectories(worker: WorkerRecord, directories: readonly DirectoryStatus[]): void {
    const before = new Map(worker.directories.map((directory) => [directory.name, directory]))
    for (const { name, health, isFull } of directories) {
      const known = before.get(name)
      const isWell = health === 'healthy' && !isFull
      if (known === undefined ? isWell : known.health === health && known.isFull === isFull) {
        continue
      }
      const { workerId } = worker
      this.#events.add({ type: 'disk-health', workerId, directory: name, health, isFull })
    }
    worker.directories = directories
  }

  *#rowsOf(worker: WorkerRecord): Generator<TableRow> {
    for (const job of [...this.#jobs.all()]) {
      for (const table of [...job.tables.values()]) {
        if (!table.countsByWorker.has(worker.number)) continue
        for (const row of table.rows()) {
          if (table.worker(row) === worker.number) yield { table, row }
        }
      }
    }
  }
}

/** A page of the present registration that has come before. */
function isTaken(worker: WorkerRecord, page: Registration): boolean {
  const { registration, workerEpoch } = worker
  const isPresent = page.registration === registration && page.workerEpoch === workerEpoch
  return isPresent && page.page < worker.nextPage
}

/** A page of a registration that the worker has given up since: its list is old. */
function isLate(worker: WorkerRecord, page: Registration): boolean {
  return page.workerEpoch === worker.workerEpoch && (page.number ?? 0) < worker.registrationNumber
}
