// Sees every frame of the data plane and every HTTP request as it is sent, without a part in either:
// for traces, for counts, and for faults that strike at a certain message.

import type { Duplex } from 'node:stream'
import { errorCodeOfWire, type ErrorCode } from '../../client/common/errors.ts'
import type { Connection, Network } from '../../client/common/network.ts'
import { framePrefixLength } from '../../client/protocol/frame.ts'
import { messageList } from '../../client/protocol/messages.ts'
import type { VirtualStream } from '../support/virtual-connection.ts'
import { watchAnswering, watchAsking, type SeenHttp } from './http-tap.ts'
import type { SimProcess } from './process.ts'

export interface SeenMessage {
  /** From 1 on, over the whole world. */
  readonly number: number
  /** Name of a frame's message, or `HTTP` with method and path, or `HTTP answer` with these. */
  readonly name: string
  readonly channelId: number
  readonly bytes: number
  readonly from: string
  readonly to: string
  /** Of an Error, a PartitionFailed or an HTTP answer. */
  readonly code?: ErrorCode | undefined
  /** Cuts the connection on which it is sent. */
  cut(): void
}

export interface OpenRequest {
  readonly name: string
  readonly startedMs: number
  readonly process: SimProcess
}

const namesById = new Map(messageList.map(({ id, name }) => [id, name]))
/** Offset of the error's code in the headers that carry one. */
const codeOffsets: Readonly<Record<string, number>> = { Error: 0, PartitionFailed: 4 }

export class FrameTap {
  readonly #onMessage: (message: SeenMessage) => void
  readonly #openRequests = new Set<OpenRequest>()
  readonly #streams = new Set<Duplex>()
  #count = 0

  constructor(onMessage: (message: SeenMessage) => void) {
    this.#onMessage = onMessage
  }

  get count(): number {
    return this.#count
  }

  /** Requests that wait for their answer, and who waits. */
  get openRequests(): Iterable<OpenRequest> {
    return this.#openRequests
  }

  wrap(process: SimProcess, network: Network): Network {
    const { host } = process
    return {
      listen: (address, onConnection) =>
        network.listen(address, (connection) => {
          onConnection(this.#watched(host, connection))
        }),
      connect: async (options) => this.#watched(host, await network.connect(options)),
      listenStreams: (address, onStream) =>
        network.listenStreams(address, (stream) => {
          this.#streams.add(stream)
          stream.once('close', () => this.#streams.delete(stream))
          const to = (stream as Partial<VirtualStream>).remoteAddress ?? 'nobody'
          watchAnswering(stream, (seen) => {
            this.#onHttp(seen, { from: host, to, stream })
          })
          onStream(stream)
        }),
      connectStream: async (options) => {
        const stream = await network.connectStream(options)
        this.#watchRequests(process, options.host, stream)
        return stream
      },
    }
  }

  /**
   * Ends what servers hold, also those that have been killed: Node's HTTP server lets a parser go when
   * its socket closes, and with one that never does a whole world stays in memory.
   */
  destroyStreams(): void {
    for (const stream of this.#streams) stream.destroy()
  }

  #watched(host: string, connection: Connection): Connection {
    const scanner = new FrameScanner((frame) => {
      this.#count += 1
      this.#onMessage({
        ...frame,
        number: this.#count,
        from: host,
        to: connection.remote.host,
        cut: () => {
          connection.destroy(new Error('cut by the simulation'))
        },
      })
    })
    return {
      remote: connection.remote,
      get bufferedBytes() {
        return connection.bufferedBytes
      },
      start: (handler) => {
        connection.start(handler)
      },
      write: (parts, onWritten) => {
        connection.write(parts, onWritten)
        for (const part of parts) scanner.scan(part)
      },
      end: () => {
        connection.end()
      },
      destroy: (error) => {
        connection.destroy(error)
      },
    }
  }

  #watchRequests(process: SimProcess, to: string, stream: Duplex): void {
    let open: OpenRequest | undefined
    const done = () => {
      if (open !== undefined) this.#openRequests.delete(open)
      open = undefined
    }
    watchAsking(stream, {
      onAsked: (seen) => {
        done()
        open = { name: seen.name, startedMs: process.world.clock.nowMs(), process }
        this.#openRequests.add(open)
        this.#onHttp(seen, { from: process.host, to, stream })
      },
      onDone: done,
    })
  }

  #onHttp(
    seen: SeenHttp,
    where: { readonly from: string; readonly to: string; readonly stream: Duplex },
  ): void {
    this.#count += 1
    this.#onMessage({
      ...seen,
      number: this.#count,
      channelId: 0,
      from: where.from,
      to: where.to,
      cut: () => {
        where.stream.destroy(new Error('cut by the simulation'))
      },
    })
  }
}

type ScannedFrame = Pick<SeenMessage, 'name' | 'channelId' | 'bytes' | 'code'>

/** Finds the frames in a stream of bytes. */
class FrameScanner {
  readonly #onFrame: (frame: ScannedFrame) => void
  readonly #prefix = Buffer.alloc(framePrefixLength + 6)
  #filled = 0
  #left = 0

  constructor(onFrame: (frame: ScannedFrame) => void) {
    this.#onFrame = onFrame
  }

  scan(bytes: Uint8Array): void {
    let at = 0
    while (at < bytes.length) {
      const isInPrefix = this.#filled < framePrefixLength
      const wanted = isInPrefix ? framePrefixLength - this.#filled : this.#left
      const count = Math.min(wanted, bytes.length - at)
      const kept = Math.min(count, this.#prefix.length - this.#filled)
      if (kept > 0) this.#prefix.set(bytes.subarray(at, at + kept), this.#filled)
      this.#filled += kept
      at += count
      if (isInPrefix && this.#filled === framePrefixLength) {
        this.#left = this.#prefix.readUInt32BE(0) + 4 - framePrefixLength
      } else if (!isInPrefix) this.#left -= count
      if (this.#filled >= framePrefixLength && this.#left === 0) this.#end()
    }
  }

  #end(): void {
    const prefix = this.#prefix
    const name = namesById.get(prefix.readUInt8(4)) ?? `type ${String(prefix.readUInt8(4))}`
    const codeAt = codeOffsets[name]
    this.#filled = 0
    this.#onFrame({
      name,
      channelId: prefix.readUInt32BE(8),
      bytes: prefix.readUInt32BE(0) + 4,
      ...(codeAt === undefined
        ? {}
        : { code: errorCodeOfWire(prefix.readUInt16BE(framePrefixLength + codeAt)) }),
    })
  }
}
