// The interface between Sluice and a runtime that embeds it, shaped like Flink's. A runtime knows a
// shuffle service by the name of a module whose `shuffleServiceFactory` export makes a ShuffleMaster
// for the job master's process and one ShuffleEnvironment for each task process. A runtime calls
// nothing but what stands here; `client/index.ts` exports all of it.
//
//   job master                              task process
//   ShuffleMaster                           ShuffleEnvironment
//     registerJob                             createResultPartition ─> emitRecord… finish
//     allocate ─> ShuffleDescriptor ═══════>  createInputGate ─> nextBatch… undefined
//     release
//
// Errors are ShuffleErrors: `code` says what happened, `action` what to do about it, `fields` whom it
// concerns (jobId, dataSetId, partitionIndex, attemptId, workerId, inputIndex).

import { ShuffleError } from './common/errors.ts'
import type { Logger } from './common/log.ts'
import type { WaiterDescription } from './common/waiters.ts'
import type { World } from './common/world.ts'
import type { ShuffleDescriptor } from './master/shuffle-descriptor.ts'
import type { ShuffleMaster as ManagedShuffleMaster } from './master/shuffle-master.ts'
import type { GateBatch } from './read/record-batch.ts'
import type { CommittedPartition } from './write/committed-partition.ts'

/** The events that a runtime may put among its records; the bytes of each are its own. */
export const eventCodes = {
  /** The producer has written all its records. */
  endOfData: 1,
  /** Nothing more follows for the subpartition. */
  endOfPartition: 2,
  /** The end of one superstep of an iteration. */
  endOfSuperstep: 3,
  /** Any other. */
  runtimeEvent: 4,
} as const

/** What a shuffle service exports as `shuffleServiceFactory`; made once per process. */
export interface ShuffleServiceFactory {
  /** For the job master's process: registers jobs, allocates and releases partitions. */
  createShuffleMaster(context: ShuffleMasterContext): ShuffleMaster
  /** For a task process: connections and memory that its tasks share. Opens nothing yet. */
  createShuffleEnvironment(context: ShuffleEnvironmentContext): ShuffleEnvironment
}

/** What both sides need to find and trust a cluster. */
export interface ClusterContext {
  /** Base address of the manager, `http://host:port`. */
  readonly managerUrl: string
  /** A manager or worker of another cluster is refused by name. */
  readonly clusterId: string
  /** The shared token, when the cluster wants one. */
  readonly token?: string
  /** Silent when not given. */
  readonly logger?: Logger
  /** The seams to the world; the real ones when not given. */
  readonly world?: World
}

export interface ShuffleMasterContext extends ClusterContext {
  /** Buffer size of every partition it allocates; 32 KiB when not given. */
  readonly bufferSizeBytes?: number
  /** `lz4` (when not given) or `none`. */
  readonly codec?: string
}

/** The job master's side; see the methods of `client/master/shuffle-master.ts`. */
export type ShuffleMaster = Pick<ManagedShuffleMaster, keyof ManagedShuffleMaster>

export interface ShuffleEnvironmentContext extends ClusterContext {
  /** Differences from `defaultEnvironmentOptions`. */
  readonly options?: Partial<EnvironmentOptions>
}

/** The numbers of a task process. Times are milliseconds. */
export interface EnvironmentOptions {
  /** Memory of a ResultPartition that says nothing else. */
  readonly partitionMemoryBytes: number
  /** Memory of an InputGate that says nothing else. */
  readonly gateMemoryBytes: number
  /** A record larger than this is refused, on both sides: it has to lie in memory in one piece. */
  readonly recordBytesMax: number
  readonly connectTimeoutMs: number
  /** A connection without channels is closed after this. */
  readonly connectionIdleMs: number
  /** Ping interval on a quiet connection, and how many may stay unanswered. */
  readonly pingIntervalMs: number
  readonly idlePingsMax: number
  /** How long the opening of a write is retried. */
  readonly writeOpenTimeoutMs: number
  /** How long an open region may wait without any credit. */
  readonly regionTimeoutMs: number
  readonly commitTimeoutMs: number
  /** How long a reader retries a worker that cannot be reached: recovery time + 15 s. */
  readonly readUnreachableTimeoutMs: number
  /** How long a read channel that has credit may stay without any frame. */
  readonly readIdleTimeoutMs: number
  /** How long PARTITION_NOT_READY and BUSY are retried before they surface. */
  readonly readRetryTimeoutMs: number
  /** Back-off between attempts: doubled from the first to the last. */
  readonly retryDelayMinMs: number
  readonly retryDelayMaxMs: number
  /** LZ4 blocks of one partition or gate that are in work at a time. */
  readonly computeParallelism: number
  /** `true`: entries are compressed with the descriptor's codec where that makes them smaller. */
  readonly isCompressionEnabled: boolean
}

export interface ShuffleEnvironment {
  /** For one attempt of one producer. Synchronous; the worker is asked at the first full buffer. */
  createResultPartition(options: ResultPartitionOptions): ResultPartition
  /** For one consumer. Synchronous; channels are opened by the first `nextBatch`. */
  createInputGate(options: InputGateOptions): InputGate
  /** A snapshot: what is open, in use and waited for; all zero when every task is done. */
  statistics(): EnvironmentStatistics
  /** Aborts what is still open, closes all connections. Idempotent. */
  close(): Promise<void>
}

