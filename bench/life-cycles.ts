// Small shuffles from beginning to end, many at a time: each its own job, with a producer for each
// partition, a consumer for each subpartition and one record between each two of them.

import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  type ShuffleDescriptor,
  type ShuffleEnvironment,
  type ShuffleMaster,
  shuffleServiceFactory,
} from '../client/index.ts'
import type { ClusterPlace } from './load-tasks.ts'

export interface LifeCycleTask {
  readonly place: ClusterPlace
  readonly name: string
  readonly jobCount: number
  readonly atATime: number
  readonly producers: number
  readonly consumers: number
}

export interface LifeCycleResult {
  readonly seconds: number
  /** Milliseconds of each, from before its registration to after its release. */
  readonly durationsMs: readonly number[]
}

const partitionMemoryBytes = 8 * 32_768
const gateMemoryBytes = 4 * 32_768

interface Sides {
  readonly master: ShuffleMaster
  readonly environment: ShuffleEnvironment
}

export async function runLifeCycles(task: LifeCycleTask): Promise<LifeCycleResult> {
  const { managerUrl, clusterId, options } = task.place
  const master = shuffleServiceFactory.createShuffleMaster({ managerUrl, clusterId, codec: 'none' })
  const environment = shuffleServiceFactory.createShuffleEnvironment({
    managerUrl,
    clusterId,
    options,
  })
  await master.start()
  const durationsMs: number[] = []
  const startMs = performance.now()
  let next = 0
  try {
    await Promise.all(
      Array.from({ length: task.atATime }, async () => {
        while (next < task.jobCount) {
          const name = `${task.name}-${String(next)}`
          next += 1
          const beganMs = performance.now()
          await runOne({ master, environment }, task, name)
          durationsMs.push(performance.now() - beganMs)
        }
      }),
    )
  } finally {
    await environment.close()
    await master.close()
  }
  return { seconds: (performance.now() - startMs) / 1000, durationsMs }
}

async function runOne(sides: Sides, task: LifeCycleTask, name: string): Promise<void> {
  const { master, environment } = sides
  const jobId = parseJobId(name)
  await master.registerJob({
    jobId,
    onPartitionsLost: () => undefined,
    onJobFailed: () => undefined,
  })
  const descriptors = await Promise.all(
    Array.from({ length: task.producers }, (_, partitionIndex) =>
      master.registerPartitionWithProducer(
        jobId,
        {
          dataSetId: parseDataSetId('small'),
          partitionIndex,
          totalPartitions: task.producers,
          subpartitionCount: task.consumers,
          isBroadcast: false,
        },
        { attemptId: parseAttemptId('0') },
      ),
    ),
  )
  await Promise.all(descriptors.map((descriptor) => produce(environment, descriptor, task)))
  const counts = await Promise.all(
    Array.from({ length: task.consumers }, (_, subpartition) =>
      consume(environment, descriptors, subpartition),
    ),
  )
  await master.unregisterJob(jobId)
  const records = counts.reduce((sum, count) => sum + count, 0)
  if (records !== task.producers * task.consumers) {
    throw new Error(`${name}: ${String(records)} records came back`)
  }
}

async function produce(
  environment: ShuffleEnvironment,
  descriptor: ShuffleDescriptor,
  task: LifeCycleTask,
): Promise<void> {
  const partition = environment.createResultPartition({
    descriptor,
    memoryBytes: partitionMemoryBytes,
  })
  const record = Buffer.from(`record of ${String(descriptor.key.partitionIndex)}`)
  for (let subpartition = 0; subpartition < task.consumers; subpartition += 1) {
    const wait = partition.emitRecord(record, subpartition)
    if (wait !== undefined) await wait
  }
  await partition.finish()
}

async function consume(
  environment: ShuffleEnvironment,
  descriptors: readonly ShuffleDescriptor[],
  subpartition: number,
): Promise<number> {
  const gate = environment.createInputGate({
    inputs: descriptors.map((descriptor) => ({
      descriptor,
      firstSubpartition: subpartition,
      lastSubpartition: subpartition,
    })),
    memoryBytes: gateMemoryBytes,
  })
  let records = 0
  for await (const batch of gate) {
    if (batch.kind === 'records') records += batch.recordCount
    batch.recycle()
  }
  await gate.close()
  return records
}
