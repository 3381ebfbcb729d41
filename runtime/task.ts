// What a task is: a function by a name, given its input and the two ends of the shuffle. Tasks share
// nothing but what goes through the shuffle, so each can run in any process, and again.

import type { InputGate, ResultPartition } from '../client/index.ts'

/** What goes between the job master and tasks. */
export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue }

export interface TaskContext {
  readonly stageName: string
  readonly taskIndex: number
  /** Counts from 1. */
  readonly attempt: number
  /** What the plan gives this task. */
  readonly input: JsonValue
  /** Where its records go; undefined in the last stage. The task emits, the runtime commits. */
  readonly output: ResultPartition | undefined
  /** How many subpartitions the output has: the tasks of the next stage. */
  readonly subpartitionCount: number
  /** Its share of the stage before; undefined in the first stage. To be read to its end. */
  readonly gate: InputGate | undefined
  /** What the task may use besides the memory of output and gate. */
  readonly memoryBytes: number
  /** For what does not fit; only files without a name, so that nothing stays behind. */
  readonly spillDirectory: string
  /** Unique among the tasks of the machine. */
  readonly spillName: string
  /** Aborts when the attempt is cancelled. */
  readonly signal: AbortSignal
  /** Tells how much has been done, in bytes; shown to the user. */
  progress(bytes: number): void
}

/** Resolves to what the job master gets to know of the task. */
export type Task = (context: TaskContext) => Promise<JsonValue>

/** What a module of tasks exports as `tasks`. */
export type TaskRegistry = Readonly<Record<string, Task>>
