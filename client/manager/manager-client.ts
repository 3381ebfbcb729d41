// The shuffle manager as its callers see it: one method a call, time-outs on the Clock, retries with
// back-off. Owned by whoever made it: a ShuffleMaster, a task process, a worker or the command line.

import type { Logger } from '../common/log.ts'
import type {
  AttemptId,
  ClusterId,
  DataSetId,
  JobId,
  PartitionKey,
  WorkerId,
} from '../common/ids.ts'
import type { World } from '../common/world.ts'

export interface ManagerClientOptions {
  readonly world: Pick<World, 'clock' | 'network' | 'random'>
  readonly logger: Logger
  /** `http://host:port` */
  readonly url: string
  readonly clusterId: ClusterId
  readonly token?: string
  /** A call without an answer by then is repeated. */
  readonly callTimeoutMs?: number
  /** A call that keeps failing for so long ends with NO_MANAGER. */
  readonly retryForMs?: number
}

export interface PartitionLocation {
  readonly workerId: WorkerId
  readonly host: string
  readonly port: number
}

export interface DescribedPartition {
  readonly partitionIndex: number
  readonly attemptId: AttemptId
  readonly state: 'allocated' | 'committed' | 'lost'
  readonly holder: PartitionLocation
}

export interface DataSetDescription {
  readonly version: number
  readonly dataSetId: DataSetId
  readonly totalPartitions: number
  readonly subpartitionCount: number
  readonly isBroadcast: boolean
  readonly partitions: readonly DescribedPartition[]
}

/** What a task process saw go wrong; for people and for the event ring, dropped when the manager is away. */
export interface FailureReport {
  readonly key: PartitionKey
  readonly workerId: WorkerId
  readonly code: string
}

/** What a Locator needs; ManagerClient is one. */
export interface PartitionLocator {
  /** Present holders, in the order of `keys`; undefined where the manager knows none. */
  locate(
    jobId: JobId,
    keys: readonly PartitionKey[],
  ): Promise<readonly (PartitionLocation | undefined)[]>
}

export class ManagerClient implements PartitionLocator {
  constructor(options: ManagerClientOptions) {
    void options
  }

  locate(
    _jobId: JobId,
    _keys: readonly PartitionKey[],
  ): Promise<readonly (PartitionLocation | undefined)[]> {
    throw new Error('not written yet')
  }

  /** The description of a data set, as of now. */
  describeDataSet(_jobId: JobId, _dataSetId: DataSetId): Promise<DataSetDescription> {
    throw new Error('not written yet')
  }

  /** Bounded and best effort: never rejects. */
  reportFailures(
    _jobId: JobId,
    _failures: readonly FailureReport[],
    _timeInStateMs: Readonly<Record<string, number>>,
  ): Promise<void> {
    throw new Error('not written yet')
  }

  /** Ends running calls with CANCELLED and closes the connections. */
  close(): Promise<void> {
    throw new Error('not written yet')
  }
}
