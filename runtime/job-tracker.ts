// Which tasks of a job run, ran, or have to run again; the rules without any of the doing. A task is
// runnable when all tasks of the stage before have finished and their partitions exist, and while
// somebody still needs its own output.

import { ok as assert } from 'node:assert/strict'

export interface TaskRef {
  readonly stage: number
  readonly index: number
}

export interface AttemptRef extends TaskRef {
  /** Counts from 1 for each task. */
  readonly attempt: number
}

export interface StageCounts {
  readonly taskCount: number
  readonly waiting: number
  readonly running: number
  readonly finished: number
  /** Attempts started so far. */
  readonly attempts: number
  /** Partitions of finished attempts that were lost. */
  readonly lost: number
}

type TaskState = 'waiting' | 'running' | 'finished'

interface TrackedTask {
  state: TaskState
  attempts: number
}

interface TrackedStage {
  readonly tasks: readonly TrackedTask[]
  finished: number
  running: number
  lost: number
}

export class JobTracker {
  readonly #stages: readonly TrackedStage[]

  constructor(taskCounts: readonly number[]) {
    assert(taskCounts.length > 0, 'a job has at least one stage')
    this.#stages = taskCounts.map((count) => ({
      tasks: Array.from({ length: count }, () => ({ state: 'waiting' as const, attempts: 0 })),
      finished: 0,
      running: 0,
      lost: 0,
    }))
  }

  /** All tasks of the last stage have finished. */
  get isFinished(): boolean {
    const last = this.#stage(this.#stages.length - 1)
    return last.finished === last.tasks.length
  }

  /** The next task to start; of an early stage before one of a later stage. */
  nextRunnable(): TaskRef | undefined {
    for (const [stage, tracked] of this.#stages.entries()) {
      if (!this.#isNeeded(stage) || !this.#hasInputs(stage)) continue
      const index = tracked.tasks.findIndex((task) => task.state === 'waiting')
      if (index !== -1) return { stage, index }
    }
    return undefined
  }

  /** Starts a waiting task; the number of the attempt. */
  start({ stage, index }: TaskRef): AttemptRef {
    const task = this.#task(stage, index)
    assert(task.state === 'waiting', 'only a waiting task starts')
    task.state = 'running'
    task.attempts += 1
    this.#stage(stage).running += 1
    return { stage, index, attempt: task.attempts }
  }

  /** The attempt has finished; `false` when it is no longer the one that counts. */
  finish(attempt: AttemptRef): boolean {
    if (!this.#leaveRunning(attempt, 'finished')) return false
    this.#stage(attempt.stage).finished += 1
    return true
  }

  /** The attempt has failed or was cancelled: its task waits again. `false` as in {@link finish}. */
  giveUp(attempt: AttemptRef): boolean {
    return this.#leaveRunning(attempt, 'waiting')
  }

  /** The partition of a finished attempt is gone; `false` when that attempt is not the present one. */
  lose({ stage, index, attempt }: AttemptRef): boolean {
    const task = this.#stages[stage]?.tasks[index]
    if (task?.state !== 'finished' || task.attempts !== attempt) return false
    if (stage === this.#stages.length - 1) return false
    task.state = 'waiting'
    this.#stage(stage).finished -= 1
    this.#stage(stage).lost += 1
    return true
  }

  counts(stage: number): StageCounts {
    const { tasks, running, finished, lost } = this.#stage(stage)
    return {
      taskCount: tasks.length,
      waiting: tasks.length - running - finished,
      running,
      finished,
      attempts: tasks.reduce((sum, task) => sum + task.attempts, 0),
      lost,
    }
  }

  #leaveRunning({ stage, index, attempt }: AttemptRef, to: TaskState): boolean {
    const task = this.#task(stage, index)
    if (task.state !== 'running' || task.attempts !== attempt) return false
    task.state = to
    this.#stage(stage).running -= 1
    return true
  }

  #isNeeded(stage: number): boolean {
    const next = this.#stages[stage + 1]
    return next === undefined || next.finished < next.tasks.length
  }

  #hasInputs(stage: number): boolean {
    const before = this.#stages[stage - 1]
    return before === undefined || before.finished === before.tasks.length
  }

  #stage(stage: number): TrackedStage {
    const found = this.#stages[stage]
    assert(found !== undefined, 'the stage is one of the job')
    return found
  }

  #task(stage: number, index: number): TrackedTask {
    const found = this.#stage(stage).tasks[index]
    assert(found !== undefined, 'the task is one of the stage')
    return found
  }
}
