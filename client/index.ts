// The public API of Sluice, and the only barrel. A runtime that embeds the shuffle imports from here
// and from nowhere else.

export type { Clock, Timer } from './common/clock.ts'
export {
  errorTable,
  isShuffleError,
  ShuffleError,
  type ErrorAction,
  type ErrorCode,
  type ErrorFields,
} from './common/errors.ts'
export {
  parseAttemptId,
  parseClientId,
  parseClusterId,
  parseDataSetId,
  parseJobId,
  parsePartitionKeyText,
  parseWorkerId,
  partitionKeyText,
  type AllocationId,
  type AttemptId,
  type ClientId,
  type ClusterId,
  type DataSetId,
  type JobId,
  type PartitionKey,
  type PartitionKeyText,
  type WorkerId,
} from './common/ids.ts'
export { createLogger, silentLogger, type Logger, type LogLevel } from './common/log.ts'
export { realWorld } from './common/real-world.ts'
export type { WaiterDescription } from './common/waiters.ts'
export type { World } from './common/world.ts'
export {
  decodeShuffleDescriptor,
  encodeShuffleDescriptor,
  type ShuffleDescriptor,
  type ShuffleHolder,
} from './master/shuffle-descriptor.ts'
export type {
  JobShuffleContext,
  LostPartition,
  PartitionDescriptor,
  ProducerDescriptor,
} from './master/shuffle-master-types.ts'
export type { BatchOrigin, EventBatch, GateBatch, RecordBatch } from './read/record-batch.ts'
export { defaultEnvironmentOptions } from './shuffle-environment.ts'
export { shuffleServiceFactory } from './shuffle-service-factory.ts'
export {
  eventCodes,
  loadShuffleServiceFactory,
  type ClusterContext,
  type EnvironmentOptions,
  type EnvironmentStatistics,
  type GateInput,
  type InputGate,
  type InputGateOptions,
  type InputStatistics,
  type ResultPartition,
  type ResultPartitionOptions,
  type ShuffleEnvironment,
  type ShuffleEnvironmentContext,
  type ShuffleMaster,
  type ShuffleMasterContext,
  type ShuffleServiceFactory,
} from './spi.ts'
export type { CommittedPartition } from './write/committed-partition.ts'
