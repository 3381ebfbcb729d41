// What job master and task processes tell each other, over the process's own channel.

import type { ShuffleDescriptor } from '../client/index.ts'
import type { TaskMemory } from './job-plan.ts'
import type { TaskError } from './task-error.ts'
import type { JsonValue } from './task.ts'

/** What a task process needs to find the cluster; the token stays in its file. */
export interface ClusterSettings {
  readonly managerUrl: string
  readonly clusterId: string
  readonly tokenFile?: string
}

/** The first message to a task process. */
export interface SetUpMessage {
  readonly kind: 'set-up'
  readonly cluster: ClusterSettings
  readonly tasksModule: string
  readonly memory: TaskMemory
  readonly recordBytesMax: number
  readonly spillDirectory: string
  /** Files and directories that the process removes when its parent is gone. */
  readonly removeWhenOrphaned: readonly string[]
}

/** The committed partitions of a stage; sent once to a process, not with each task that reads them. */
export interface InputsMessage {
  readonly kind: 'inputs'
  readonly stage: number
  readonly descriptors: readonly ShuffleDescriptor[]
}

export interface StartMessage {
  readonly kind: 'start'
  /** Number of the attempt in the whole job; names it in every later message. */
  readonly run: number
  readonly task: string
  readonly stageName: string
  readonly taskIndex: number
  readonly attempt: number
  readonly input: JsonValue
  readonly output: ShuffleDescriptor | undefined
  /** The stage whose partitions it reads, by the last `inputs` message for it. */
  readonly inputStage: number | undefined
}

export interface CancelMessage {
  readonly kind: 'cancel'
  readonly run: number
}

export interface CloseMessage {
  readonly kind: 'close'
}

export type ToTaskProcess =
  SetUpMessage | InputsMessage | StartMessage | CancelMessage | CloseMessage

/** Totals of what an attempt committed. */
export interface CommittedTotals {
  readonly recordCount: number
  readonly uncompressedBytes: number
  readonly storedBytes: number
}

export type FromTaskProcess =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'heartbeat'
      readonly progress: Readonly<Record<number, number>>
      /** The most memory that the process has had resident so far. */
      readonly peakMemoryBytes: number
    }
  | {
      readonly kind: 'finished'
      readonly run: number
      readonly result: JsonValue
      readonly committed: CommittedTotals | undefined
      readonly peakMemoryBytes: number
      /** The last progress that the attempt told, in bytes. */
      readonly progress: number
    }
  | { readonly kind: 'failed'; readonly run: number; readonly error: TaskError }
