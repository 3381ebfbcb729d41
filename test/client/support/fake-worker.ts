// A worker of one small file, over the virtual network: it keeps partitions in memory, checks what a
// producer sends, serves readers under credit, and does what a test tells it to do wrong. Written
// apart from the real worker, so that the client is judged by the protocol and not by its twin.

import type { PooledBuffer } from '../../../client/common/buffer.ts'
import { ShuffleError, type ErrorCode } from '../../../client/common/errors.ts'
import { parseClusterId, parseWorkerId, partitionKeyText } from '../../../client/common/ids.ts'
import type { PartitionKey, WorkerId } from '../../../client/common/ids.ts'
import type { Listener } from '../../../client/common/network.ts'
import { EntryReader } from '../../../client/protocol/entry.ts'
import { messages } from '../../../client/protocol/messages.ts'
import { ProtocolConnection } from '../../../client/protocol/protocol-connection.ts'
import type { ChannelMessage } from '../../../client/protocol/protocol-connection.ts'
import { wireErrorFields } from '../../../client/protocol/wire-error.ts'
import type { VirtualProcess } from '../../support/virtual-world.ts'
import { FakeReadChannel } from './fake-read-channel.ts'
import { FakeWriteChannel } from './fake-write-channel.ts'

export const clusterId = parseClusterId('test-cluster')

export interface StoredEntry {
  readonly bytes: Uint8Array
  readonly subpartition: number
  readonly isLastOfRun: boolean
}

export interface StoredRegion {
  readonly isBroadcast: boolean
  readonly entries: StoredEntry[]
}

export interface StoredPartition {
  readonly regions: StoredRegion[]
  readonly subpartitionCount: number
  readonly recordCount: number
  readonly bytesBySubpartition: Float64Array
}

/** What a test sets; read at each use. */
export interface FakeWorkerFaults {
  /** Answers OpenWrite with the error, as often as there are entries. */
  refuseWrites: ErrorCode[]
  refuseReads: ErrorCode[]
  /** Answers these keys with PartitionFailed, as often as there are entries. */
  failPartitions: Map<string, ErrorCode[]>
  /** Grants no credit to writers. */
  withholdsCredit: boolean
  /** Sends no data to readers although they have credit. */
  withholdsData: boolean
  /** Never answers WriteFinish. */
  withholdsCommit: boolean
  /** Never answers OpenWrite and OpenRead. */
  withholdsOpening: boolean
  /** Sends more than the credit. */
  ignoresCredit: boolean
  /** Changes the totals told at the end of a partition, or of a commit. */
  miscounts: boolean
  /** Changes an outgoing entry's bytes; called with each. */
  corrupt: ((entry: Uint8Array, index: number) => void) | undefined
  /** What to do on a message instead of the usual; true: it is dealt with. */
  intercept:
    ((worker: FakeConnection, message: ChannelMessage, channelId: number) => boolean) | undefined
}

export interface FakeWorkerOptions {
  readonly process: VirtualProcess
  readonly name?: string
  readonly port?: number
  readonly bufferSizeBytes?: number
  readonly token?: string
  readonly partitions?: Map<string, StoredPartition>
}

export class FakeWorker {
  readonly workerId: WorkerId
  readonly host: string
  readonly port: number
  readonly partitions: Map<string, StoredPartition>
  readonly faults: FakeWorkerFaults = {
    refuseWrites: [],
    refuseReads: [],
    failPartitions: new Map(),
    withholdsCredit: false,
    withholdsData: false,
    withholdsCommit: false,
    withholdsOpening: false,
    ignoresCredit: false,
    miscounts: false,
    corrupt: undefined,
    intercept: undefined,
  }
  readonly connections = new Set<FakeConnection>()
  readonly log: string[] = []
  /** What a client did wrong; a test that expects none looks here at its end. */
  readonly complaints: unknown[] = []
  dialCount = 0
  readonly #options: FakeWorkerOptions
  #listener: Listener | undefined

  constructor(options: FakeWorkerOptions) {
    this.#options = options
    this.workerId = parseWorkerId(options.name ?? `worker-${options.process.host}`)
    this.host = options.process.host
    this.port = options.port ?? 9710
    this.partitions = options.partitions ?? new Map<string, StoredPartition>()
  }

