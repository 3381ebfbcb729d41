// A job with files around it: what happens before, after and instead.

import type { JobPlan } from '../job-plan.ts'
import type { JsonValue } from '../task.ts'

export interface JobSettings {
  readonly inputs: readonly string[]
  readonly output: string
  readonly maps: number
  readonly reduces: number
  readonly taskMemoryBytes: number
}

export interface PreparedJob {
  readonly plan: JobPlan
  readonly inputBytes: number
  /** What is to be removed when the job's process is gone before it could. */
  readonly temporaryFiles: readonly string[]
  /** Called right before the tasks start: makes what they write to. */
  begin(): Promise<void>
  /** Makes the output of what the last stage left; gets its results. What it was, for the summary. */
  commit(results: readonly JsonValue[]): Promise<JobOutput>
  /** Removes what an unfinished job left; idempotent, harmless after `commit`. */
  discard(): Promise<void>
}

export interface JobOutput {
  readonly outputBytes: number
  /** `lines`, `words`, `distinctWords`: what the job counts. */
  readonly counts: Readonly<Record<string, number>>
}

/** Room for a count and framing besides the longest line or word. */
export const recordSpareBytes = 64
