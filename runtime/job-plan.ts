// A job as the runtime sees it: stages in a row, each task of one reading from every task of the
// stage before.

import type { JsonValue } from './task.ts'

export interface StagePlan {
  readonly name: string
  /** Name of the task in the job's module of tasks. */
  readonly task: string
  readonly taskCount: number
  /** The input of a task; `previousResults` are those of the stage before, in order of its tasks. */
  inputOf(taskIndex: number, previousResults: readonly JsonValue[]): JsonValue
}

/** How the memory of a task is divided. */
export interface TaskMemory {
  readonly outputBytes: number
  readonly gateBytes: number
  /** The task's own. */
  readonly ownBytes: number
}

export interface JobPlan {
  /** Beginning of the job id. */
  readonly name: string
  /** URL of the module that exports `tasks`. */
  readonly tasksModule: string
  readonly stages: readonly StagePlan[]
  readonly memory: TaskMemory
  /** Longest record in bytes. */
  readonly recordBytesMax: number
}

/**
 * Divides `--task-memory`. What is left over is for what the client holds besides its buffers: blocks
 * that are being compressed or have just been uncompressed.
 */
export function divideTaskMemory(taskMemoryBytes: number): TaskMemory {
  return {
    outputBytes: Math.floor(taskMemoryBytes / 4),
    gateBytes: Math.floor(taskMemoryBytes / 8),
    ownBytes: Math.floor((taskMemoryBytes * 3) / 8),
  }
}
