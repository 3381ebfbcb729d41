// The public API: what a runtime embeds. The only barrel.

export { realClock, sleep, type Clock, type Timer } from './common/clock.ts'
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
  parseDataSetId,
  parseJobId,
  partitionKeyText,
  type AttemptId,
  type DataSetId,
  type JobId,
  type PartitionKey,
  type PartitionKeyText,
  type WorkerId,
} from './common/ids.ts'
export { createLogger, silentLogger, type Logger } from './common/log.ts'
export { realRandom, type Random } from './common/random.ts'
export type { ShuffleDescriptor, ShuffleHolder } from './master/shuffle-descriptor.ts'
export type {
  JobShuffleContext,
  LostPartition,
  PartitionDescriptor,
  ProducerDescriptor,
} from './master/shuffle-master.ts'
export type { EventBatch, GateBatch, RecordBatch } from './read/record-batch.ts'
export * from './spi.ts'
export type { CommittedPartition } from './write/committed-partition.ts'
