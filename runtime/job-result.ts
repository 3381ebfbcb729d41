// What a job says about itself, while it runs and when it has ended.

import type { JobId } from '../client/index.ts'
import type { StageCounts } from './job-tracker.ts'
import type { CommittedTotals } from './task-messages.ts'
import type { JsonValue } from './task.ts'

export interface StageSummary extends StageCounts {
  readonly name: string
  /** Bytes that its tasks have worked through. */
  readonly progressBytes: number
  /** Of the partitions that count, as their producers committed them. */
  readonly committed: CommittedTotals
}

export interface JobSummary {
  readonly jobId: JobId
  readonly durationMs: number
  readonly stages: readonly StageSummary[]
  /** Attempts of all tasks that write to the shuffle; equals their number when nothing was lost. */
  readonly producerAttempts: number
  readonly consumerAttempts: number
  readonly processRestarts: number
  /** What each task process had resident at most. */
  readonly taskProcesses: readonly { readonly pid: number; readonly peakMemoryBytes: number }[]
}

export interface JobResult {
  readonly summary: JobSummary
  /** What the tasks of the last stage returned, in order. */
  readonly results: readonly JsonValue[]
}
