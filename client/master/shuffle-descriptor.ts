// What the job master hands to producers and consumers so that they find a partition: a plain value
// that the runtime may serialise its own way, or as JSON with the codec here. It carries no worker
// epoch: a worker that comes back with its data is as good as before. Its location is a hint.

import { ShuffleError } from '../common/errors.ts'
import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  parseWorkerId,
  type AllocationId,
  type PartitionKey,
  type WorkerId,
} from '../common/ids.ts'

/** A worker that holds a range of a partition's subpartitions; one per partition for now. */
export interface ShuffleHolder {
  readonly workerId: WorkerId
  /** A name, resolved at each dial. */
  readonly host: string
  /** The worker's data port. */
  readonly port: number
  /** Inclusive. */
  readonly firstSubpartition: number
  /** Inclusive. */
  readonly lastSubpartition: number
}

export interface ShuffleDescriptor {
  readonly key: PartitionKey
  readonly holders: readonly ShuffleHolder[]
  readonly allocation: AllocationId
  readonly bufferSizeBytes: number
  /** The client's affair; the servers only pass it on. */
  readonly codec: string
  readonly subpartitionCount: number
  readonly isBroadcast: boolean
  /** Producers of the data set. */
  readonly totalPartitions: number
  /** Hint for the reservation of space, where the runtime knows it. */
  readonly expectedBytes?: number
}

/** One line of JSON; read back by {@link decodeShuffleDescriptor}. */
export function encodeShuffleDescriptor(descriptor: ShuffleDescriptor): string {
  return JSON.stringify(descriptor)
}

/** Throws INVALID_ARGUMENT naming the field that is missing or of another kind. */
export function decodeShuffleDescriptor(text: string): ShuffleDescriptor {
  const root = record(parseJson(text), 'descriptor')
  const key = record(root['key'], 'key')
  const allocation = record(root['allocation'], 'allocation')
  const holders = root['holders']
  if (!Array.isArray(holders) || holders.length === 0) {
    throw invalid('holders', 'a list of at least one holder')
  }
  const expectedBytes = root['expectedBytes']
  return {
    key: {
      jobId: parseJobId(string(key, 'jobId')),
      dataSetId: parseDataSetId(string(key, 'dataSetId')),
      partitionIndex: integer(key, 'partitionIndex'),
      attemptId: parseAttemptId(string(key, 'attemptId')),
    },
    holders: holders.map(decodeHolder),
    allocation: {
      managerEpoch: integer(allocation, 'managerEpoch'),
      jobEpoch: integer(allocation, 'jobEpoch'),
      sequence: integer(allocation, 'sequence'),
    },
    bufferSizeBytes: integer(root, 'bufferSizeBytes'),
    codec: string(root, 'codec'),
    subpartitionCount: integer(root, 'subpartitionCount'),
    isBroadcast: root['isBroadcast'] === true,
    totalPartitions: integer(root, 'totalPartitions'),
    ...(expectedBytes === undefined ? {} : { expectedBytes: integer(root, 'expectedBytes') }),
  }
}

function decodeHolder(value: unknown): ShuffleHolder {
  const holder = record(value, 'holders')
  return {
    workerId: parseWorkerId(string(holder, 'workerId')),
    host: string(holder, 'host'),
    port: integer(holder, 'port'),
    firstSubpartition: integer(holder, 'firstSubpartition'),
    lastSubpartition: integer(holder, 'lastSubpartition'),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ShuffleError('INVALID_ARGUMENT', 'a shuffle descriptor must be JSON', {
      cause: error,
    })
  }
}

function record(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(field, 'an object')
  }
  return value as Record<string, unknown>
}

function string(from: Record<string, unknown>, field: string): string {
  const value = from[field]
  if (typeof value !== 'string') throw invalid(field, 'a string')
  return value
}

function integer(from: Record<string, unknown>, field: string): number {
  const value = from[field]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw invalid(field, 'an integer of 0 or more')
  }
  return value
}

function invalid(field: string, expected: string): ShuffleError {
  return new ShuffleError(
    'INVALID_ARGUMENT',
    `shuffle descriptor: the field '${field}' must be ${expected}`,
    { fields: { field } },
  )
}
