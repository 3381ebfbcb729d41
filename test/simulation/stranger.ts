// A peer that does what no peer may: of another version or cluster, without the token, beyond limits, out
// of order. Each act must be refused by its name, and cost nobody else anything.

import { errorCodeOfWire, ShuffleError, type ErrorCode } from '../../client/common/errors.ts'
import { sleep } from '../../client/common/clock.ts'
import {
  parseAttemptId,
  parseClusterId,
  parseDataSetId,
  parseJobId,
  type JobId,
  type PartitionKey,
} from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { managerApi } from '../../client/manager/api.ts'
import { encodeAttempts } from '../../client/manager/key-columns.ts'
import { ManagerClient } from '../../client/manager/manager-client.ts'
import type { CallInput, Route } from '../../client/manager/route.ts'
import type { ShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { FrameEncoder } from '../../client/protocol/frame-encoder.ts'
import { framePrefixLength } from '../../client/protocol/frame.ts'
import { messages, protocolMagic } from '../../client/protocol/messages.ts'
import { shuffleServiceFactory } from '../../client/shuffle-service-factory.ts'
import type { ShuffleWorker } from '../../shuffle-worker/worker.ts'
import { RawClient } from '../shuffle-worker/support/raw-client.ts'
import { clusterId, clusterToken, limits, managerUrl, type ClusterContext } from './cluster.ts'
import { SimProcess } from './process.ts'

export interface StrangerTarget {
  readonly host: string
  readonly worker: ShuffleWorker
  /** A job that is registered by somebody else. */
  readonly jobName: string
}

export interface Reception {
  readonly code: string | undefined
  readonly complaint: string | undefined
}

interface Act {
  readonly name: string
  /** What it must be refused with. */
  readonly expected: ErrorCode
  /** Resolves with the code that it was refused with; undefined when nobody refused it. */
  run(stranger: Stranger, target: StrangerTarget): Promise<ErrorCode | undefined>
}

/** Answers that say nothing about the act: the one that was asked has died, or is out of reach. */
const unrelated = new Set<ErrorCode>([
  'NO_MANAGER',
  'WORKER_UNREACHABLE',
  'WRITE_INTERRUPTED',
  'WORKER_DRAINING',
  'CANCELLED',
  'BUSY',
  'JOB_UNKNOWN',
  'DISK_FAILED',
  'NO_SPACE',
  'NO_WORKER',
])
const patienceMs = 8_000

export const acts: readonly Act[] = [
  {
    name: 'a cluster id of another cluster in a call',
    expected: 'UNAUTHENTICATED',
    run: (stranger) => stranger.callAs('another-cluster', managerApi.listJobs, nothing),
  },
  {
    name: 'a version that nobody speaks',
    expected: 'UNSUPPORTED_VERSION',
    run: (stranger, target) =>
      stranger.sendHello(target, { magic: protocolMagic, versionMin: 900, versionMax: 901 }),
  },
  {
    name: 'another protocol',
    expected: 'PROTOCOL',
    run: (stranger, target) =>
      stranger.sendHello(target, { magic: 0x47455420, versionMin: 1, versionMax: 1 }),
  },
  {
    name: 'a cluster id of another cluster in Hello',
    expected: 'UNAUTHENTICATED',
    run: async (stranger, target) => {
      const client = await stranger.connect(target, { clusterId: 'another-cluster' })
      await stranger.until(() => client.isClosed)
      return client.closeError?.code
    },
  },
  {
    name: 'buffers larger than those of the worker',
    expected: 'LIMIT_EXCEEDED',
    run: async (stranger, target) => {
      const client = await stranger.connect(target)
      const channelId = client.openWrite(stranger.key(), { bufferSizeBytes: 1 << 24 })
      return stranger.refusalOf(client, channelId)
    },
  },
  {
    name: 'more channels than a connection may have',
    expected: 'LIMIT_EXCEEDED',
    run: async (stranger, target) => {
      const client = await stranger.connect(target)
      let channelId = 0
      for (let count = 0; count <= limits.channelsPerConnection; count += 1) {
        channelId = client.openRead()
      }
      return stranger.refusalOf(client, channelId)
    },
  },
  {
    name: 'a region that counts other entries than were sent',
    expected: 'COUNT_MISMATCH',
    run: async (stranger, target) => {
      const client = await stranger.connect(target)
      const channelId = client.openWrite(stranger.key())
      const region = { regionIndex: 0, isBroadcast: false, boundBytes: 100 }
      client.connection.send(messages.RegionStart, channelId, region)
      const counts = { regionIndex: 0, entryCount: 3, byteCount: 99 }
      client.connection.send(messages.RegionFinish, channelId, counts)
      return stranger.refusalOf(client, channelId)
    },
  },
  {
    name: 'two writers of one partition',
    expected: 'WRITER_CONFLICT',
    run: async (stranger, target) => {
      const client = await stranger.connect(target)
      const key = stranger.key()
      client.openWrite(key)
      return stranger.refusalOf(client, client.openWrite(key))
    },
  },
  {
    name: 'a job that somebody else has',
    expected: 'JOB_ID_IN_USE',
    run: (stranger) => stranger.registerTwice(),
  },
  {
    name: 'a list with columns of unequal length',
    expected: 'INVALID_ARGUMENT',
    run: (stranger, { jobName }) =>
      stranger.callAs(clusterId, managerApi.locatePartitions, {
        params: { jobId: jobName },
        query: {},
        body: {
          dataSets: [
            { dataSetId: 'd', attemptPrefix: '', partitionIndices: [1, 2], attempts: ['a'] },
          ],
        },
      }),
  },
  {
    name: 'more partitions than a job may have',
    expected: 'LIMIT_EXCEEDED',
    run: (stranger) => stranger.allocateTooMany(),
  },
  {
    name: 'a codec that nobody reads',
    expected: 'UNSUPPORTED_CODEC',
    run: (stranger, target) => stranger.readWithCodec(target, 'zip'),
  },
  {
    name: 'a list of which a page is missing',
    expected: 'RESYNC',
    run: (stranger) => stranger.leaveOutAPage(),
  },
  {
    name: 'more writes than the worker keeps open',
    expected: 'BUSY',
    run: async (stranger, target) => {
      const client = await stranger.connect(target)
      let channelId = 0
      for (let count = 0; count <= limits.openWrites; count += 1) {
        channelId = client.openWrite(stranger.key())
      }
      return stranger.refusalOf(client, channelId)
    },
  },
]

const nothing = { params: {}, query: {}, body: undefined } as const

/** Of the Error among the frames that were heard. */
function errorCodeOf(heard: Buffer): ErrorCode | undefined {
  for (let at = 0; at + framePrefixLength <= heard.length; at += 4 + heard.readUInt32BE(at)) {
    if (heard.readUInt8(at + 4) !== messages.Error.id) continue
    return errorCodeOfWire(heard.readUInt16BE(at + framePrefixLength))
  }
  // Cut before it came.
  return 'WORKER_UNREACHABLE'
}

export class Stranger {
  readonly process: SimProcess
  readonly #context: ClusterContext
  readonly #logger: Logger
  readonly #clients: RawClient[] = []
  readonly #name: string
  #keys = 0

  constructor(
    context: ClusterContext,
    options: { readonly name: string; readonly logger: Logger },
  ) {
    this.#context = context
    this.#name = options.name
    this.#logger = options.logger
    this.process = new SimProcess(context.virtual, options.name, context.tap)
  }

  /** How the act was received, and what is wrong with that; undefined when it is as it must be. */
  async perform(number: number, target: StrangerTarget): Promise<Reception> {
    const act = acts[number % acts.length] as Act
    let code: string | undefined
    try {
      code = await act.run(this, target)
    } catch (error) {
      code = (error as { readonly code?: string }).code ?? String(error)
    }
    for (const client of this.#clients) client.connection.close()
    if (code === act.expected || unrelated.has(code as ErrorCode) || /^E[A-Z]+$/.test(code ?? '')) {
      return { code, complaint: undefined }
    }
    const complaint = `${act.name}: must be refused with ${act.expected}, not ${code ?? 'be taken'}`
    return { code, complaint }
  }

  key(): PartitionKey {
    this.#keys += 1
    return {
      jobId: parseJobId(`job-of-${this.#name}`),
      dataSetId: parseDataSetId('data'),
      partitionIndex: this.#keys,
      attemptId: parseAttemptId('attempt'),
    }
  }

  async connect(
    { host, worker }: StrangerTarget,
    options: { readonly clusterId?: string } = {},
  ): Promise<RawClient> {
    const { isTokenWanted } = this.#context.plan
    const client = await RawClient.connect(this.process.world, {
      host,
      port: worker.dataPort,
      ...(isTokenWanted ? { token: clusterToken } : {}),
      ...options,
    })
    this.#clients.push(client)
    await this.until(() => client.isClosed || client.session !== undefined)
    return client
  }

  async refusalOf(client: RawClient, channelId: number): Promise<ErrorCode | undefined> {
    await this.until(() => client.isClosed || client.errorOf(channelId) !== undefined)
    return client.errorOf(channelId)?.code ?? client.closeError?.code ?? 'WORKER_UNREACHABLE'
  }

  /** Rejects when it has not happened for long. */
  async until(condition: () => boolean): Promise<void> {
    const { clock } = this.process.world
    const endMs = clock.nowMs() + patienceMs
    while (!condition()) {
      if (clock.nowMs() > endMs) throw new ShuffleError('WORKER_UNREACHABLE', 'no answer came')
      await sleep(clock, 5)
    }
  }

  async sendHello(
    { host, worker }: StrangerTarget,
    hello: { readonly magic: number; readonly versionMin: number; readonly versionMax: number },
  ): Promise<ErrorCode | undefined> {
    const { network } = this.process.world
    const connection = await network.connect({ host, port: worker.dataPort, timeoutMs: 5_000 })
    const heard: Buffer[] = []
    let isClosed = false
    connection.start({
      onBytes: (bytes) => {
        heard.push(Buffer.from(bytes))
      },
      onDrain: () => undefined,
      onClose: () => {
        isClosed = true
      },
    })
    const encoder = new FrameEncoder()
    encoder.append(messages.Hello, 0, {
      ...hello,
      features: 0n,
      clusterId: undefined,
      expectedWorkerId: undefined,
      heartbeatIntervalMs: 10_000,
      software: 'stranger',
    })
    connection.write(encoder.take())
    await this.until(() => isClosed)
    return errorCodeOf(Buffer.concat(heard))
  }

  /** One try of a call; the code of its error. */
  async callAs<R extends Route>(
    cluster: string,
    route: R,
    input: CallInput<R>,
  ): Promise<ErrorCode | undefined> {
    const client = this.#managerClient(cluster)
    try {
      await client.call(route, input, { retryForMs: 0 })
      return undefined
    } catch (error) {
      return (error as ShuffleError).code
    } finally {
      await client.close()
    }
  }

  registerTwice(): Promise<ErrorCode | undefined> {
    return this.#withJob(async (client, params) => {
      const registerAs = (clientId: string) =>
        client.call(managerApi.registerJob, { params, query: {}, body: { clientId } })
      // A manager that was started again in between knows nothing of the first.
      for (let tries = 0; tries < 3; tries += 1) {
        await registerAs(`one-of-${String(tries)}`)
        await registerAs(`other-of-${String(tries)}`)
      }
    })
  }

  allocateTooMany(): Promise<ErrorCode | undefined> {
    const attempts = Array.from({ length: limits.jobPartitions + 1 }, (_, partitionIndex) => ({
      partitionIndex,
      attemptId: parseAttemptId('a'),
    }))
    const facts = {
      dataSetId: 'd',
      totalPartitions: attempts.length,
      subpartitionCount: 1,
      isBroadcast: false,
    }
    return this.#withJob(async (client, params) => {
      const jobEpoch = await this.#register(client, params)
      const body = { jobEpoch, dataSet: facts, ...encodeAttempts(attempts) }
      await client.call(managerApi.allocatePartitions, { params, query: {}, body })
    })
  }

  leaveOutAPage(): Promise<ErrorCode | undefined> {
    return this.#withJob(async (client, params) => {
      const jobEpoch = await this.#register(client, params)
      const nothingListed = { dataSets: [], workers: [], groups: [] }
      const body = { jobEpoch, report: 'list', page: 1, last: true, ...nothingListed }
      await client.call(managerApi.reportPartitions, { params, query: {}, body })
    })
  }

  /** What `work` with a job of its own comes to; the job is gone afterwards. */
  async #withJob(
    work: (client: ManagerClient, params: { readonly jobId: JobId }) => Promise<void>,
  ): Promise<ErrorCode | undefined> {
    const client = this.#managerClient(clusterId)
    try {
      await work(client, { jobId: this.key().jobId })
      return undefined
    } catch (error) {
      return (error as ShuffleError).code
    } finally {
      await this.#deleteJob(client)
      await client.close()
    }
  }

  async #register(client: ManagerClient, params: { readonly jobId: JobId }): Promise<number> {
    const registration = { params, query: {}, body: { clientId: this.#name } }
    return (await client.call(managerApi.registerJob, registration)).jobEpoch
  }

  async #deleteJob(client: ManagerClient): Promise<void> {
    const params = { jobId: this.key().jobId }
    await client
      .call(managerApi.deleteJob, { params, query: {}, body: undefined })
      .catch(() => undefined)
  }

  async readWithCodec(
    { host, worker }: StrangerTarget,
    codec: string,
  ): Promise<ErrorCode | undefined> {
    const environment = shuffleServiceFactory.createShuffleEnvironment({
      managerUrl,
      clusterId,
      logger: this.#logger,
      world: this.process.world,
    })
    const descriptor: ShuffleDescriptor = {
      key: this.key(),
      holders: [
        {
          workerId: worker.workerId,
          host,
          port: worker.dataPort,
          firstSubpartition: 0,
          lastSubpartition: 0,
        },
      ],
      allocation: { managerEpoch: 1, jobEpoch: 1, sequence: 1 },
      bufferSizeBytes: 1024,
      codec,
      subpartitionCount: 1,
      isBroadcast: false,
      totalPartitions: 1,
    }
    try {
      environment.createInputGate({
        inputs: [{ descriptor, firstSubpartition: 0, lastSubpartition: 0 }],
        memoryBytes: 64 * 1024,
      })
      return undefined
    } catch (error) {
      return (error as ShuffleError).code
    } finally {
      await environment.close()
    }
  }

  #managerClient(cluster: string): ManagerClient {
    return new ManagerClient({
      world: this.process.world,
      logger: this.#logger,
      url: managerUrl,
      clusterId: parseClusterId(cluster),
      ...(this.#context.plan.isTokenWanted ? { token: clusterToken } : {}),
    })
  }
}
