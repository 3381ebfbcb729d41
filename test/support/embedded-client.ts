// A runtime of a few lines in the test's own process: a master and an environment over the public
// API, for end-to-end tests that need to stop between two steps.

import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  shuffleServiceFactory,
  type EnvironmentOptions,
  type InputGate,
  type LostPartition,
  type ShuffleDescriptor,
  type ShuffleEnvironment,
  type ShuffleMaster,
} from '../../client/index.ts'

export interface EmbeddedClientOptions {
  readonly managerUrl: string
  readonly jobId?: string
  readonly token?: string
  readonly clusterId?: string
  readonly options?: Partial<EnvironmentOptions>
}

export class EmbeddedClient implements AsyncDisposable {
  readonly jobId
  readonly master: ShuffleMaster
  readonly environment: ShuffleEnvironment
  readonly lost: LostPartition[] = []

  private constructor(options: EmbeddedClientOptions) {
    this.jobId = parseJobId(options.jobId ?? 'embedded')
    const context = {
      managerUrl: options.managerUrl,
      clusterId: options.clusterId ?? 'sluice',
      ...(options.token === undefined ? {} : { token: options.token }),
    }
    this.master = shuffleServiceFactory.createShuffleMaster(context)
    this.environment = shuffleServiceFactory.createShuffleEnvironment({
      ...context,
      ...(options.options === undefined ? {} : { options: options.options }),
    })
  }

  /** Starts a master and registers the job. */
  static async start(options: EmbeddedClientOptions): Promise<EmbeddedClient> {
    const client = new EmbeddedClient(options)
    await client.master.start()
    await client.master.registerJob({
      jobId: client.jobId,
      onPartitionsLost: (lost) => client.lost.push(...lost),
      onJobFailed: () => undefined,
    })
    return client
  }

  /** Allocates a place for one partition of a data set of `subpartitionCount` subpartitions. */
  async allocate(index: number, subpartitionCount: number): Promise<ShuffleDescriptor> {
    return await this.master.registerPartitionWithProducer(
      this.jobId,
      {
        dataSetId: parseDataSetId('data'),
        partitionIndex: index,
        totalPartitions: index + 1,
        subpartitionCount,
        isBroadcast: false,
      },
      { attemptId: parseAttemptId('attempt-0') },
    )
  }

  /** Writes and commits one partition; `records` by subpartition. */
  async write(
    descriptor: ShuffleDescriptor,
    records: readonly (readonly string[])[],
  ): Promise<void> {
    const partition = this.environment.createResultPartition({ descriptor })
    try {
      for (const [subpartition, texts] of records.entries()) {
        for (const text of texts) await partition.emitRecord(Buffer.from(text), subpartition)
      }
      await partition.finish()
    } catch (error) {
      partition.abort(error)
      throw error
    }
  }

  gate(
    descriptors: readonly ShuffleDescriptor[],
    range: { readonly first: number; readonly last: number },
  ): InputGate {
    return this.environment.createInputGate({
      inputs: descriptors.map((descriptor) => ({
        descriptor,
        firstSubpartition: range.first,
        lastSubpartition: range.last,
      })),
    })
  }

  /** Everything that a gate over these partitions hands out, as texts. */
  async read(
    descriptors: readonly ShuffleDescriptor[],
    range: { readonly first: number; readonly last: number },
  ): Promise<string[]> {
    const gate = this.gate(descriptors, range)
    const texts: string[] = []
    try {
      for await (const batch of gate) {
        if (batch.kind === 'records') {
          batch.forEach((bytes, start, end) => {
            texts.push(Buffer.from(bytes.subarray(start, end)).toString())
          })
        }
        batch.recycle()
      }
    } finally {
      await gate.close()
    }
    return texts
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.environment.close()
    await this.master.close()
  }
}
