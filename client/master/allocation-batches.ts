// Gathers the partitions that are asked for in one turn of the loop into one call a data set: a stage
// of ten thousand producers is a few calls. Owned by the ShuffleMaster.

import type { Clock } from '../common/clock.ts'
import type { PartitionKey } from '../common/ids.ts'
import type { DataSetFacts } from '../manager/schemas.ts'
import type { MasterJob } from './master-job.ts'
import type { ShuffleDescriptor } from './shuffle-descriptor.ts'

export interface AllocationRequest {
  readonly key: PartitionKey
  readonly host: string | undefined
  readonly resolve: (descriptor: ShuffleDescriptor) => void
  readonly reject: (error: unknown) => void
}

export interface AllocationBatch {
  readonly job: MasterJob
  readonly facts: DataSetFacts
  readonly requests: AllocationRequest[]
}

/** Partitions of one call: with the longest ids and host names it stays below the body limit. */
export const batchRequestsMax = 4_000

export class AllocationBatches {
  readonly #clock: Clock
  readonly #send: (batch: AllocationBatch) => void
  readonly #batches = new Map<string, AllocationBatch>()
  #isScheduled = false

  constructor(options: {
    readonly clock: Clock
    /** Takes a batch over; its requests must all be answered. */
    readonly send: (batch: AllocationBatch) => void
  }) {
    this.#clock = options.clock
    this.#send = options.send
  }

  add(job: MasterJob, facts: DataSetFacts, request: AllocationRequest): void {
    const name = `${job.jobId} ${JSON.stringify(facts)}`
    const batch = this.#batches.get(name)
    if (batch === undefined) this.#batches.set(name, { job, facts, requests: [request] })
    else {
      batch.requests.push(request)
      if (batch.requests.length >= batchRequestsMax) {
        this.#batches.delete(name)
        this.#send(batch)
      }
    }
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#clock.setImmediate(() => {
      this.#isScheduled = false
      const batches = [...this.#batches.values()]
      this.#batches.clear()
      for (const full of batches) this.#send(full)
    })
  }
}
