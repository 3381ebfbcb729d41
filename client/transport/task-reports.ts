// What a task process tells the manager of its jobs: the failures it saw and where its time went.
// Collected for a moment, bounded, and dropped when the manager is away: reports explain, nothing
// depends on them. Times alone wait until they are worth a call: the jobs of short tasks are mostly
// over before anybody could ask. Owned by the ShuffleEnvironment.
//
//   addTimes ──> small ──worth a call──> due ──a moment later──> sent
//   addFailure ───────────────────────────^      small ──close──> sent

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
  /** Of all states. */
  sumMs: number
}

/** Failures kept for one report: the first ones say what happened, more say it again. */
const failuresMax = 256
/** Jobs of one process that have something to report at one time. */
const jobsMax = 1024
/** Jobs with times that are not worth a call; of more those that ended a task last are kept. */
const smallJobsMax = 128
const delayMs = 2000
/** Less than this says nothing about a job. */
const timesWorthMs = 2000

export class TaskReports {
  readonly #clock: Clock
  readonly #target: ReportTarget
  readonly #due = new Map<JobId, JobReport>()
  readonly #small = new Map<JobId, JobReport>()
  #timer: Timer | undefined
  #sending: Promise<void> = Promise.resolve()
  #closed = false

  constructor(options: { readonly clock: Clock; readonly target: ReportTarget }) {
    this.#clock = options.clock
    this.#target = options.target
  }

  addFailure(failure: FailureReport): void {
    const report = this.#dueReport(failure.key.jobId)
    if (report !== undefined && report.failures.length < failuresMax) report.failures.push(failure)
  }

  /** Adds the sums of a partition or gate that has ended; `prefix` says which: write or read. */
  addTimes(jobId: JobId, prefix: string, sums: StateSums<string>): void {
    if (this.#closed) return
    const report = this.#due.get(jobId) ?? this.#smallReport(jobId)
    const times = report.timeInStateMs
    for (const [state, ms] of Object.entries(sums)) {
      const name = `${prefix}-${state}`
      times[name] = Math.round((times[name] ?? 0) + ms)
      report.sumMs += ms
    }
    if (report.sumMs >= timesWorthMs) this.#dueReport(jobId)
  }

  /** Sends what there is and takes nothing more. Idempotent. */
  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true
      this.#timer?.cancel()
      for (const [jobId, report] of this.#small) this.#due.set(jobId, report)
      this.#small.clear()
      this.#send()
    }
    await this.#sending
  }

  /** One that goes out with the next. */
  #dueReport(jobId: JobId): JobReport | undefined {
    if (this.#closed) return undefined
    const known = this.#due.get(jobId)
    if (known !== undefined) return known
    if (this.#due.size >= jobsMax) return undefined
    const report = this.#small.get(jobId) ?? emptyReport()
    this.#small.delete(jobId)
    this.#due.set(jobId, report)
    this.#timer ??= this.#clock.setTimer(delayMs, () => {
      this.#timer = undefined
      this.#send()
    })
    return report
  }

  #smallReport(jobId: JobId): JobReport {
    const report = this.#small.get(jobId) ?? emptyReport()
    this.#small.delete(jobId)
    this.#small.set(jobId, report)
    const [oldest] = this.#small.keys()
    if (this.#small.size > smallJobsMax && oldest !== undefined) this.#small.delete(oldest)
    return report
  }

  #send(): void {
    const jobs = [...this.#due]
    this.#due.clear()
    const sent = jobs.map(([jobId, { failures, timeInStateMs }]) =>
      this.#target.reportFailures(jobId, failures, timeInStateMs),
    )
    this.#sending = Promise.all([this.#sending, ...sent]).then(() => undefined)
  }
}

function emptyReport(): JobReport {
  return { failures: [], timeInStateMs: {}, sumMs: 0 }
}
