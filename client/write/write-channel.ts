// The producer's end of a write: opens it, starts and finishes regions, sends bodies under credit,
// commits. Everything it waits for ends with the first of: the answer, the deadline, the worker's
// error, the end of the connection, abort. Owned by one ResultPartition; once failed it stays so.
//
//   new ──open──> open ──startRegion … send … finishRegion──> open ──finish──> committed
//    └────────────── any error, or abort: failed, everything given back ──────────────┘

import { assert } from '../common/assert.ts'
import type { PooledBuffer } from '../common/buffer.ts'
import { isShuffleError, ShuffleError, type ErrorFields } from '../common/errors.ts'
import type { Waiter, WaiterRegister } from '../common/waiters.ts'
import type { TimeInState } from '../common/time-in-state.ts'
import type { ShuffleDescriptor } from '../master/shuffle-descriptor.ts'
import { byteCountPages } from '../protocol/byte-counts.ts'
import { messages, type MessageFields } from '../protocol/messages.ts'
import type { ChannelMessage } from '../protocol/protocol-connection.ts'
import { errorOfWire } from '../protocol/wire-error.ts'
import type { Backoff } from '../transport/backoff.ts'
import { withFields } from '../transport/error-fields.ts'
import type { Channel, ChannelHandler, WorkerConnection } from '../transport/worker-connection.ts'
import { compareTotals } from './committed-partition.ts'

export type WriteState = 'idle' | 'compression' | 'credit' | 'socket' | 'commit'

export interface RegionFacts {
  readonly isBroadcast: boolean
  /** The most that its entries can take, headers included. */
  readonly boundBytes: number
}

export interface WriteTotals {
  readonly recordCount: number
  /** Uncompressed payload bytes per subpartition. */
  readonly bytesBySubpartition: Float64Array
}

export interface WriteChannelOptions {
  readonly descriptor: ShuffleDescriptor
  readonly expectedBytes: number | undefined
  /** A connection to the worker, wherever it is now. */
  readonly connect: (signal: AbortSignal) => Promise<WorkerConnection>
  readonly waiters: WaiterRegister
  readonly backoff: Backoff
  readonly timeInState: TimeInState<WriteState>
  readonly openTimeoutMs: number
  readonly regionTimeoutMs: number
  readonly commitTimeoutMs: number
  /** Ids for errors and waiters. */
  readonly fields: ErrorFields
}

export class WriteChannel {
  readonly #options: WriteChannelOptions
  readonly #ending = new AbortController()
  #channel: Channel | undefined
  #failure: ShuffleError | undefined
  #credit = 0
  #regionIndex = -1
  #regionEntryCount = 0
  #regionByteCount = 0
  #byteCount = 0
  #entryCount = 0
  #opened: Waiter<undefined> | undefined
  #granted: Waiter<undefined> | undefined
  #committed: Waiter<MessageFields<'WriteCommitted'>> | undefined

  constructor(options: WriteChannelOptions) {
    this.#options = options
  }

  get failure(): ShuffleError | undefined {
    return this.#failure
  }

  get isOpen(): boolean {
    return this.#channel !== undefined
  }

  /** Bytes of all entries sent, headers included. */
  get byteCount(): number {
    return this.#byteCount
  }

  get entryCount(): number {
    return this.#entryCount
  }

