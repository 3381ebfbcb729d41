// The job master's side of the shuffle, shaped like Flink's ShuffleMaster. One per job master
// process, for any number of jobs: it registers them, asks for partitions, releases them and learns
// of lost ones. Its list of partitions is the truth about what should exist.

import type { ErrorCode } from '../common/errors.ts'
import type { AttemptId, DataSetId, JobId, PartitionKey, WorkerId } from '../common/ids.ts'
import type { Logger } from '../common/log.ts'
import type { World } from '../common/world.ts'
import type { ManagerClient } from '../manager/manager-client.ts'
import type { ShuffleDescriptor } from './shuffle-descriptor.ts'

export interface LostPartition {
  readonly key: PartitionKey
  readonly cause: string
  readonly workerId: WorkerId
}

/** What the runtime tells of a job; the ShuffleMaster calls back. */
export interface JobShuffleContext {
  readonly jobId: JobId
  readonly tenant?: string
  /** Takes the job over from another living client, which is told SUPERSEDED. */
  readonly takeOver?: boolean
  /**
   * Committed data of these partitions is gone: produce them again. Called once per partition; the
   * partition is no longer of the job's list when this returns.
   */
  onPartitionsLost(lost: readonly LostPartition[]): void
  /** The job can't go on: SUPERSEDED, or a refusal that no retry mends. */
  onJobFailed(error: { readonly code: ErrorCode; readonly message: string }): void
}

export interface PartitionDescriptor {
  readonly dataSetId: DataSetId
  readonly partitionIndex: number
  readonly totalPartitions: number
  readonly subpartitionCount: number
  readonly isBroadcast: boolean
  readonly expectedBytes?: number
}

export interface ProducerDescriptor {
  readonly attemptId: AttemptId
  /** Where the producer runs, for placement by locality. */
  readonly host?: string
}

export interface ShuffleMasterOptions {
  readonly world: Pick<World, 'clock' | 'random'>
  readonly logger: Logger
  /** Owned by the caller: closed by whoever made it. */
  readonly managerClient: ManagerClient
  readonly bufferSizeBytes: number
  readonly codec: string
}

export class ShuffleMaster {
  constructor(options: ShuffleMasterOptions) {
    void options
  }

  /** Begins to heartbeat. */
  start(): Promise<void> {
    throw new Error('not written yet')
  }

  /** Stops; jobs that are still registered are neither released nor detached. */
  close(): Promise<void> {
    throw new Error('not written yet')
  }

  registerJob(_context: JobShuffleContext): Promise<void> {
    throw new Error('not written yet')
  }

  /** The job has ended: releases everything of it. */
  unregisterJob(_jobId: JobId): Promise<void> {
    throw new Error('not written yet')
  }

  /** Keeps the job's data for a while although this process goes; forgets the job here. */
  detachJob(_jobId: JobId): Promise<void> {
    throw new Error('not written yet')
  }

  /** Chooses a worker for the output of one producer attempt. */
  registerPartitionWithProducer(
    _jobId: JobId,
    _partition: PartitionDescriptor,
    _producer: ProducerDescriptor,
  ): Promise<ShuffleDescriptor> {
    throw new Error('not written yet')
  }

  /** Asynchronous, idempotent, never throws. */
  releasePartitionExternally(_descriptor: ShuffleDescriptor): void {
    throw new Error('not written yet')
  }
}
