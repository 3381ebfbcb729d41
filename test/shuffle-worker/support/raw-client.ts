// A peer of the data plane that speaks plain protocol messages, for tests of the worker: it keeps
// every message it gets, channel by channel, and does nothing on its own.

import type { PooledBuffer } from '../../../client/common/buffer.ts'
import type { ShuffleError } from '../../../client/common/errors.ts'
import type { ClusterId, PartitionKey, WorkerId } from '../../../client/common/ids.ts'
import type { World } from '../../../client/common/world.ts'
import { byteCountPages } from '../../../client/protocol/byte-counts.ts'
import {
  broadcastSubpartition,
  EntryChecksum,
  entryFlags,
  entryHeaderLength,
  EntryReader,
  writeEntryHeader,
} from '../../../client/protocol/entry.ts'
import type { Session } from '../../../client/protocol/handshake.ts'
import {
  type DataMessage,
  type MessageFields,
  type MessageName,
  messages,
  noRegion,
} from '../../../client/protocol/messages.ts'
import {
  encodePartitionList,
  type PartitionListEntry,
} from '../../../client/protocol/partition-list.ts'
import {
  type ChannelMessage,
  ProtocolConnection,
  type ProtocolHandler,
} from '../../../client/protocol/protocol-connection.ts'
import { SegmentReader } from '../../../client/protocol/read-segment.ts'
import { errorOfWire } from '../../../client/protocol/wire-error.ts'

export interface ReceivedMessage {
  readonly message: ChannelMessage
  readonly body: Uint8Array
}

export interface ReceivedEntry {
  readonly partition: number
  readonly regionIndex: number
  readonly subpartition: number
  readonly payload: Buffer
}

export class RawClient implements ProtocolHandler {
  readonly connection: ProtocolConnection
  readonly byChannel = new Map<number, ReceivedMessage[]>()
  readonly entries = new Map<number, ReceivedEntry[]>()
  readonly frames = new Map<number, number>()
  session: Session | undefined
  isClosed = false
  closeError: ShuffleError | undefined

  private constructor(connection: (client: RawClient) => ProtocolConnection) {
    this.connection = connection(this)
  }

  static async connect(
    world: Pick<World, 'network' | 'clock'>,
    options: {
      readonly host: string
      readonly port: number
      readonly token?: string
      readonly clusterId?: string
      readonly expectedWorkerId?: string
      readonly idlePingsMax?: number
    },
  ): Promise<RawClient> {
    const socket = await world.network.connect({
      host: options.host,
      port: options.port,
      timeoutMs: 5000,
    })
    const client = new RawClient(
      (handler) =>
        new ProtocolConnection({
          connection: socket,
          clock: world.clock,
          handler,
          idlePingsMax: options.idlePingsMax ?? 3,
          handshake: {
            role: 'client',
            software: 'raw-client',
            clusterId: options.clusterId as ClusterId | undefined,
            expectedWorkerId: options.expectedWorkerId as WorkerId | undefined,
            token: options.token,
          },
        }),
    )
    client.connection.start()
    return client
  }

  onReady(session: Session): void {
    this.session = session
  }

  bodyBuffer(_message: DataMessage, _channelId: number, bodyLength: number): PooledBuffer {
    return { bytes: new Uint8Array(bodyLength), recycle: () => undefined }
  }

  onData(_message: DataMessage, channelId: number, buffer: PooledBuffer, bodyLength: number): void {
    this.frames.set(channelId, (this.frames.get(channelId) ?? 0) + 1)
    const received = this.entriesOf(channelId)
    const segments = new SegmentReader().reset(buffer.bytes, bodyLength)
    while (segments.next()) {
      const { partition, regionIndex, subpartition, entriesStart, entriesEnd } = segments
      const entries = new EntryReader('DATA_CORRUPT').reset(buffer.bytes, entriesStart, entriesEnd)
      while (entries.next()) {
        const payload = Buffer.from(entries.payload())
        received.push({ partition, regionIndex, subpartition, payload })
      }
    }
  }

  onMessage(message: ChannelMessage, channelId: number, body: Uint8Array): void {
    this.messagesOf(channelId).push({ message, body })
  }

  onWritable(): void {
    return
  }

  onClosed(error: ShuffleError | undefined): void {
    this.isClosed = true
    this.closeError = error
  }

  messagesOf(channelId: number): ReceivedMessage[] {
    let list = this.byChannel.get(channelId)
    if (list === undefined) {
      list = []
      this.byChannel.set(channelId, list)
    }
    return list
  }

  entriesOf(channelId: number): ReceivedEntry[] {
    let list = this.entries.get(channelId)
    if (list === undefined) {
      list = []
      this.entries.set(channelId, list)
    }
    return list
  }

