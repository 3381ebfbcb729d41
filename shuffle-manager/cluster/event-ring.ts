// The latest events of the cluster, for people and tools: appended only, the oldest forgotten.

import type { Clock } from '../../client/common/clock.ts'
import type { EventRecord } from '../../client/manager/api-workers.ts'

export type ClusterEvent =
  | { readonly type: 'manager-started'; readonly managerEpoch: number }
  | { readonly type: 'manager-late'; readonly lateMs: number }
  | { readonly type: 'manager-superseded'; readonly highestEpoch: number }
  | { readonly type: 'worker-joined'; readonly workerId: string; readonly workerEpoch: number }
  | { readonly type: 'worker-silent'; readonly workerId: string; readonly silentMs: number }
  | { readonly type: 'worker-back'; readonly workerId: string; readonly silentMs: number }
  | { readonly type: 'worker-leaving'; readonly workerId: string; readonly isForEver: boolean }
  | {
      readonly type: 'worker-service'
      readonly workerId: string
      readonly state: string
      readonly reason: string
      /** `worker`: it told what an earlier manager was asked. */
      readonly askedBy: 'operator' | 'worker'
    }
  | { readonly type: 'worker-forgotten'; readonly workerId: string; readonly silentMs: number }
  | { readonly type: 'worker-lost'; readonly workerId: string; readonly cause: string }
  | {
      readonly type: 'disk-health'
      readonly workerId: string
      readonly directory: string
      readonly health: string
      readonly isFull: boolean
    }
  | {
      readonly type: 'allocation-refused'
      readonly jobId: string
      readonly dataSetId: string
      readonly code: string
      readonly reason: string
    }
  | {
      readonly type: 'partitions-lost'
      readonly jobId: string
      readonly dataSetId: string
      readonly workerId: string
      readonly detector: 'worker' | 'liveness' | 'lists'
      readonly cause: string
      readonly count: number
      /** The first few. */
      readonly partitionIndices: readonly number[]
    }
  | {
      /** The job master hears of lost partitions; repeated until its list no longer has them. */
      readonly type: 'loss-told'
      readonly jobId: string
      readonly clientId: string
      readonly count: number
    }
  | { readonly type: 'job-registered'; readonly jobId: string; readonly clientId: string }
  | {
      readonly type: 'job-took-over'
      readonly jobId: string
      readonly clientId: string
      readonly oldClientId: string
    }
  | { readonly type: 'job-detached'; readonly jobId: string; readonly keepMs: number }
  | { readonly type: 'job-expired'; readonly jobId: string; readonly silentMs: number }
  | { readonly type: 'job-deleted'; readonly jobId: string }
  | {
      readonly type: 'client-report'
      readonly jobId: string
      readonly dataSetId: string
      readonly partitionIndex: number
      readonly attemptId: string
      readonly workerId: string
      readonly code: string
    }

export class EventRing {
  readonly #clock: Clock
  readonly #capacity: number
  readonly #events: EventRecord[] = []
  #nextNumber = 1

  constructor(options: { readonly clock: Clock; readonly capacity: number }) {
    this.#clock = options.clock
    this.#capacity = options.capacity
  }

  add(event: ClusterEvent): void {
    const number = this.#nextNumber++
    this.#events[number % this.#capacity] = { number, wallMs: this.#clock.wallMs(), ...event }
  }

  /** Events with a number above `after`, oldest first, at most `limit`. */
  list(options: { readonly after: number; readonly limit: number }): {
    readonly events: EventRecord[]
    readonly forgotten: number
  } {
    const oldest = Math.max(1, this.#nextNumber - this.#capacity)
    const from = Math.max(oldest, options.after + 1)
    const events: EventRecord[] = []
    for (let number = from; number < this.#nextNumber && events.length < options.limit; number++) {
      const event = this.#events[number % this.#capacity]
      if (event !== undefined) events.push(event)
    }
    return { events, forgotten: Math.max(0, from - (options.after + 1)) }
  }
}