  async start(): Promise<this> {
    const { process } = this.#options
    this.#listener = await process.network.listen(
      { host: '0.0.0.0', port: this.port },
      (connection) => {
        this.dialCount += 1
        const made = new FakeConnection(this, (handler) => {
          return new ProtocolConnection({
            connection,
            clock: process.clock,
            handshake: {
              role: 'worker',
              software: 'fake',
              clusterId,
              workerId: this.workerId,
              workerEpoch: 1,
              bufferSizeBytes: this.#options.bufferSizeBytes ?? 65_536,
              token: this.#options.token,
              challenge: process.random.bytes(32),
            },
            handler,
          })
        })
        this.connections.add(made)
      },
    )
    return this
  }

  async stop(): Promise<void> {
    await this.#listener?.close()
    for (const connection of [...this.connections]) connection.protocol.destroy()
  }

  partition(key: PartitionKey): StoredPartition | undefined {
    return this.partitions.get(partitionKeyText(key))
  }

  get channelCount(): number {
    let count = 0
    for (const { reads, writes } of this.connections) count += reads.size + writes.size
    return count
  }
}

export class FakeConnection {
  readonly worker: FakeWorker
  readonly protocol: ProtocolConnection
  readonly reads = new Map<number, FakeReadChannel>()
  readonly writes = new Map<number, FakeWriteChannel>()
  buffersOut = 0

  constructor(
    worker: FakeWorker,
    connect: (
      handler: ConstructorParameters<typeof ProtocolConnection>[0]['handler'],
    ) => ProtocolConnection,
  ) {
    this.worker = worker
    this.protocol = connect({
      onReady: () => undefined,
      bodyBuffer: (_message, channelId, bodyLength) =>
        this.writes.has(channelId) ? this.#buffer(bodyLength) : undefined,
      onData: (_message, channelId, buffer, bodyLength) => {
        const copy = buffer.bytes.slice(0, bodyLength)
        buffer.recycle()
        this.#checked(() => this.writes.get(channelId)?.onData(copy))
      },
      onMessage: (message, channelId, body) => {
        worker.log.push(`${message.name} ${String(channelId)}`)
        if (worker.faults.intercept?.(this, message, channelId) === true) return
        this.#checked(() => {
          this.#onMessage(message, channelId, body)
        })
      },
      onWritable: () => undefined,
      onClosed: () => {
        worker.connections.delete(this)
        this.reads.clear()
        this.writes.clear()
      },
    })
    this.protocol.start()
  }

  sendError(channelId: number, code: ErrorCode): void {
    const error = new ShuffleError(code, `as the test wants it: ${code}`)
    this.protocol.send(messages.Error, channelId, wireErrorFields(error))
  }

  #checked(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.worker.complaints.push(error)
      throw error
    }
  }

  #onMessage(message: ChannelMessage, channelId: number, body: Uint8Array): void {
    const { faults } = this.worker
    switch (message.name) {
      case 'OpenWrite': {
        const refusal = faults.refuseWrites.shift()
        if (refusal !== undefined) this.sendError(channelId, refusal)
        else this.writes.set(channelId, new FakeWriteChannel(this, channelId, message.fields))
        return
      }
      case 'OpenRead': {
        const refusal = faults.refuseReads.shift()
        if (refusal !== undefined) this.sendError(channelId, refusal)
        else this.reads.set(channelId, new FakeReadChannel(this, channelId, message.fields))
        return
      }
      case 'CloseChannel':
        if (this.reads.delete(channelId) || this.writes.delete(channelId)) {
          this.protocol.send(messages.ChannelClosed, channelId, {})
        }
        return
      default:
        this.reads.get(channelId)?.onMessage(message, body)
        this.writes.get(channelId)?.onMessage(message, body)
    }
  }

  #buffer(length: number): PooledBuffer {
    this.buffersOut += 1
    return {
      bytes: new Uint8Array(length),
      recycle: () => {
        this.buffersOut -= 1
      },
    }
  }
}

/** The entries of a body, each with a copy of its bytes. */
export function entriesOf(body: Uint8Array): StoredEntry[] {
  const found: StoredEntry[] = []
  const reader = new EntryReader('PROTOCOL').reset(body, 0, body.length)
  while (reader.next()) {
    found.push({
      bytes: body.slice(reader.start, reader.end),
      subpartition: reader.subpartition,
      isLastOfRun: reader.isLastOfRun,
    })
  }
  return found
}
