// One client's connection, as the worker sees it: which channel is which view, and each view's way
// out. Owned by the data server. When the connection ends, all its views end with it.

import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { Clock } from '../../client/common/clock.ts'
import { isShuffleError, ShuffleError } from '../../client/common/errors.ts'
import type { Logger } from '../../client/common/log.ts'
import type { Connection } from '../../client/common/network.ts'
import type { WorkerHandshake } from '../../client/protocol/handshake.ts'
import {
  type DataMessage,
  type MessageFields,
  messages,
  noRegion,
} from '../../client/protocol/messages.ts'
import { decodePartitionList } from '../../client/protocol/partition-list.ts'
import {
  type ChannelMessage,
  ProtocolConnection,
  type ProtocolHandler,
} from '../../client/protocol/protocol-connection.ts'
import { wireErrorFields } from '../../client/protocol/wire-error.ts'
import type { DescribeRequest } from '../read/describe-partitions.ts'
import { DescribeQueue } from '../read/describe-queue.ts'
import type { ReadService } from '../read/read-service.ts'
import type { PartitionTotals, ReadingOutput } from '../read/reading-output.ts'
import type { ReadingView } from '../read/reading-view.ts'
import type { DataStore } from '../storage/data-store.ts'
import type { WriteService } from '../write/write-service.ts'
import type { WritingOutput, WritingView } from '../write/writing-view.ts'

/** What the connections count; the worker's metrics. */
export interface TransferCounters {
  received(frame: { readonly bytes: number }): void
  sent(frame: { readonly bytes: number }): void
  /** A partition was committed; its bytes as its producer had them before compression. */
  committed(partition: { readonly uncompressedBytes: number }): void
  failed(error: ShuffleError): void
}

export interface ConnectionHandlerOptions {
  readonly connection: Connection
  readonly clock: Clock
  readonly logger: Logger
  readonly handshake: WorkerHandshake
  readonly writes: WriteService
  readonly reads: ReadService
  readonly lookup: DataStore['lookup']
  readonly counters: TransferCounters
  readonly channelsMax: number
  readonly pingIntervalMs: number
  readonly idlePingsMax: number
  readonly handshakeTimeoutMs: number
  readonly queuedBytesBound: number
  readonly onClosed: (handler: ConnectionHandler) => void
}

/** A Describe being answered. */
interface DescribeChannel {
  readonly kind: 'describe'
  isOver: boolean
}

type Channel =
  | { readonly kind: 'write'; readonly view: WritingView }
  | { readonly kind: 'read'; readonly view: ReadingView }
  | DescribeChannel

export class ConnectionHandler implements ProtocolHandler {
  readonly #options: ConnectionHandlerOptions
  readonly #connection: ProtocolConnection
  readonly #channels = new Map<number, Channel>()
  readonly #describes = new DescribeQueue()
  readonly #waitingForRoom: (() => void)[] = []
  #isReady = false
  #isClosed = false

