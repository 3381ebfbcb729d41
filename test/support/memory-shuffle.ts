// A shuffle in memory behind the client's interface, for tests of runtimes: committed partitions are
// lists of records, and a test can lose them. Task processes that run in this process go with it.

import { RecordBatch } from '../../client/read/record-batch.ts'
import {
  parseWorkerId,
  partitionKeyText,
  ShuffleError,
  type CommittedPartition,
  type GateBatch,
  type InputGate,
  type InputGateOptions,
  type InputStatistics,
  type JobShuffleContext,
  type LostPartition,
  type PartitionDescriptor,
  type PartitionKey,
  type ProducerDescriptor,
  type ResultPartition,
  type ResultPartitionOptions,
  type ShuffleDescriptor,
  type ShuffleEnvironment,
  type ShuffleMaster,
} from '../../client/index.ts'

type StoredRecord = { readonly subpartition: number; readonly bytes: Uint8Array }

const workerId = parseWorkerId('worker-in-memory')

/** What the cluster of a test holds. */
export class MemoryShuffle {
  readonly #partitions = new Map<string, readonly StoredRecord[]>()
  readonly #jobs = new Map<string, JobShuffleContext>()
  #sequence = 0
  /** Descriptors handed out, in order. */
  readonly allocated: ShuffleDescriptor[] = []
  /** Key texts of what was released. */
  readonly released = new Set<string>()
  /** Called before each allocation; throwing refuses it. */
  onAllocate: ((key: PartitionKey) => void) | undefined
  /** Called when a consumer begins to read. */
  onRead: ((consumer: InputGateOptions) => void) | undefined

  get jobCount(): number {
    return this.#jobs.size
  }

  get partitionCount(): number {
    return this.#partitions.size
  }

