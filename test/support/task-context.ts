// The two ends of a shuffle in memory for one task alone: what it is given to read, and what it emits.

import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  type InputGate,
  type ShuffleDescriptor,
} from '../../client/index.ts'
import type { JsonValue, TaskContext } from '../../runtime/task.ts'
import { MemoryShuffle } from './memory-shuffle.ts'

const jobId = parseJobId('job')

export interface TaskBench {
  readonly shuffle: MemoryShuffle
  readonly output: ShuffleDescriptor
  /** Progress that the task told, in order. */
  readonly progress: number[]
  context(of: Partial<TaskContext> & { readonly input: JsonValue }): TaskContext
  /** A gate over the committed records, each for subpartition 0. */
  gateOf(records: readonly Uint8Array[]): InputGate
  /** Commits the output; its records by subpartition. */
  emitted(context: TaskContext): Promise<readonly string[][]>
}

export async function taskBench(subpartitionCount: number): Promise<TaskBench> {
  const shuffle = new MemoryShuffle()
  const environment = shuffle.environment()
  const descriptor = (dataSetId: string) =>
    shuffle.master().registerPartitionWithProducer(
      jobId,
      {
        dataSetId: parseDataSetId(dataSetId),
        partitionIndex: 0,
        totalPartitions: 1,
        subpartitionCount,
        isBroadcast: false,
      },
      { attemptId: parseAttemptId('attempt-1') },
    )
  const [input, output] = [await descriptor('input'), await descriptor('output')]
  const progress: number[] = []
  return {
    shuffle,
    output,
    progress,
    context: (of) => ({
      stageName: 'stage',
      taskIndex: 0,
      attempt: 1,
      output: environment.createResultPartition({ descriptor: output }),
      subpartitionCount,
      gate: undefined,
      memoryBytes: 256 * 1024,
      spillDirectory: '/unused',
      spillName: 'bench',
      signal: new AbortController().signal,
      progress: (bytes) => progress.push(bytes),
      ...of,
    }),
    gateOf: (records) => {
      shuffle.commit(
        input.key,
        records.map((bytes) => ({ subpartition: 0, bytes })),
      )
      return environment.createInputGate({
        inputs: [{ descriptor: input, firstSubpartition: 0, lastSubpartition: 0 }],
      })
    },
    emitted: async (context) => {
      await context.output?.finish()
      const bySubpartition: string[][] = Array.from({ length: subpartitionCount }, () => [])
      for (const { subpartition, bytes } of shuffle.read(output.key) ?? []) {
        bySubpartition[subpartition]?.push(Buffer.from(bytes).toString('latin1'))
      }
      return bySubpartition
    },
  }
}