  /**
   * Begins the next region; the first one opens the write, with retries while the worker is busy or
   * cannot be reached. The whole region must lie in memory.
   */
  async startRegion(region: RegionFacts): Promise<void> {
    this.#throwIfFailed()
    if (this.#channel === undefined) await this.#openWithRetries(region)
    else this.#sendRegionStart(this.#channel, region)
  }

  /** For a partition without any region. */
  async openEmpty(): Promise<void> {
    this.#throwIfFailed()
    await this.#openWithRetries(undefined)
  }

  /**
   * Sends one body of entries as soon as there is credit. The buffer is the channel's on every path.
   * Undefined when there was nothing to wait for.
   */
  send(buffer: PooledBuffer, length: number, entryCount: number): Promise<void> | undefined {
    const channel = this.#channel
    if (this.#failure === undefined && channel !== undefined && this.#canSend(channel)) {
      this.#sendNow(channel, buffer, length, entryCount)
      return undefined
    }
    return this.#sendLater(buffer, length, entryCount)
  }

  finishRegion(): void {
    const channel = this.#openChannel()
    channel.send(messages.RegionFinish, {
      regionIndex: this.#regionIndex,
      entryCount: this.#regionEntryCount,
      byteCount: this.#regionByteCount,
    })
    this.#credit = 0
  }

  /** Commits; resolves with what the worker stored, when it can be read. */
  async finish(totals: WriteTotals): Promise<MessageFields<'WriteCommitted'>> {
    const channel = this.#openChannel()
    const { waiters, commitTimeoutMs, fields, timeInState } = this.#options
    timeInState.enter('commit')
    this.#committed = waiters.wait({
      name: 'the commit of a partition',
      timeoutMs: commitTimeoutMs,
      timeoutCode: 'WRITE_INTERRUPTED',
      signal: this.#ending.signal,
      fields,
    })
    for (const page of byteCountPages(totals.bytesBySubpartition)) {
      channel.send(
        messages.WriteFinish,
        {
          regionCount: this.#regionIndex + 1,
          byteCount: this.#byteCount,
          recordCount: totals.recordCount,
          firstSubpartition: page.firstSubpartition,
          isLast: page.isLast,
        },
        [page.body],
      )
    }
    try {
      const stored = await this.#committed.promise
      const regionCount = this.#regionIndex + 1
      compareTotals(
        { regionCount, entryCount: this.#entryCount, byteCount: this.#byteCount },
        stored,
      )
      channel.close({ tell: false })
      return stored
    } catch (error) {
      throw this.#fail(error)
    }
  }

  /** Gives the write up: the worker deletes what it has. Idempotent. */
  abort(reason: ShuffleError): void {
    this.#fail(reason)
  }

  // --- opening ---

  async #openWithRetries(region: RegionFacts | undefined): Promise<void> {
    const { backoff, openTimeoutMs } = this.#options
    for (;;) {
      try {
        await this.#open(region)
        backoff.reset()
        return
      } catch (error) {
        const retried = isShuffleError(error, 'WORKER_UNREACHABLE', 'BUSY')
        if (this.#ending.signal.aborted || !retried) throw this.#fail(error)
        if (backoff.failingForMs >= openTimeoutMs) throw this.#fail(error)
      }
      try {
        await backoff.pause(this.#ending.signal)
      } catch (error) {
        throw this.#fail(error)
      }
    }
  }

  async #open(region: RegionFacts | undefined): Promise<void> {
    const { waiters, openTimeoutMs, fields, connect } = this.#options
    const connection = await connect(this.#ending.signal)
    this.#throwIfFailed()
    const opened = waiters.wait<undefined>({
      name: 'the opening of a write',
      timeoutMs: openTimeoutMs,
      timeoutCode: 'WORKER_UNREACHABLE',
      signal: this.#ending.signal,
      fields,
    })
    this.#opened = opened
    let channel: Channel | undefined
    try {
      channel = connection.openChannel(this.#handler())
      this.#channel = channel
      this.#regionIndex = -1
      this.#sendOpenWrite(channel)
      if (region !== undefined) this.#sendRegionStart(channel, region)
      await opened.promise
    } catch (error) {
      opened.reject(error as Error)
      channel?.close({ tell: true })
      this.#channel = undefined
      throw error
    } finally {
      this.#opened = undefined
    }
  }

  #sendOpenWrite(channel: Channel): void {
    const { descriptor, expectedBytes } = this.#options
    channel.send(messages.OpenWrite, {
      key: descriptor.key,
      allocation: descriptor.allocation,
      kind: 'map',
      subpartitionCount: descriptor.subpartitionCount,
      firstSubpartition: 0,
      lastSubpartition: descriptor.subpartitionCount - 1,
      bufferSizeBytes: descriptor.bufferSizeBytes,
      codec: descriptor.codec,
      expectedBytes: expectedBytes ?? descriptor.expectedBytes,
    })
  }

  #sendRegionStart(channel: Channel, region: RegionFacts): void {
    this.#regionIndex += 1
    this.#regionEntryCount = 0
    this.#regionByteCount = 0
    this.#credit = 0
    channel.send(messages.RegionStart, {
      regionIndex: this.#regionIndex,
      isBroadcast: region.isBroadcast,
      boundBytes: region.boundBytes,
    })
  }

  // --- sending ---

