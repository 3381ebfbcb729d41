// Workers that people take out of service: excluded or draining. The worker keeps what was asked, on
// its disks, and tells it with each registration; here is only what it has told, and what it is still
// to be told. Owned by the cluster.

import { ShuffleError } from '../../client/common/errors.ts'
import type { ServiceState } from '../../client/manager/schemas.ts'
import type { EventRing } from './event-ring.ts'
import type { WorkerLists } from './worker-lists.ts'
import type { WorkerRecord } from './worker-registry.ts'

export interface ServiceRequest {
  readonly state: ServiceState
  readonly reason?: string
  readonly isLost?: boolean
}

export class WorkerService {
  readonly #events: EventRing
  readonly #workerLists: Pick<WorkerLists, 'workerLost'>
  readonly #wakeWorker: (worker: WorkerRecord) => void

  constructor(parts: {
    readonly events: EventRing
    readonly workerLists: Pick<WorkerLists, 'workerLost'>
    readonly wakeWorker: (worker: WorkerRecord) => void
  }) {
    this.#events = parts.events
    this.#workerLists = parts.workerLists
    this.#wakeWorker = parts.wakeWorker
  }

  /** From now on; the worker is told at once if it is there, else when it registers. */
  ask(worker: WorkerRecord, request: ServiceRequest): void {
    const { state, reason = '', isLost = false } = request
    if (isLost) checkLost(worker, state)
    const wanted = worker.wantedService
    if (wanted.state !== state || wanted.reason !== reason) {
      const number = Math.max(worker.service.number, wanted.number) + 1
      worker.askService({ state, reason, number })
      const { workerId } = worker
      this.#events.add({ type: 'worker-service', workerId, state, reason, askedBy: 'operator' })
      this.#wakeWorker(worker)
    }
    if (isLost && worker.state !== 'lost') {
      this.#workerLists.workerLost(worker, 'an operator gave it up')
    }
  }
}

function checkLost(worker: WorkerRecord, state: ServiceState): void {
  const { workerId } = worker
  if (state !== 'excluded') {
    throw new ShuffleError('INVALID_ARGUMENT', 'isLost goes with the state excluded only', {
      fields: { workerId },
    })
  }
  if (worker.state === 'suspect' || worker.state === 'expected' || worker.state === 'lost') return
  throw new ShuffleError(
    'INVALID_ARGUMENT',
    `worker ${workerId} is ${worker.state}: its data can't be counted as lost while it answers; drain it, or stop its process first`,
    { fields: { workerId, state: worker.state } },
  )
}
