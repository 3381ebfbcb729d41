// What a job master remembers of its stages: the attempts that count, what they returned and where
// their partitions are, and the last error of each task.

import {
  parseDataSetId,
  type DataSetId,
  type ErrorFields,
  type ShuffleDescriptor,
} from '../client/index.ts'
import type { StagePlan } from './job-plan.ts'
import type { AttemptRef } from './job-tracker.ts'
import type { TaskError } from './task-error.ts'
import type { CommittedTotals } from './task-messages.ts'
import type { JsonValue } from './task.ts'

export interface FinishedTask {
  readonly attempt: number
  readonly result: JsonValue
  readonly descriptor: ShuffleDescriptor | undefined
  readonly committed: CommittedTotals | undefined
  readonly progress: number
}

/** One stage: slots for its tasks, filled as they finish. */
export class JobStage {
  readonly plan: StagePlan
  readonly dataSetId: DataSetId
  readonly #finished: (FinishedTask | undefined)[]
  readonly #lastErrors: (TaskError | undefined)[]
  readonly #cancelled: number[]
  #version = 0

  constructor(plan: StagePlan, index: number) {
    this.plan = plan
    this.dataSetId = parseDataSetId(`${String(index)}-${plan.name}`)
    this.#finished = Array.from({ length: plan.taskCount }, () => undefined)
    this.#lastErrors = Array.from({ length: plan.taskCount }, () => undefined)
    this.#cancelled = Array.from({ length: plan.taskCount }, () => 0)
  }

  /** Raised whenever a partition of the stage is added or lost. */
  get version(): number {
    return this.#version
  }

  /** What the tasks returned, null where one has not finished. */
  get results(): readonly JsonValue[] {
    return this.#finished.map((task) => task?.result ?? null)
  }

  get descriptors(): readonly ShuffleDescriptor[] {
    return this.#finished.flatMap((task) => task?.descriptor ?? [])
  }

  /** Bytes that the finished tasks worked through. */
  get progressBytes(): number {
    return this.#finished.reduce((sum, task) => sum + (task?.progress ?? 0), 0)
  }

  get committed(): CommittedTotals {
    let [recordCount, uncompressedBytes, storedBytes] = [0, 0, 0]
    for (const task of this.#finished) {
      recordCount += task?.committed?.recordCount ?? 0
      uncompressedBytes += task?.committed?.uncompressedBytes ?? 0
      storedBytes += task?.committed?.storedBytes ?? 0
    }
    return { recordCount, uncompressedBytes, storedBytes }
  }

  finishedTask(index: number): FinishedTask | undefined {
    return this.#finished[index]
  }

  setFinished(index: number, task: FinishedTask | undefined): void {
    this.#finished[index] = task
    this.#version += 1
  }

  noteCancelled(index: number): void {
    this.#cancelled[index] = this.cancelledAttempts(index) + 1
  }

  /** Attempts of a task that were ended because of its inputs. */
  cancelledAttempts(index: number): number {
    return this.#cancelled[index] ?? 0
  }

  noteError(index: number, error: TaskError): void {
    this.#lastErrors[index] = error
  }

  lastError(index: number): TaskError | undefined {
    return this.#lastErrors[index]
  }
}

/** The attempt's part of its partition's key. */
export function attemptIdOf(attempt: number): string {
  return `attempt-${String(attempt)}`
}

/** An attempt as fields of errors and log lines. */
export function fieldsOfAttempt(stage: JobStage, { index, attempt }: AttemptRef): ErrorFields {
  return { stage: stage.plan.name, taskIndex: index, attempt }
}
