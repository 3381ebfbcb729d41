// Allocation: the same key gets the same answer while it lives; a new one gets a worker by the
// placement strategy, within the job's limits. All of a batch or nothing. Owned by the manager.

import { ShuffleError, type ErrorCode } from '../../client/common/errors.ts'
import type { AllocationId, DataSetId } from '../../client/common/ids.ts'
import type { Random } from '../../client/common/random.ts'
import type { managerApi } from '../../client/manager/api.ts'
import { decodeAttempts, type DataSetKey } from '../../client/manager/key-columns.ts'
import type { CallAnswer, CallInput } from '../../client/manager/route.ts'
import { place, type PlacementName } from '../placement/placement.ts'
import type { ClusterOptions } from './cluster-options.ts'
import type { EventRing } from './event-ring.ts'
import type { JobRecord } from './job-registry.ts'
import type { PartitionLedger, TableRow } from './partition-ledger.ts'
import type { WorkerRegistry } from './worker-registry.ts'

type Request = CallInput<typeof managerApi.allocatePartitions>['body']
type Answer = CallAnswer<typeof managerApi.allocatePartitions>

/** Of each partition that needs a place: the producer's host, and where earlier attempts failed. */
interface NewPartitions {
  readonly hosts: readonly (string | undefined)[]
  readonly avoided: readonly (readonly number[])[]
  /** How many of them the job has not had before: the others are only moved. */
  readonly addedCount: number
}

export class Allocator {
  readonly #options: ClusterOptions
  readonly #placement: PlacementName
  readonly #managerEpoch: number
  readonly #random: Random
  readonly #workers: WorkerRegistry
  readonly #ledger: PartitionLedger
  readonly #events: EventRing
  #sequence = 0

  constructor(parts: {
    readonly options: ClusterOptions
    readonly placement: PlacementName
    readonly managerEpoch: number
    readonly random: Random
    readonly workers: WorkerRegistry
    readonly ledger: PartitionLedger
    readonly events: EventRing
  }) {
    this.#options = parts.options
    this.#placement = parts.placement
    this.#managerEpoch = parts.managerEpoch
    this.#random = parts.random
    this.#workers = parts.workers
    this.#ledger = parts.ledger
    this.#events = parts.events
  }

  /** Throws LIMIT_EXCEEDED, NO_WORKER, STALE_ALLOCATION or INVALID_ARGUMENT; then nothing is allocated. */
  allocate(job: JobRecord, request: Request): Answer {
    const { dataSet } = request
    const dataSetId = dataSet.dataSetId as DataSetId
    const keys: DataSetKey[] = []
    const more = request.hostOf === undefined ? [] : [request.hostOf]
    decodeAttempts(request, more, (partitionIndex, attemptId) => {
      keys.push({ dataSetId, partitionIndex, attemptId })
    })
    this.#checkIndices(keys, request)
    const known = keys.map((key) => this.#usable(job, key))
    const hosts = this.#hostsOfNew(request, known)
    const placed = keys.filter((_, position) => known[position] === undefined)
    const avoided = placed.map((key) => job.failedPlaces.of(dataSetId, key.partitionIndex))
    const addedCount = placed.filter((key) => this.#ledger.find(job, key) === undefined).length
    const workerNumbers = this.#place(job, request, { hosts, avoided, addedCount })
    let next = 0
    const rows = keys.map((key, position) => {
      const row = known[position]
      if (row !== undefined) return row
      return this.#allocateOne(job, key, workerNumbers[next++] ?? 0)
    })
    const table = job.tables.get(dataSetId)
    if (table !== undefined) this.#ledger.setFacts(table, dataSet)
    return this.#answer(job, rows)
  }

  #checkIndices(keys: readonly DataSetKey[], request: Request): void {
    const { totalPartitions } = request.dataSet
    const bad = keys.find((key) => key.partitionIndex >= totalPartitions)
    if (bad === undefined) return
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `partition index ${String(bad.partitionIndex)} is not below the ${String(totalPartitions)} partitions of data set ${bad.dataSetId}`,
    )
  }

