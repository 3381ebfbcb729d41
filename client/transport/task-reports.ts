// What a task process tells the manager of its jobs: the failures it saw and where its time went.
// Collected for a moment, bounded, and dropped when the manager is away: reports explain, nothing
// depends on them. Owned by the ShuffleEnvironment.

import type { Clock, Timer } from '../common/clock.ts'
import type { JobId } from '../common/ids.ts'
import type { StateSums } from '../common/time-in-state.ts'
import type { FailureReport } from '../manager/manager-client.ts'

/** Where the reports go; ManagerClient is one. Never rejects. */
export interface ReportTarget {
  reportFailures(
    jobId: JobId,
    failures: readonly FailureReport[],
    timeInStateMs: Readonly<Record<string, number>>,
  ): Promise<void>
}

interface JobReport {
  readonly failures: FailureReport[]
  readonly timeInStateMs: Record<string, number>
}

/** Failures kept for one report: the first ones say what happened, more say it again. */
const failuresMax = 256
/** Jobs of one process that have something to report at one time. */
const jobsMax = 1024
const delayMs = 2000

export class TaskReports {
  readonly #clock: Clock
  readonly #target: ReportTarget
  readonly #jobs = new Map<JobId, JobReport>()
  #timer: Timer | undefined
  #sending: Promise<void> = Promise.resolve()
  #closed = false

  constructor(options: { readonly clock: Clock; readonly target: ReportTarget }) {
    this.#clock = options.clock
    this.#target = options.target
  }

  addFailure(failure: FailureReport): void {
    const report = this.#report(failure.key.jobId)
    if (report !== undefined && report.failures.length < failuresMax) report.failures.push(failure)
  }

  /** Adds the sums of a partition or gate that has ended; `prefix` says which: write or read. */
  addTimes(jobId: JobId, prefix: string, sums: StateSums<string>): void {
    const times = this.#report(jobId)?.timeInStateMs
    if (times === undefined) return
    for (const [state, ms] of Object.entries(sums)) {
      const name = `${prefix}-${state}`
      times[name] = Math.round((times[name] ?? 0) + ms)
    }
  }

  /** Sends what there is and takes nothing more. Idempotent. */
  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true
      this.#timer?.cancel()
      this.#send()
    }
    await this.#sending
  }

  #report(jobId: JobId): JobReport | undefined {
    if (this.#closed) return undefined
    const known = this.#jobs.get(jobId)
    if (known !== undefined) return known
    if (this.#jobs.size >= jobsMax) return undefined
    const report: JobReport = { failures: [], timeInStateMs: {} }
    this.#jobs.set(jobId, report)
    this.#timer ??= this.#clock.setTimer(delayMs, () => {
      this.#timer = undefined
      this.#send()
    })
    return report
  }

  #send(): void {
    const jobs = [...this.#jobs]
    this.#jobs.clear()
    const sent = jobs.map(([jobId, { failures, timeInStateMs }]) =>
      this.#target.reportFailures(jobId, failures, timeInStateMs),
    )
    this.#sending = Promise.all([this.#sending, ...sent]).then(() => undefined)
  }
}
