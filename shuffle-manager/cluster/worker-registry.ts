// The workers that the manager knows: registered ones, and those that job masters' lists name. Owned
// by the manager; a worker's number is what partition tables store.

import { ShuffleError } from '../../client/common/errors.ts'
import type { WorkerId } from '../../client/common/ids.ts'
import {
  servingFromTheStart,
  type DirectoryStatus,
  type ServiceRecord,
  type WorkerAddress,
} from '../../client/manager/schemas.ts'
import { WorkerCommands } from './worker-commands.ts'

/**
 * - `expected`: a list names it, it has not registered in this epoch
 * - `registering`: pages of its list are coming in
 * - `alive`, `suspect`: registered; silent or leaving in the second
 * - `lost`: not back with its data within the recovery time
 */
export type WorkerState = 'expected' | 'registering' | 'alive' | 'suspect' | 'lost'

export class WorkerRecord {
  readonly number: number
  readonly workerId: WorkerId
  state: WorkerState = 'expected'
  workerEpoch = 0
  host = ''
  port = 0
  /** Changes with host or port. */
  addressVersion = 0
  httpPort: number | undefined
  version = ''
  isDraining = false
  isLeaving = false
  directories: readonly DirectoryStatus[] = []
  /** As the worker told it last. */
  service: ServiceRecord = servingFromTheStart
  /** What it is still to be told. */
  #askedService: ServiceRecord | undefined
  openWrites = 0
  /** Local monotonic time of the last receipt; for an expected one when it was first named. */
  heardMs: number
  registration = ''
  /** Of the registrations of this epoch of the worker. */
  registrationNumber = 0
  /** Next page of the registration under way. */
  nextPage = 0
  /** Last delta of the present registration. */
  sequence = 0
  readonly commands = new WorkerCommands()
  /** Kept by the ledger. */
  partitionCount = 0
  committedBytes = 0
  /** Expected of what is allocated and not committed. */
  pendingBytes = 0

  constructor(options: {
    readonly number: number
    readonly workerId: WorkerId
    readonly heardMs: number
  }) {
    this.number = options.number
    this.workerId = options.workerId
    this.heardMs = options.heardMs
  }

  moveTo(host: string, port: number): void {
    if (host === this.host && port === this.port) return
    this.host = host
    this.port = port
    this.addressVersion++
  }

  get address(): WorkerAddress {
    return { workerId: this.workerId, host: this.host, port: this.port }
  }

  /** As people want it. */
  get wantedService(): ServiceRecord {
    return this.#askedService ?? this.service
  }

  get isServiceTold(): boolean {
    return this.#askedService === undefined
  }

  askService(record: ServiceRecord): void {
    this.#askedService = record
    this.commands.service = record
  }

  /**
   * What the worker says of itself. One that has not yet done what was asked is asked again, and so is
   * one that had done it and has forgotten: its disks took no write, and it was started again.
   */
  tookService(told: ServiceRecord): void {
    const known = this.service
    this.service = told
    const asked = this.#askedService ?? (told.number < known.number ? known : undefined)
    if (asked === undefined) return
    if (asked.number === told.number && asked.state === told.state) {
      this.#askedService = undefined
      return
    }
    // An earlier manager had counted further.
    const number = Math.max(asked.number, told.number + 1)
    if (asked !== this.#askedService || number > asked.number) this.askService({ ...asked, number })
  }

  /** Whether new partitions may be placed there. */
  get isChosen(): boolean {
    const isWell = this.state === 'alive' && !this.isDraining && !this.isLeaving
    return isWell && this.service.state === 'serving' && this.wantedService.state === 'serving'
  }

  /** Registered in this epoch, its list complete. */
  get isRegistered(): boolean {
    return this.state === 'alive' || this.state === 'suspect'
  }

  /** Whether what it did not report can be judged. */
  get isDecided(): boolean {
    return this.isRegistered || this.state === 'lost'
  }
}

export class WorkerRegistry {
  readonly #workersMax: number
  readonly #byId = new Map<WorkerId, WorkerRecord>()
  readonly #byNumber = new Map<number, WorkerRecord>()
  /** What forgotten workers were still to be told. */
  readonly #untold = new Map<WorkerId, ServiceRecord>()
  #nextNumber = 0
  #all: readonly WorkerRecord[] | undefined

  constructor(options: { readonly workersMax: number }) {
    this.#workersMax = options.workersMax
  }

  get(workerId: WorkerId): WorkerRecord | undefined {
    return this.#byId.get(workerId)
  }

  /** The worker with this number; none is forgotten while a row names it, so it exists. */
  at(number: number): WorkerRecord {
    const worker = this.#byNumber.get(number)
    if (worker === undefined) throw new RangeError(`no worker has the number ${String(number)}`)
    return worker
  }

  all(): readonly WorkerRecord[] {
    return (this.#all ??= [...this.#byNumber.values()])
  }

  getOrAdd(workerId: WorkerId, nowMs: number): WorkerRecord {
    const known = this.#byId.get(workerId)
    if (known !== undefined) return known
    if (this.#byNumber.size >= this.#workersMax) {
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        `the manager knows ${String(this.#workersMax)} workers, lost ones included; raise workers-max, or lower worker-forget-after`,
        { fields: { workerId } },
      )
    }
    const worker = new WorkerRecord({ number: this.#nextNumber++, workerId, heardMs: nowMs })
    this.#byNumber.set(worker.number, worker)
    this.#byId.set(workerId, worker)
    this.#all = undefined
    const untold = this.#untold.get(workerId)
    if (untold !== undefined) worker.askService(untold)
    this.#untold.delete(workerId)
    return worker
  }

  /** No row may name it. What people want of it is remembered, should it come back. */
  forget(worker: WorkerRecord): void {
    const { number, workerId, isServiceTold, wantedService } = worker
    this.#byNumber.delete(number)
    this.#byId.delete(workerId)
    this.#all = undefined
    if (isServiceTold) return
    this.#untold.set(workerId, wantedService)
    const [oldest] = this.#untold.keys()
    if (this.#untold.size > this.#workersMax && oldest !== undefined) this.#untold.delete(oldest)
  }
}
