// Everything that a seed decides beforehand: how large the cluster is, what the jobs do, which faults
// come when. The world decides the rest from the same seed.

import type { VirtualRandom } from '../support/virtual-random.ts'
import type { OutputShape } from './content.ts'
import { drawFaults, type FaultPlan } from './fault-plan.ts'

export interface ClusterPlan {
  readonly workerCount: number
  readonly directoriesPerWorker: number
  readonly diskKind: 'ssd' | 'hdd'
  readonly durability: 'none' | 'sync'
  readonly smallPartitionBytes: number
  readonly workerBufferBytes: number
  /** Of the worker's memory; as few as it takes, so that memory is short at times. */
  readonly workerMemoryBuffers: number
  /** Of the data sets; at most the workers'. */
  readonly bufferSizeBytes: number
  readonly isCompressed: boolean
  readonly isTokenWanted: boolean
  readonly taskHostCount: number
  readonly chunkBytesMax: number
  readonly latencyMaxMs: number
  /** About how long the jobs take when nothing happens; the faults fall into this time. */
  readonly spanMs: number
  readonly placement: 'round-robin' | 'min-number' | 'locality' | 'random'
}

export interface StagePlan {
  readonly taskCount: number
  /** What each task emits; undefined in the last stage. */
  readonly outputs: readonly OutputShape[] | undefined
  readonly subpartitionCount: number
  readonly partitionMemoryBuffers: number
  readonly gateMemoryBuffers: number
  /** How long tasks of the stage wait before they begin, at most. */
  readonly delayMaxMs: number
  /** How long a task does something else, once in so many records. */
  readonly pauseMaxMs: number
  readonly pauseEvery: number
  /** Consumers start when the producers' partitions are allocated, not when they are committed. */
  readonly isEager: boolean
  /** Tasks write while they read: their gate gets no credit while a write waits. */
  readonly isInterleaved: boolean
}

export interface JobPlan {
  readonly name: string
  readonly startMs: number
  readonly stages: readonly StagePlan[]
  /** Chances, for each attempt or partition. */
  readonly twinChance: number
  readonly cancelChance: number
  readonly earlyReleaseChance: number
  readonly zombieChance: number
  readonly updateChance: number
  readonly wholeRangeChance: number
}

export interface Plan {
  readonly cluster: ClusterPlan
  readonly jobs: readonly JobPlan[]
  readonly faults: readonly FaultPlan[]
}

export interface PlanOptions {
  /** Without any fault. */
  readonly isCalm?: boolean
}

export function drawPlan(random: VirtualRandom, options: PlanOptions = {}): Plan {
  const cluster = drawCluster(random.fork('cluster'))
  const jobs = drawJobs(random.fork('jobs'), cluster)
  const faults = options.isCalm === true ? [] : drawFaults(random.fork('faults'), cluster.spanMs)
  return { cluster, jobs, faults }
}

function drawCluster(random: VirtualRandom): ClusterPlan {
  const workerBufferBytes = pick(random, [4096, 4096, 8192])
  return {
    workerCount: pick(random, [1, 2, 2, 2, 3, 3, 5]),
    directoriesPerWorker: pick(random, [1, 1, 1, 2, 2, 3]),
    diskKind: pick(random, ['ssd', 'ssd', 'hdd'] as const),
    durability: pick(random, ['none', 'none', 'sync'] as const),
    smallPartitionBytes: pick(random, [0, 4096, 65_536]),
    workerBufferBytes,
    workerMemoryBuffers: pick(random, [384, 384, 192]),
    bufferSizeBytes: pick(random, [1024, 2048, 4096, workerBufferBytes]),
    isCompressed: random.chance(0.6),
    isTokenWanted: random.chance(0.2),
    taskHostCount: pick(random, [1, 2, 3]),
    chunkBytesMax: pick(random, [0, 0, 200, 2000, 20_000]),
    latencyMaxMs: pick(random, [0.5, 0.5, 2, 20]),
    spanMs: pick(random, [60, 300, 1500, 6000]),
    placement: pick(random, ['round-robin', 'round-robin', 'min-number', 'locality', 'random']),
  }
}

function drawJobs(random: VirtualRandom, cluster: ClusterPlan): readonly JobPlan[] {
  return Array.from({ length: pick(random, [1, 2, 2, 2, 2, 3, 3]) }, (_, index) => ({
    name: `job-${String(index)}`,
    startMs: index === 0 ? 0 : random.integer(cluster.spanMs / 2),
    stages: drawStages(random, cluster),
    twinChance: pick(random, [0, 0, 0.3]),
    cancelChance: pick(random, [0, 0, 0.15]),
    earlyReleaseChance: pick(random, [0, 0, 0.2]),
    zombieChance: pick(random, [0, 0, 0.3]),
    updateChance: pick(random, [0, 0.5, 1]),
    wholeRangeChance: pick(random, [0, 0, 0.3]),
  }))
}

function drawStages(random: VirtualRandom, cluster: ClusterPlan): readonly StagePlan[] {
  const stageCount = pick(random, [2, 2, 2, 3])
  return Array.from({ length: stageCount }, (_, index) => {
    const taskCount = pick(random, [1, 1, 1, 2, 2, 4])
    const isLast = index === stageCount - 1
    return {
      taskCount,
      outputs: isLast
        ? undefined
        : Array.from({ length: taskCount }, () => drawShape(random, cluster)),
      subpartitionCount: pick(random, [1, 2, 2, 3, 5, 5, 8, 30]),
      partitionMemoryBuffers: pick(random, [8, 8, 12, 32]),
      gateMemoryBuffers: pick(random, [4, 8, 16, 64]),
      delayMaxMs: cluster.spanMs / 2,
      pauseMaxMs: cluster.spanMs / 6,
      pauseEvery: pick(random, [20, 100, 400]),
      isEager: random.chance(0.25),
      isInterleaved: random.chance(0.3),
    }
  })
}

function drawShape(random: VirtualRandom, cluster: ClusterPlan): OutputShape {
  const recordCount = pick(random, [0, 1, 10, 80, 300, 600])
  const isHuge = recordCount > 0 && random.chance(0.15)
  return {
    recordCount,
    recordBytesMax: pick(random, [1, 30, 100, 300]),
    hugeRecordBytes: isHuge ? random.integer(16 * cluster.bufferSizeBytes) : 0,
    broadcastShare: pick(random, [0, 0, 0.02, 1]),
    eventShare: pick(random, [0, 0, 0.01]),
    usedShare: pick(random, [1, 1, 0.3]),
  }
}

export function pick<T>(random: VirtualRandom, from: readonly T[]): T {
  return from[random.integer(from.length)] as T
}