  /** All messages of this name that came on the channel. */
  all<Name extends MessageName>(channelId: number, name: Name): MessageFields<Name>[] {
    return this.messagesOf(channelId)
      .filter(({ message }) => message.name === name)
      .map(({ message }) => message.fields as MessageFields<Name>)
  }

  first<Name extends MessageName>(channelId: number, name: Name): MessageFields<Name> | undefined {
    return this.all(channelId, name)[0]
  }

  /** The error that ended the channel. */
  errorOf(channelId: number): ShuffleError | undefined {
    const fields = this.first(channelId, 'Error')
    return fields === undefined ? undefined : errorOfWire(fields)
  }

  creditOf(channelId: number, regionIndex: number): number {
    return this.all(channelId, 'AddCredit')
      .filter((fields) => fields.regionIndex === regionIndex)
      .reduce((sum, fields) => sum + fields.credit, 0)
  }

  openWrite(key: PartitionKey, more: Partial<MessageFields<'OpenWrite'>> = {}): number {
    const channelId = this.connection.nextChannelId()
    const subpartitionCount = more.subpartitionCount ?? 4
    this.connection.send(messages.OpenWrite, channelId, {
      key,
      allocation: { managerEpoch: 1, jobEpoch: 1, sequence: 1 },
      kind: 'map',
      subpartitionCount,
      firstSubpartition: 0,
      lastSubpartition: subpartitionCount - 1,
      bufferSizeBytes: 4096,
      codec: 'none',
      expectedBytes: undefined,
      ...more,
    })
    return channelId
  }

  writeFinish(
    channelId: number,
    totals: { readonly regionCount: number; readonly byteCount: number },
    uncompressed: readonly number[],
  ): void {
    for (const page of byteCountPages(uncompressed)) {
      const { firstSubpartition, isLast, body } = page
      const fields = { ...totals, recordCount: 0, firstSubpartition, isLast }
      this.connection.send(messages.WriteFinish, channelId, fields, [body])
    }
  }

  openRead(initialCredit = 2, bufferSizeBytes = 4096): number {
    const channelId = this.connection.nextChannelId()
    this.connection.send(messages.OpenRead, channelId, { bufferSizeBytes, initialCredit })
    return channelId
  }

  addPartitions(channelId: number, entries: readonly PartitionListEntry[]): void {
    for (const { partitionCount, body } of encodePartitionList(entries)) {
      this.connection.send(messages.AddPartitions, channelId, { partitionCount }, [body])
    }
  }

  readEnd(channelId: number, partitionCount: number): void {
    this.connection.send(messages.ReadEnd, channelId, { partitionCount })
  }

  addCredit(channelId: number, credit: number): void {
    this.connection.send(messages.AddCredit, channelId, { credit, regionIndex: noRegion })
  }

  closeChannel(channelId: number): void {
    this.connection.send(messages.CloseChannel, channelId, { code: 0 })
  }
}

export interface RegionToWrite {
  readonly isBroadcast: boolean
  /** Payloads by subpartition; of a broadcast region, of all in one. */
  readonly runs: readonly (readonly Uint8Array[])[]
}

/** The bytes of each entry, in order, as a producer makes them. */
export function encodeRegion(
  key: PartitionKey,
  regionIndex: number,
  region: RegionToWrite,
): Buffer[] {
  const checksum = new EntryChecksum(key)
  return region.runs.flatMap((run, index) =>
    run.map((payload, position) => {
      const subpartition = region.isBroadcast ? broadcastSubpartition : index
      const flags = position === run.length - 1 ? entryFlags.lastOfRun : 0
      const identity = { regionIndex, subpartition, position, flags, type: 0 }
      const entry = Buffer.alloc(entryHeaderLength + payload.length)
      writeEntryHeader(entry, 0, {
        length: payload.length,
        subpartition,
        flags,
        type: 0,
        checksum: checksum.of(identity, payload),
      })
      entry.set(payload, entryHeaderLength)
      return entry
    }),
  )
}

/** Entries packed into bodies of at most `bufferSizeBytes`. */
export function packBodies(entries: readonly Buffer[], bufferSizeBytes: number): Buffer[] {
  const bodies: Buffer[] = []
  let parts: Buffer[] = []
  let length = 0
  for (const entry of entries) {
    if (length + entry.length > bufferSizeBytes) {
      bodies.push(Buffer.concat(parts))
      parts = []
      length = 0
    }
    parts.push(entry)
    length += entry.length
  }
  if (length > 0) bodies.push(Buffer.concat(parts))
  return bodies
}