  #canSend(channel: Channel): boolean {
    return this.#credit > 0 && channel.isWritable
  }

  #sendNow(channel: Channel, buffer: PooledBuffer, length: number, entryCount: number): void {
    assert(this.#credit > 0, 'a body is sent on credit')
    assert(length <= this.#options.descriptor.bufferSizeBytes, 'a body fits the buffer size')
    this.#credit -= 1
    this.#regionEntryCount += entryCount
    this.#regionByteCount += length
    this.#entryCount += entryCount
    this.#byteCount += length
    const body = [buffer.bytes.subarray(0, length)]
    channel.send(messages.WriteData, { regionIndex: this.#regionIndex }, body, () => {
      buffer.recycle()
    })
  }

  async #sendLater(buffer: PooledBuffer, length: number, entryCount: number): Promise<void> {
    const { timeInState } = this.#options
    const before = timeInState.state
    try {
      while (this.#credit === 0) {
        this.#openChannel()
        timeInState.enter('credit')
        this.#granted = this.#wait('credit of a region')
        await this.#granted.promise
      }
      const channel = this.#openChannel()
      if (channel.isWritable) {
        this.#sendNow(channel, buffer, length, entryCount)
      } else {
        timeInState.enter('socket')
        const turn = this.#wait('room in the connection')
        channel.whenWritable(() => {
          if (turn.isSettled) return
          this.#sendNow(channel, buffer, length, entryCount)
          turn.resolve(undefined)
        })
        await turn.promise
      }
      timeInState.enter(before)
    } catch (error) {
      buffer.recycle()
      throw this.#fail(error)
    }
  }

  #wait(name: string): Waiter<undefined> {
    const { waiters, regionTimeoutMs, fields } = this.#options
    return waiters.wait<undefined>({
      name,
      timeoutMs: regionTimeoutMs,
      timeoutCode: 'WRITE_INTERRUPTED',
      signal: this.#ending.signal,
      fields: { ...fields, regionIndex: this.#regionIndex },
    })
  }

  // --- what the worker says ---

  #handler(): ChannelHandler {
    return {
      bodyBuffer: () => undefined,
      onData: (buffer) => {
        buffer.recycle()
      },
      onMessage: (message) => {
        this.#onMessage(message)
      },
      onClosed: (error) => {
        this.#channel = undefined
        this.#lose(error)
      },
    }
  }

  #onMessage(message: ChannelMessage): void {
    switch (message.name) {
      case 'WriteOpened':
        this.#opened?.resolve(undefined)
        return
      case 'AddCredit':
        this.#addCredit(message.fields)
        return
      case 'WriteCommitted':
        if (this.#committed === undefined) this.#fail(unexpected(message.name))
        else this.#committed.resolve(message.fields)
        return
      case 'Error':
        this.#channel?.close({ tell: false })
        this.#channel = undefined
        this.#lose(errorOfWire(message.fields))
        return
      case 'CloseChannel':
        this.#channel?.send(messages.ChannelClosed, {})
        this.#channel?.close({ tell: false })
        this.#channel = undefined
        this.#lose(new ShuffleError('WRITE_INTERRUPTED', 'the worker closed the write'))
        return
      default:
        this.#fail(unexpected(message.name))
    }
  }

  #addCredit(fields: MessageFields<'AddCredit'>): void {
    // Credit and RegionFinish can cross: credit of a finished region counts for nothing.
    if (fields.regionIndex !== this.#regionIndex) return
    this.#credit += fields.credit
    this.#granted?.resolve(undefined)
  }

  /** The channel is gone. While it was being opened that is a reason to try again. */
  #lose(error: ShuffleError): void {
    if (this.#opened !== undefined && !this.#opened.isSettled) {
      this.#opened.reject(error)
      return
    }
    const interrupted = isShuffleError(error, 'WORKER_UNREACHABLE', 'WORKER_CHANGED')
    this.#fail(
      interrupted
        ? new ShuffleError('WRITE_INTERRUPTED', 'the connection was lost while a write was open', {
            cause: error,
          })
        : error,
    )
  }

  /** The first failure decides; answers it, with the ids of the partition. */
  #fail(error: unknown): ShuffleError {
    if (this.#failure !== undefined) return this.#failure
    const failure = withFields(error, this.#options.fields)
    this.#failure = failure
    this.#channel?.close({ tell: true })
    this.#channel = undefined
    this.#ending.abort(failure)
    return failure
  }

  #openChannel(): Channel {
    this.#throwIfFailed()
    assert(this.#channel !== undefined, 'a write is open, or has failed')
    return this.#channel
  }

  #throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure
  }
}

function unexpected(name: string): ShuffleError {
  return new ShuffleError('PROTOCOL', `the worker sent ${name} on a write channel out of place`)
}