  constructor(options: ConnectionHandlerOptions) {
    this.#options = options
    this.#connection = new ProtocolConnection({
      connection: options.connection,
      clock: options.clock,
      handshake: options.handshake,
      handler: this,
      pingIntervalMs: options.pingIntervalMs,
      idlePingsMax: options.idlePingsMax,
      handshakeTimeoutMs: options.handshakeTimeoutMs,
      queuedBytesBound: options.queuedBytesBound,
    })
  }

  start(): void {
    this.#connection.start()
  }

  get channelCount(): number {
    return this.#channels.size
  }

  get queuedBytes(): number {
    return this.#connection.queuedBytes
  }

  get untakenMs(): number {
    return this.#connection.untakenMs
  }

  close(error?: ShuffleError): void {
    this.#connection.close(error)
  }

  destroy(error?: ShuffleError): void {
    this.#connection.destroy(error)
  }

  onReady(): void {
    this.#isReady = true
  }

  bodyBuffer(
    message: DataMessage,
    channelId: number,
    bodyLength: number,
  ): PooledBuffer | undefined {
    const channel = this.#channels.get(channelId)
    if (channel?.kind !== 'write' || message.name !== 'WriteData') return undefined
    return channel.view.bodyBuffer(message.fields.regionIndex, bodyLength)
  }

  onData(message: DataMessage, channelId: number, buffer: PooledBuffer, bodyLength: number): void {
    const channel = this.#channels.get(channelId)
    if (channel?.kind !== 'write' || message.name !== 'WriteData') {
      buffer.recycle()
      return
    }
    this.#options.counters.received({ bytes: bodyLength })
    channel.view.data(message.fields.regionIndex, buffer, bodyLength)
  }

  onMessage(message: ChannelMessage, channelId: number, body: Uint8Array): void {
    try {
      if (this.#opensChannel(message, channelId, body)) return
      const channel = this.#channels.get(channelId)
      if (channel === undefined) return
      if (message.name === 'CloseChannel') this.#closeChannel(channelId, true)
      else if (message.name === 'Error') this.#closeChannel(channelId, false)
      else if (channel.kind === 'write') onWriteMessage(channel.view, message, body)
      else if (channel.kind === 'read') onReadMessage(channel.view, message, body)
    } catch (error) {
      if (!isShuffleError(error)) throw error
      this.#failChannel(channelId, error)
    }
  }

  onWritable(): void {
    for (const resume of this.#waitingForRoom.splice(0)) resume()
    for (const channel of [...this.#channels.values()]) {
      if (!this.#connection.isWritable) return
      if (channel.kind === 'read') channel.view.onWritable()
    }
  }

  onClosed(error: ShuffleError | undefined): void {
    this.#isClosed = true
    if (error !== undefined) this.#options.counters.failed(error)
    for (const channelId of [...this.#channels.keys()]) this.#closeChannel(channelId, false)
    for (const resume of this.#waitingForRoom.splice(0)) resume()
    const { remote } = this.#options.connection
    if (error !== undefined) {
      this.#options.logger.info(
        { ...error.fields, code: error.code, reason: error.message, remote: remote.host },
        this.#isReady ? 'a connection ended' : 'a connection was refused',
      )
    }
    this.#options.onClosed(this)
  }

  #opensChannel(message: ChannelMessage, channelId: number, body: Uint8Array): boolean {
    switch (message.name) {
      case 'OpenWrite':
        this.#admitChannel()
        this.#openWrite(message.fields, channelId)
        return true
      case 'OpenRead':
        this.#admitChannel()
        this.#openRead(message.fields, channelId)
        return true
      case 'Describe':
        this.#admitChannel()
        this.#describe(message.fields, channelId, body)
        return true
      default:
        return false
    }
  }

  #admitChannel(): void {
    const { channelsMax } = this.#options
    if (this.#channels.size < channelsMax) return
    throw new ShuffleError(
      'LIMIT_EXCEEDED',
      `the connection has ${String(channelsMax)} open channels, as many as channels-per-connection-max allows; dial another`,
      { fields: { channelsMax } },
    )
  }

  #openWrite(fields: MessageFields<'OpenWrite'>, channelId: number): void {
    const view = this.#options.writes.open(fields, this.#writingOutput(channelId), (error) => {
      this.#channels.delete(channelId)
      if (error !== undefined) this.#options.counters.failed(error)
    })
    if (!view.hasEnded) this.#channels.set(channelId, { kind: 'write', view })
  }

  #openRead(fields: MessageFields<'OpenRead'>, channelId: number): void {
    const view = this.#options.reads.open(fields, this.#readingOutput(channelId), () => {
      this.#channels.delete(channelId)
    })
    this.#channels.set(channelId, { kind: 'read', view })
    this.#connection.send(messages.ReadOpened, channelId, {})
  }

  #describe(fields: MessageFields<'Describe'>, channelId: number, body: Uint8Array): void {
    const entries = decodePartitionList(body, fields.partitionCount)
    const channel: DescribeChannel = { kind: 'describe', isOver: false }
    const request: DescribeRequest = {
      entries,
      withSubpartitions: fields.withSubpartitions,
      lookup: this.#options.lookup,
      send: (described, page) => {
        if (channel.isOver || this.#isClosed) return
        if (described.isLast) this.#channels.delete(channelId)
        this.#connection.send(messages.Described, channelId, described, [page])
      },
      ready: async () => {
        while (!channel.isOver && !this.#isClosed && !this.#connection.isWritable) {
          await new Promise<void>((resolve) => this.#waitingForRoom.push(resolve))
        }
        return !channel.isOver && !this.#isClosed
      },
    }
    this.#describes.add(request, (error) => {
      this.#options.logger.error({ error }, 'answering Describe failed')
      if (this.#channels.get(channelId) === channel) this.#failChannel(channelId, error)
    })
    this.#channels.set(channelId, channel)
  }

  #writingOutput(channelId: number): WritingOutput {
    const connection = this.#connection
    return {
      sendOpened: () => {
        connection.send(messages.WriteOpened, channelId, {})
      },
      sendCredit: (regionIndex, credit) => {
        connection.send(messages.AddCredit, channelId, { credit, regionIndex })
      },
      sendCommitted: (totals, uncompressedBytes) => {
        this.#options.counters.committed({ uncompressedBytes })
        connection.send(messages.WriteCommitted, channelId, totals)
      },
      sendError: (error) => {
        this.#channels.delete(channelId)
        connection.send(messages.Error, channelId, wireErrorFields(error))
      },
    }
  }

  #readingOutput(channelId: number): ReadingOutput {
    return new ReadingChannelOutput(this.#connection, channelId, this.#options.counters)
  }

  #failChannel(channelId: number, error: ShuffleError): void {
    const channel = this.#channels.get(channelId)
    if (channel?.kind === 'write') {
      channel.view.fail(error)
      return
    }
    this.#options.counters.failed(error)
    this.#closeChannel(channelId, false)
    this.#connection.send(messages.Error, channelId, wireErrorFields(error))
  }

  #closeChannel(channelId: number, isAnswered: boolean): void {
    const channel = this.#channels.get(channelId)
    if (channel === undefined) return
    this.#channels.delete(channelId)
    if (channel.kind === 'describe') channel.isOver = true
    else channel.view.close()
    if (isAnswered) this.#connection.send(messages.ChannelClosed, channelId, {})
  }
}

