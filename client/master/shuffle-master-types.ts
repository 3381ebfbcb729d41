// What a runtime says to a ShuffleMaster and hears from it.

import type { ErrorCode } from '../common/errors.ts'
import type { AttemptId, DataSetId, JobId, PartitionKey, WorkerId } from '../common/ids.ts'

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
   * partition is no longer of the job's list when this is called.
   */
  onPartitionsLost(lost: readonly LostPartition[]): void
  /** The job can't go on: SUPERSEDED, or a refusal that no retry mends. The job is forgotten here. */
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
