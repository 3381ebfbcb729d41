// One side of a connection under test: a ProtocolConnection whose handler writes down what it hears.

import type { PooledBuffer } from '../../../../client/common/buffer.ts'
import type { ShuffleError } from '../../../../client/common/errors.ts'
import { parseClusterId, parseWorkerId, type ClusterId } from '../../../../client/common/ids.ts'
import type { ClientHandshake, WorkerHandshake } from '../../../../client/protocol/handshake.ts'
import type { Session } from '../../../../client/protocol/handshake.ts'
import type { DataMessage } from '../../../../client/protocol/messages.ts'
import {
  ProtocolConnection,
  type ProtocolConnectionOptions,
} from '../../../../client/protocol/protocol-connection.ts'
import type {
  ChannelMessage,
  ProtocolHandler,
} from '../../../../client/protocol/protocol-handler.ts'
import { VirtualClock } from '../../../support/virtual-clock.ts'
import { type MemoryConnection, memoryPair } from './memory-connection.ts'

export const clusterId: ClusterId = parseClusterId('cluster-1')
export const workerId = parseWorkerId('worker-1')

export const clientHandshake: ClientHandshake = {
  role: 'client',
  software: 'test client 1',
  clusterId,
  expectedWorkerId: workerId,
  token: undefined,
}

export const workerHandshake: WorkerHandshake = {
  role: 'worker',
  software: 'test worker 2',
  clusterId,
  workerId,
  workerEpoch: 42,
  bufferSizeBytes: 32_768,
  token: undefined,
  challenge: Uint8Array.from({ length: 32 }, (_, index) => index * 3),
}

export class RecordingSide implements ProtocolHandler {
  readonly network: MemoryConnection
  readonly connection: ProtocolConnection
  session: Session | undefined
  readonly messages: ChannelMessage[] = []
  readonly data: {
    readonly message: DataMessage
    readonly channelId: number
    readonly body: Buffer
  }[] = []
  writableCount = 0
  closedCount = 0
  closedBy: ShuffleError | undefined
  buffersOut = 0
  isGivingBuffers = true
  onEach: (message: ChannelMessage) => void = () => undefined
  onReadyCall: () => void = () => undefined
  onWritableCall: () => void = () => undefined

  constructor(
    clock: VirtualClock,
    network: MemoryConnection,
    options: Pick<ProtocolConnectionOptions, 'handshake'> & Partial<ProtocolConnectionOptions>,
  ) {
    this.network = network
    this.connection = new ProtocolConnection({
      connection: network,
      clock,
      handler: this,
      ...options,
    })
  }

  get isClosed(): boolean {
    return this.closedCount > 0
  }

  onReady(session: Session): void {
    this.session = session
    this.onReadyCall()
  }

  bodyBuffer(): PooledBuffer | undefined {
    if (!this.isGivingBuffers) return undefined
    this.buffersOut += 1
    return {
      bytes: new Uint8Array(65_536),
      recycle: () => {
        this.buffersOut -= 1
      },
    }
  }

  onData(message: DataMessage, channelId: number, buffer: PooledBuffer, bodyLength: number): void {
    this.data.push({ message, channelId, body: Buffer.from(buffer.bytes.subarray(0, bodyLength)) })
    buffer.recycle()
  }

  onMessage(message: ChannelMessage): void {
    this.messages.push(message)
    this.onEach(message)
  }

  onWritable(): void {
    this.writableCount += 1
    this.onWritableCall()
  }

  onClosed(error: ShuffleError | undefined): void {
    this.closedCount += 1
    this.closedBy = error
  }
}

export interface Pair {
  readonly clock: VirtualClock
  readonly client: RecordingSide
  readonly worker: RecordingSide
}

export interface PairOptions {
  readonly client?: Partial<ProtocolConnectionOptions>
  readonly worker?: Partial<ProtocolConnectionOptions>
}

/** A client and a worker on one stream, not started. */
export function makePair(options: PairOptions = {}): Pair {
  const clock = new VirtualClock()
  const [clientEnd, workerEnd] = memoryPair(clock)
  return {
    clock,
    client: new RecordingSide(clock, clientEnd, { handshake: clientHandshake, ...options.client }),
    worker: new RecordingSide(clock, workerEnd, { handshake: workerHandshake, ...options.worker }),
  }
}

/** A client and a worker that are ready, or have failed to become so. */
export async function connectedPair(options: PairOptions = {}): Promise<Pair> {
  const pair = makePair(options)
  pair.worker.connection.start()
  pair.client.connection.start()
  await pair.clock.settle()
  return pair
}

/** A worker, and the bare stream of a client that a test plays itself. */
export function bareClient(options: Partial<ProtocolConnectionOptions> = {}): {
  readonly clock: VirtualClock
  readonly stream: MemoryConnection
  readonly worker: RecordingSide
} {
  const clock = new VirtualClock()
  const [stream, workerEnd] = memoryPair(clock)
  const worker = new RecordingSide(clock, workerEnd, { handshake: workerHandshake, ...options })
  worker.connection.start()
  return { clock, stream, worker }
}
