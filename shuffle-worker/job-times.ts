// How long the channels of each job were in which state, since the manager was last told. Owned by
// the worker; filled as channels end.

import type { JobId } from '../client/common/ids.ts'

/** Jobs kept while the manager is away; of more, what comes later is dropped. */
const jobsMax = 1000

export class JobTimes {
  #byJob = new Map<JobId, Record<string, number>>()

  /** `prefix` tells the states of writes from those of reads. */
  add(
    prefix: 'write' | 'read',
    times: { readonly jobId: JobId; readonly sums: Readonly<Record<string, number>> },
  ): void {
    let sums = this.#byJob.get(times.jobId)
    if (sums === undefined) {
      if (this.#byJob.size >= jobsMax) return
      sums = {}
      this.#byJob.set(times.jobId, sums)
    }
    for (const [state, ms] of Object.entries(times.sums)) {
      if (ms === 0) continue
      const name = `${prefix}-${state}`
      sums[name] = (sums[name] ?? 0) + ms
    }
  }

  /** Whole milliseconds; afterwards all begin anew. */
  take(): Readonly<Record<string, Readonly<Record<string, number>>>> {
    const taken = this.#byJob
    this.#byJob = new Map()
    return Object.fromEntries(
      [...taken].map(([jobId, sums]) => [
        jobId,
        Object.fromEntries(Object.entries(sums).map(([state, ms]) => [state, Math.round(ms)])),
      ]),
    )
  }
}