export interface EnvironmentStatistics {
  readonly openPartitions: number
  readonly openGates: number
  readonly connections: number
  readonly channels: number
  /** Pooled buffers that are out, in all partitions and gates. */
  readonly buffersInUse: number
  /** What is waited for at this moment. */
  readonly waiters: readonly WaiterDescription[]
  readonly bytesWritten: number
  readonly bytesRead: number
}

export interface ResultPartitionOptions {
  readonly descriptor: ShuffleDescriptor
  /** Bound of all pooled memory; at least eight buffers of the descriptor's size. */
  readonly memoryBytes?: number
  /** Aborts the partition: every pending and later call rejects with CANCELLED. */
  readonly signal?: AbortSignal
  /** Helps the worker to choose a disk. */
  readonly expectedBytes?: number
}

/**
 * The output of one producer attempt. Calls are made one after another: where a call returns a
 * promise, the next call waits for it. After a rejection only `abort` makes sense: the attempt has
 * failed, nothing of it will ever be readable.
 */
export interface ResultPartition {
  /**
   * Adds a record (any bytes, none included) for one subpartition. Returns undefined when there is
   * nothing to wait for, the usual case, and `record` may be reused at once; otherwise a promise,
   * and `record` must stay unchanged until it settles:
   *
   *     const wait = partition.emitRecord(record, subpartition)
   *     if (wait !== undefined) await wait
   */
  emitRecord(record: Uint8Array, subpartition: number): Promise<void> | undefined
  /** Adds a record for every subpartition; it is sent and stored once. */
  broadcastRecord(record: Uint8Array): Promise<void> | undefined
  /** Adds an event, one of `eventCodes`, at most an entry long, in order with the records. */
  emitEvent(code: number, bytes: Uint8Array, subpartition: number): Promise<void> | undefined
  broadcastEvent(code: number, bytes: Uint8Array): Promise<void> | undefined
  /** Sends the rest and commits. Resolves when the partition can be read; the task succeeds only then. */
  finish(): Promise<CommittedPartition>
  /** Gives everything up and frees it; a no-op after `finish` has resolved. Idempotent, never throws. */
  abort(reason?: unknown): void
}

export interface GateInput {
  readonly descriptor: ShuffleDescriptor
  /** The range of subpartitions to read, both ends included. */
  readonly firstSubpartition: number
  readonly lastSubpartition: number
  /** The producer may not have committed yet: PARTITION_NOT_READY is waited out for a while. */
  readonly isPending?: boolean
}

export interface InputGateOptions {
  readonly inputs: readonly GateInput[]
  /** Bound of all pooled memory; at least four buffers of the descriptors' size. */
  readonly memoryBytes?: number
  /** Closes the gate: pending and later calls reject with CANCELLED. */
  readonly signal?: AbortSignal
}

export interface InputStatistics {
  readonly inputIndex: number
  readonly state: 'waiting' | 'reading' | 'finished' | 'failed'
  /** Whether anything of it was handed out: then no other attempt may take its place. */
  readonly isBegun: boolean
  readonly entryCount: number
  readonly byteCount: number
}

/**
 * The input of one consumer: all records of a range of subpartitions of many partitions. Within one
 * partition they come region by region, subpartition by subpartition, as emitted; between partitions
 * nothing is promised.
 */
export interface InputGate extends AsyncIterable<GateBatch> {
  /**
   * The next batch, as soon as there is one; undefined when every input has finished and all of it
   * was handed out. Recycle each batch soon: a gate gives out no more than its memory.
   *
   * Rejects with a ShuffleError for the first input that failed and was not yet told of, its fields
   * naming the input; nothing more of that input comes. The other inputs go on: call again. When
   * only failed inputs are left it rejects with their error each time, and never ends.
   */
  nextBatch(): Promise<GateBatch | undefined>
  /** Like nextBatch, for the hot path: what is there now, or undefined when one has to wait. */
  pollBatch(): GateBatch | undefined
  /**
   * Reads `descriptor`, another attempt or another holder, in place of a failed or unfinished input.
   * Refused with INVALID_ARGUMENT when something of the input was handed out and the attempt is
   * another one: bytes of two attempts are never mixed.
   */
  updatePartition(inputIndex: number, descriptor: ShuffleDescriptor): void
  inputs(): readonly InputStatistics[]
  /** Ends everything at once and frees it; pending calls reject with CANCELLED. Idempotent. */
  close(): Promise<void>
}

/**
 * Loads a shuffle service by the name of its module: a package, a path or a URL, as `import` takes
 * it. Rejects with INVALID_ARGUMENT when the module has no `shuffleServiceFactory`.
 */
export async function loadShuffleServiceFactory(
  moduleName: string,
): Promise<ShuffleServiceFactory> {
  const module = (await import(moduleName)) as { readonly shuffleServiceFactory?: unknown }
  const factory = module.shuffleServiceFactory
  if (!isFactory(factory)) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `module ${moduleName} has no export shuffleServiceFactory with createShuffleMaster and createShuffleEnvironment`,
    )
  }
  return factory
}

function isFactory(value: unknown): value is ShuffleServiceFactory {
  if (typeof value !== 'object' || value === null) return false
  const candidate = value as Readonly<Record<string, unknown>>
  return (
    typeof candidate['createShuffleMaster'] === 'function' &&
    typeof candidate['createShuffleEnvironment'] === 'function'
  )
}