  /** The row of the key, if it has one that still may be written or read. */
  #usable(job: JobRecord, key: DataSetKey): TableRow | undefined {
    const at = this.#ledger.find(job, key)
    if (at === undefined) return undefined
    const { table, row } = at
    const state = table.state(row)
    if (state === 'releasing' || state === 'lost') {
      throw new ShuffleError(
        'STALE_ALLOCATION',
        `partition ${String(key.partitionIndex)} of data set ${key.dataSetId} was ${state === 'lost' ? 'lost' : 'released'}; produce it with another attempt id`,
        { fields: { jobId: job.jobId, attemptId: key.attemptId } },
      )
    }
    const worker = this.#workers.at(table.worker(row))
    return state === 'allocated' && worker.state === 'lost' ? undefined : at
  }

  #hostsOfNew(request: Request, known: readonly unknown[]): (string | undefined)[] {
    const hosts: (string | undefined)[] = []
    known.forEach((row, position) => {
      if (row !== undefined) return
      hosts.push(request.hosts?.[request.hostOf?.[position] ?? -1])
    })
    return hosts
  }

  #place(job: JobRecord, request: Request, partitions: NewPartitions): number[] {
    const { hosts, avoided, addedCount } = partitions
    if (hosts.length === 0) return []
    const { dataSet } = request
    const dataSetId = dataSet.dataSetId as DataSetId
    this.#checkLimits(job, dataSet, addedCount)
    const { workerNumbers, cursor } = place(this.#placement, {
      workers: this.#workers.all().filter((worker) => worker.isChosen),
      facts: dataSet,
      countsByWorker: job.tables.get(dataSetId)?.countsByWorker ?? new Map<number, number>(),
      cursor: job.placementCursor,
      producerHosts: hosts,
      avoided,
      minFreeBytes: this.#options.minFreeBytes,
      random: this.#random,
    })
    if (workerNumbers.length < hosts.length) {
      const alive = this.#workers.all().filter((worker) => worker.state === 'alive').length
      this.#refuse(job, dataSetId, {
        code: 'NO_WORKER',
        reason: `no worker fits ${String(hosts.length)} partitions of data set ${dataSetId}: ${String(alive)} of ${String(this.#workers.all().length)} workers are alive, and those that are neither draining nor excluded have no healthy${dataSet.diskKind === undefined ? '' : ` ${dataSet.diskKind}`} directory with enough free space`,
      })
    }
    job.placementCursor = cursor
    return workerNumbers
  }

  #checkLimits(job: JobRecord, dataSet: Request['dataSet'], count: number): void {
    const { jobPartitionsMax, jobMaxBytes } = this.#options
    const dataSetId = dataSet.dataSetId as DataSetId
    const present = job.partitionCount - job.counts.releasing
    if (present + count > jobPartitionsMax) {
      this.#refuse(job, dataSetId, {
        code: 'LIMIT_EXCEEDED',
        reason: `job ${job.jobId} has ${String(present)} partitions and asks for ${String(count)} more; its limit is ${String(jobPartitionsMax)} (job-partitions-max)`,
      })
    }
    const bytes = job.committedBytes + job.pendingBytes
    if (bytes + count * (dataSet.expectedBytes ?? 0) > jobMaxBytes) {
      this.#refuse(job, dataSetId, {
        code: 'LIMIT_EXCEEDED',
        reason: `job ${job.jobId} holds or expects ${String(bytes)} bytes; with ${String(count)} more partitions it passes its limit of ${String(jobMaxBytes)} (job-size-max)`,
      })
    }
  }

  #refuse(
    job: JobRecord,
    dataSetId: DataSetId,
    refusal: { readonly code: ErrorCode; readonly reason: string },
  ): never {
    const { jobId } = job
    this.#events.add({ type: 'allocation-refused', jobId, dataSetId, ...refusal })
    throw new ShuffleError(refusal.code, refusal.reason, { fields: { jobId, dataSetId } })
  }

  #allocateOne(job: JobRecord, key: DataSetKey, workerNumber: number): TableRow {
    const worker = this.#workers.at(workerNumber)
    const allocation: AllocationId = {
      managerEpoch: this.#managerEpoch,
      jobEpoch: job.jobEpoch,
      sequence: ++this.#sequence,
    }
    const at = this.#ledger.find(job, key)
    if (at !== undefined) {
      this.#ledger.move(at, worker, allocation)
      return at
    }
    const state = 'allocated'
    return this.#ledger.insert(job, key, { worker, state, allocation, isClaimed: true })
  }

  #answer(job: JobRecord, rows: readonly TableRow[]): Answer {
    const positions = new Map<number, number>()
    const workers: Answer['workers'] = []
    const sequences: number[] = []
    const older: NonNullable<Answer['older']> = []
    const holders = rows.map((at, position) => {
      this.#ledger.claim(at, false)
      const { managerEpoch, jobEpoch, sequence } = at.table.allocation(at.row)
      sequences.push(sequence)
      if (managerEpoch !== this.#managerEpoch || jobEpoch !== job.jobEpoch) {
        older.push({ position, managerEpoch, jobEpoch })
      }
      const number = at.table.worker(at.row)
      const holder = positions.get(number) ?? workers.push(this.#workers.at(number).address) - 1
      positions.set(number, holder)
      return holder
    })
    return {
      managerEpoch: this.#managerEpoch,
      jobEpoch: job.jobEpoch,
      workers,
      holders,
      sequences,
      ...(older.length === 0 ? {} : { older }),
    }
  }
}