  get committedKeys(): readonly string[] {
    return [...this.#partitions.keys()]
  }

  /** What the registration of a job comes to. */
  registering = Promise.resolve()

  commit(key: PartitionKey, records: readonly StoredRecord[]): void {
    this.#partitions.set(partitionKeyText(key), records)
  }

  read(key: PartitionKey): readonly StoredRecord[] | undefined {
    return this.#partitions.get(partitionKeyText(key))
  }

  /** Forgets a committed partition; `isTold`: the job master hears of it at once. */
  lose(key: PartitionKey, isTold: boolean): void {
    this.#partitions.delete(partitionKeyText(key))
    const lost: LostPartition[] = [{ key, cause: 'lost by the test', workerId }]
    if (isTold) this.#jobs.get(key.jobId)?.onPartitionsLost(lost)
  }

  /** The ShuffleMaster of a job master. */
  master(): ShuffleMaster {
    return {
      start: () => Promise.resolve(),
      close: () => Promise.resolve(),
      registerJob: (context) => {
        this.#jobs.set(context.jobId, context)
        return this.registering
      },
      unregisterJob: (jobId) => {
        this.#jobs.delete(jobId)
        for (const text of this.#partitions.keys()) {
          if (text.startsWith(`${jobId} `)) this.#partitions.delete(text)
        }
        return Promise.resolve()
      },
      detachJob: () => Promise.resolve(),
      registerPartitionWithProducer: (jobId, partition, producer) =>
        Promise.resolve().then(() => this.#allocate(jobId, partition, producer)),
      releasePartitionExternally: (descriptor) => {
        this.released.add(partitionKeyText(descriptor.key))
        this.#partitions.delete(partitionKeyText(descriptor.key))
      },
    }
  }

  /** The ShuffleEnvironment of a task process. */
  environment(): ShuffleEnvironment {
    const statistics = {
      openPartitions: 0,
      openGates: 0,
      connections: 0,
      channels: 0,
      buffersInUse: 0,
      waiters: [],
      bytesWritten: 0,
      bytesRead: 0,
    }
    return {
      createResultPartition: (options) => new MemoryPartition(this, options),
      createInputGate: (options) => new MemoryGate(this, options),
      statistics: () => statistics,
      close: () => Promise.resolve(),
    }
  }

  #allocate(
    jobId: PartitionKey['jobId'],
    partition: PartitionDescriptor,
    { attemptId }: ProducerDescriptor,
  ): ShuffleDescriptor {
    const { dataSetId, partitionIndex, totalPartitions, subpartitionCount, isBroadcast } = partition
    const key = { jobId, dataSetId, partitionIndex, attemptId }
    this.onAllocate?.(key)
    const descriptor: ShuffleDescriptor = {
      key,
      holders: [
        {
          workerId,
          host: 'memory',
          port: 1,
          firstSubpartition: 0,
          lastSubpartition: subpartitionCount - 1,
        },
      ],
      allocation: { managerEpoch: 1, jobEpoch: 1, sequence: ++this.#sequence },
      bufferSizeBytes: 32_768,
      codec: 'none',
      subpartitionCount,
      isBroadcast,
      totalPartitions,
    }
    this.allocated.push(descriptor)
    return descriptor
  }
}

class MemoryPartition implements ResultPartition {
  readonly #shuffle: MemoryShuffle
  readonly #options: ResultPartitionOptions
  #records: StoredRecord[] = []

  constructor(shuffle: MemoryShuffle, options: ResultPartitionOptions) {
    this.#shuffle = shuffle
    this.#options = options
  }

  emitRecord(record: Uint8Array, subpartition: number): Promise<void> | undefined {
    this.#options.signal?.throwIfAborted()
    this.#records.push({ subpartition, bytes: record.slice() })
    // Now and then something has to be waited for.
    return this.#records.length % 100 === 0 ? Promise.resolve() : undefined
  }

  broadcastRecord(): Promise<void> | undefined {
    throw new Error('not used by the runtime')
  }

  emitEvent(): Promise<void> | undefined {
    throw new Error('not used by the runtime')
  }

  broadcastEvent(): Promise<void> | undefined {
    throw new Error('not used by the runtime')
  }

  finish(): Promise<CommittedPartition> {
    this.#shuffle.commit(this.#options.descriptor.key, this.#records)
    const bytes = this.#records.reduce((sum, record) => sum + record.bytes.length + 4, 0)
    return Promise.resolve({
      recordCount: this.#records.length,
      regionCount: 1,
      entryCount: this.#records.length,
      uncompressedBytes: bytes,
      storedBytes: bytes,
      bytesBySubpartition: new Float64Array(this.#options.descriptor.subpartitionCount),
      isDurable: false,
    })
  }

  abort(): void {
    this.#records = []
  }
}

class MemoryGate implements InputGate {
  readonly #shuffle: MemoryShuffle
  readonly #options: InputGateOptions
  readonly #states: InputStatistics['state'][]
  #at = 0

  constructor(shuffle: MemoryShuffle, options: InputGateOptions) {
    this.#shuffle = shuffle
    this.#options = options
    this.#states = options.inputs.map(() => 'waiting')
  }

  async nextBatch(): Promise<GateBatch | undefined> {
    // As a real one it waits, so that other things happen in between.
    await new Promise((resolve) => setImmediate(resolve))
    this.#options.signal?.throwIfAborted()
    if (this.#at === 0) this.#shuffle.onRead?.(this.#options)
    const input = this.#options.inputs[this.#at]
    if (input === undefined) return undefined
    const { key } = input.descriptor
    const records = this.#shuffle.read(key)
    if (records === undefined) {
      throw new ShuffleError('PARTITION_NOT_FOUND', 'the partition is not there', {
        fields: {
          jobId: key.jobId,
          dataSetId: key.dataSetId,
          partitionIndex: key.partitionIndex,
          attemptId: key.attemptId,
          workerId,
          inputIndex: this.#at,
        },
      })
    }
    const mine = records.filter(
      ({ subpartition }) =>
        subpartition >= input.firstSubpartition && subpartition <= input.lastSubpartition,
    )
    this.#states[this.#at] = 'finished'
    this.#at += 1
    return batchOf(mine, key, this.#at - 1)
  }

  pollBatch(): GateBatch | undefined {
    return undefined
  }

  updatePartition(): void {
    throw new Error('not used by the runtime')
  }

  inputs(): readonly InputStatistics[] {
    return this.#states.map((state, inputIndex) => ({
      inputIndex,
      state,
      isBegun: state === 'finished',
      entryCount: 0,
      byteCount: 0,
    }))
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<GateBatch, void, void> {
    for (let batch = await this.nextBatch(); batch !== undefined; batch = await this.nextBatch()) {
      yield batch
    }
  }
}

function batchOf(records: readonly StoredRecord[], key: PartitionKey, inputIndex: number) {
  const memory = Buffer.concat(
    records.map(({ bytes }) => {
      const header = Buffer.alloc(4)
      header.writeUInt32BE(bytes.length)
      return Buffer.concat([header, bytes])
    }),
  )
  return new RecordBatch({
    origin: { inputIndex, key, subpartition: 0, regionIndex: 0 },
    recordCount: records.length,
    byteCount: memory.length - 4 * records.length,
    head: undefined,
    memory,
    start: 0,
    release: () => undefined,
  })
}