/** A class, because objects with a getter of their own each have a shape of their own: slow to use. */
class ReadingChannelOutput implements ReadingOutput {
  readonly #connection: ProtocolConnection
  readonly #channelId: number
  readonly #counters: TransferCounters

  constructor(connection: ProtocolConnection, channelId: number, counters: TransferCounters) {
    this.#connection = connection
    this.#channelId = channelId
    this.#counters = counters
  }

  get isWritable(): boolean {
    return this.#connection.isWritable
  }

  sendData(buffer: PooledBuffer, length: number): void {
    this.#counters.sent({ bytes: length })
    const body = [buffer.bytes.subarray(0, length)]
    this.#connection.send(messages.ReadData, this.#channelId, {}, body, () => {
      buffer.recycle()
    })
  }

  sendBacklog(bufferCount: number): void {
    this.#connection.send(messages.Backlog, this.#channelId, { bufferCount })
  }

  sendPartitionFinish(totals: PartitionTotals): void {
    this.#connection.send(messages.PartitionFinish, this.#channelId, totals)
  }

  sendPartitionFailed(partition: number, error: ShuffleError): void {
    this.#counters.failed(error)
    const fields = { partition, ...wireErrorFields(error) }
    this.#connection.send(messages.PartitionFailed, this.#channelId, fields)
  }

  sendReadFinish(totals: MessageFields<'ReadFinish'>): void {
    this.#connection.send(messages.ReadFinish, this.#channelId, totals)
  }
}

function onWriteMessage(view: WritingView, message: ChannelMessage, body: Uint8Array): void {
  switch (message.name) {
    case 'RegionStart':
      view.regionStart(message.fields)
      return
    case 'RegionFinish':
      view.regionFinish(message.fields)
      return
    case 'WriteFinish':
      view.writeFinish(message.fields, body)
      return
    default:
      throw unexpected(message, 'write')
  }
}

function onReadMessage(view: ReadingView, message: ChannelMessage, body: Uint8Array): void {
  switch (message.name) {
    case 'AddPartitions':
      view.addPartitions(decodePartitionList(body, message.fields.partitionCount))
      return
    case 'ReadEnd':
      view.end(message.fields.partitionCount)
      return
    case 'DropPartition':
      view.drop(message.fields.partition)
      return
    case 'AddCredit':
      if (message.fields.regionIndex !== noRegion || message.fields.credit === 0) {
        throw new ShuffleError('PROTOCOL', 'AddCredit of a read names no region and grants some')
      }
      view.addCredit(message.fields.credit)
      return
    default:
      throw unexpected(message, 'read')
  }
}

function unexpected(message: ChannelMessage, kind: string): ShuffleError {
  return new ShuffleError('PROTOCOL', `${message.name} on a ${kind} channel`, {
    fields: { message: message.name },
  })
}
