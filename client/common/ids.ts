// Identity. Ids are opaque to the servers but for equality; branding keeps a job id from being
// passed where a worker id is meant.

import { ShuffleError } from './errors.ts'

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type ClusterId = Branded<'ClusterId'>
export type WorkerId = Branded<'WorkerId'>
export type ClientId = Branded<'ClientId'>
export type JobId = Branded<'JobId'>
export type DataSetId = Branded<'DataSetId'>
export type AttemptId = Branded<'AttemptId'>

/** Identity of the output of one producer attempt. The attempt is part of the key. */
export interface PartitionKey {
  readonly jobId: JobId
  readonly dataSetId: DataSetId
  /** Index of the producer within its data set, 0-based, below 2^32. */
  readonly partitionIndex: number
  readonly attemptId: AttemptId
}

/** A partition key as one string, for maps; equal exactly when the keys are. */
export type PartitionKeyText = Branded<'PartitionKeyText'>

/** Compared as (managerEpoch, jobEpoch, sequence). Each is an integer from 0 to 2^53 - 1. */
export interface AllocationId {
  readonly managerEpoch: number
  readonly jobEpoch: number
  readonly sequence: number
}

/** Longest id in bytes: Flink's ids are 80 hexadecimal characters, an application name comes before. */
export const idLengthMax = 200

const idPattern = /^[\x21-\x7e]{1,200}$/

function parseId<T extends string>(what: string, text: string): T {
  if (!idPattern.test(text)) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `${what} must be 1 to ${String(idLengthMax)} printable ASCII characters without spaces, got ${JSON.stringify(text.slice(0, 80))}`,
    )
  }
  return text as T
}

/** Each of these checks and brands an id; throws INVALID_ARGUMENT naming what was wrong. */
export const parseClusterId = (text: string): ClusterId => parseId('cluster id', text)
export const parseWorkerId = (text: string): WorkerId => parseId('worker id', text)
export const parseClientId = (text: string): ClientId => parseId('client id', text)
export const parseJobId = (text: string): JobId => parseId('job id', text)
export const parseDataSetId = (text: string): DataSetId => parseId('data set id', text)
export const parseAttemptId = (text: string): AttemptId => parseId('attempt id', text)

/** Ids contain no space, so a space separates the parts unambiguously. */
export function partitionKeyText(key: PartitionKey): PartitionKeyText {
  return `${key.jobId} ${key.dataSetId} ${String(key.partitionIndex)} ${key.attemptId}` as PartitionKeyText
}

const partitionIndexMax = 2 ** 32 - 1

/** The inverse of {@link partitionKeyText}; throws INVALID_ARGUMENT for any other text. */
export function parsePartitionKeyText(text: string): PartitionKey {
  const [jobId, dataSetId, index, attemptId, more] = text.split(' ')
  if (
    jobId === undefined ||
    dataSetId === undefined ||
    index === undefined ||
    attemptId === undefined ||
    more !== undefined ||
    !/^\d{1,10}$/.test(index) ||
    Number(index) > partitionIndexMax
  ) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `not a partition key: ${JSON.stringify(text.slice(0, 200))}`,
    )
  }
  return {
    jobId: parseJobId(jobId),
    dataSetId: parseDataSetId(dataSetId),
    partitionIndex: Number(index),
    attemptId: parseAttemptId(attemptId),
  }
}

/** Negative, zero or positive as `a` is older than, equal to or newer than `b`. */
export function compareAllocations(a: AllocationId, b: AllocationId): number {
  return a.managerEpoch - b.managerEpoch || a.jobEpoch - b.jobEpoch || a.sequence - b.sequence
}
