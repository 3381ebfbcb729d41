// One read channel: a consumer's view of one worker. It lists the partitions, keeps the credit, and
// checks what comes. It lives until the worker's ReadFinish, an error or the end of its connection;
// what is unfinished then is listed again by another channel. Owned by one worker reader.
//
//   granted - consumed = buffers reserved, always: a buffer leaves the reserve when its frame comes.

import { assert } from '../common/assert.ts'
import type { PooledBuffer } from '../common/buffer.ts'
import { isShuffleError, ShuffleError, type ErrorFields } from '../common/errors.ts'
import type { Waiter, WaiterRegister } from '../common/waiters.ts'
import { EntryReader } from '../protocol/entry.ts'
import { messages, noRegion, type MessageFields } from '../protocol/messages.ts'
import { encodePartitionList } from '../protocol/partition-list.ts'
import type { ChannelMessage } from '../protocol/protocol-connection.ts'
import { SegmentReader } from '../protocol/read-segment.ts'
import { errorOfWire } from '../protocol/wire-error.ts'
import { withFields } from '../transport/error-fields.ts'
import type { Channel, ChannelHandler, WorkerConnection } from '../transport/worker-connection.ts'
import { initialCredit, type CreditShares, type CreditTaker } from './credit-shares.ts'
import type { InputPartition } from './input-partition.ts'
import type { ReadSink } from './received-entry.ts'
import { SharedBody } from './shared-body.ts'

export interface ReadChannelOptions {
  readonly connection: WorkerConnection
  readonly shares: CreditShares
  /** The two buffers of the initial credit; the channel's on every path. */
  readonly buffers: readonly PooledBuffer[]
  readonly bufferSizeBytes: number
  readonly waiters: WaiterRegister
  readonly sink: ReadSink
  readonly openTimeoutMs: number
  /** Longest time without a frame while it is the worker's turn to send one. */
  readonly idleTimeoutMs: number
  readonly fields: ErrorFields
}

/** Runs of one channel that may have begun and not ended; bounds the half records in memory. */
const openRunsMax = 16

export class ReadChannel implements CreditTaker {
  readonly #options: ReadChannelOptions
  readonly #listed = new Map<number, InputPartition>()
  readonly #openRuns = new Set<InputPartition>()
  readonly #segments = new SegmentReader()
  /** The worker hands on what is stored without a look into it: damage is of the disk. */
  readonly #entries = new EntryReader('DATA_CORRUPT')
  readonly #reserved: PooledBuffer[]
  readonly #ended: Waiter<undefined>
  #channel: Channel | undefined
  #opened: Waiter<undefined> | undefined
  #idle: Waiter<undefined> | undefined
  #listLength = 0
  #isListEnded = false
  #granted = initialCredit
  #consumed = 0
  #frames = 0
  #backlogLeft = 0

  constructor(options: ReadChannelOptions) {
    this.#options = options
    this.#reserved = [...options.buffers]
    assert(this.#reserved.length === initialCredit, 'a channel opens with two buffers')
    this.#ended = options.waiters.wait({
      name: 'the end of a read channel',
      // Its own deadlines are those of the opening and of each frame.
      timeoutMs: Infinity,
      fields: options.fields,
    })
  }

  get outstanding(): number {
    return this.#reserved.length
  }

  get backlogLeft(): number {
    return this.#backlogLeft
  }

  get isListEnded(): boolean {
    return this.#isListEnded
  }

  /** Listed, and neither finished, failed nor dropped. */
  unfinished(): Iterable<InputPartition> {
    return this.#listed.values()
  }

  /** Opens the channel; rejects with why it ended early, resolves after ReadFinish or `close`. */
  async run(partitions: readonly InputPartition[]): Promise<void> {
    const { connection, shares, bufferSizeBytes } = this.#options
    shares.register(this)
    // Before anything can fail: whoever goes on afterwards asks for what is unfinished.
    const first = this.#note(partitions)
    try {
      const channel = connection.openChannel(this.#handler())
      this.#channel = channel
      channel.send(messages.OpenRead, { bufferSizeBytes, initialCredit })
      this.#watch()
      this.#sendList(first, partitions)
    } catch (error) {
      this.#fail(error)
    }
    await this.#ended.promise
  }

  /** Adds to the list, before `endList`. */
  add(partitions: readonly InputPartition[]): void {
    assert(!this.#isListEnded, 'nothing is added to a complete list')
    this.#sendList(this.#note(partitions), partitions)
  }

  /** Answers the index of the first. */
  #note(partitions: readonly InputPartition[]): number {
    const first = this.#listLength
    for (const partition of partitions) {
      this.#listed.set(this.#listLength, partition)
      this.#listLength += 1
    }
    return first
  }

  #sendList(first: number, partitions: readonly InputPartition[]): void {
    const entries = partitions.map((partition, offset) => partition.listEntry(first + offset))
    for (const page of encodePartitionList(entries)) {
      const { partitionCount, body } = page
      this.#channel?.send(messages.AddPartitions, { partitionCount }, [body])
    }
  }

  /** The list is complete: after the last of it the worker ends the channel. Idempotent. */
  endList(): void {
    if (this.#isListEnded || this.#channel === undefined) return
    this.#isListEnded = true
    this.#channel.send(messages.ReadEnd, { partitionCount: this.#listLength })
  }

  /** Forgets a partition; what is under way of it is skipped. */
  drop(partition: InputPartition): void {
    for (const [index, listed] of this.#listed) {
      if (listed !== partition) continue
      this.#forget(index, partition)
      this.#channel?.send(messages.DropPartition, { partition: index })
    }
  }

  grant(buffers: readonly PooledBuffer[]): void {
    const channel = this.#channel
    assert(channel !== undefined, 'only open channels are granted credit')
    if (this.#reserved.length === 0) this.#idle?.progress()
    this.#reserved.push(...buffers)
    this.#granted += buffers.length
    this.#checkCredit()
    assert(this.outstanding <= this.#backlogLeft, 'credit is granted against backlog only')
    channel.send(messages.AddCredit, { credit: buffers.length, regionIndex: noRegion })
  }

  /** Gives up; `run` resolves. Idempotent. */
  close(): void {
    this.#end({ tell: true })
    this.#ended.resolve(undefined)
  }

  // --- what the worker says ---

  #handler(): ChannelHandler {
    return {
      bodyBuffer: (bodyLength) => this.#bodyBuffer(bodyLength),
      onData: (buffer, bodyLength) => {
        this.#onData(buffer, bodyLength)
      },
      onMessage: (message) => {
        try {
          this.#onMessage(message)
        } catch (error) {
          this.#fail(error)
        }
      },
      onClosed: (error) => {
        this.#channel = undefined
        this.#fail(error)
      },
    }
  }

  #bodyBuffer(bodyLength: number): PooledBuffer | undefined {
    if (bodyLength > this.#options.bufferSizeBytes) {
      this.#fail(this.#broken(`a body of ${String(bodyLength)} bytes fits no buffer`))
      return undefined
    }
    const buffer = this.#reserved.shift()
    if (buffer === undefined) {
      this.#fail(this.#broken('data came beyond the credit'))
      return undefined
    }
    this.#consumed += 1
    this.#backlogLeft = Math.max(0, this.#backlogLeft - 1)
    this.#checkCredit()
    return buffer
  }

  #onData(buffer: PooledBuffer, bodyLength: number): void {
    const body = new SharedBody(buffer)
    this.#frames += 1
    this.#idle?.progress()
    try {
      const segments = this.#segments.reset(buffer.bytes, bodyLength)
      while (segments.next()) this.#onSegment(body)
    } catch (error) {
      this.#fail(error)
    } finally {
      body.release()
    }
    this.#options.sink.onFrame()
    this.#options.shares.schedule()
  }

  #onSegment(body: SharedBody): void {
    const { partition: index, regionIndex, subpartition } = this.#segments
    const partition = this.#listed.get(index)
    if (partition === undefined) {
      // Dropped while it was under way; its credit counts as used.
      if (index >= this.#listLength) throw this.#broken(`partition ${String(index)} is not listed`)
      return
    }
    try {
      partition.enterRun(regionIndex, subpartition)
      this.#acceptEntries(partition, body)
    } catch (error) {
      if (!isShuffleError(error, 'DATA_CORRUPT')) throw error
      this.drop(partition)
      this.#options.sink.onPartitionFailed(partition, withFields(error, partition.fields))
      return
    }
    this.#countRun(partition)
  }

  #acceptEntries(partition: InputPartition, body: SharedBody): void {
    const segments = this.#segments
    const entries = this.#entries.reset(body.bytes, segments.entriesStart, segments.entriesEnd)
    while (entries.next()) {
      partition.accept(entries)
      body.retain()
      this.#options.sink.onEntry({
        partition,
        generation: partition.generation,
        regionIndex: segments.regionIndex,
        subpartition: segments.subpartition,
        type: entries.type,
        isCompressed: entries.isCompressed,
        isLastOfRun: entries.isLastOfRun,
        payload: entries.payload(),
        body,
      })
    }
  }

  #countRun(partition: InputPartition): void {
    if (!partition.isRunOpen) {
      this.#openRuns.delete(partition)
      return
    }
    this.#openRuns.add(partition)
    if (this.#openRuns.size > openRunsMax) {
      throw this.#broken(`more than ${String(openRunsMax)} runs are unfinished`)
    }
  }

  #onMessage(message: ChannelMessage): void {
    switch (message.name) {
      case 'ReadOpened':
        this.#opened?.resolve(undefined)
        return
      case 'Backlog':
        this.#backlogLeft = message.fields.bufferCount
        this.#idle?.progress()
        this.#options.shares.schedule()
        return
      case 'PartitionFinish':
        this.#onPartitionFinish(message.fields)
        return
      case 'PartitionFailed':
        this.#onPartitionFailed(message.fields)
        return
      case 'ReadFinish':
        this.#onReadFinish(message.fields)
        return
      case 'Error':
        this.#end({ tell: false })
        this.#fail(errorOfWire(message.fields))
        return
      case 'CloseChannel':
        this.#channel?.send(messages.ChannelClosed, {})
        this.#end({ tell: false })
        this.#fail(new ShuffleError('WORKER_UNREACHABLE', 'the worker closed the read channel'))
        return
      default:
        throw this.#broken(`${message.name} is out of place on a read channel`)
    }
  }

  #onPartitionFinish(fields: MessageFields<'PartitionFinish'>): void {
    const partition = this.#take(fields.partition)
    if (partition === undefined) return
    this.#idle?.progress()
    try {
      partition.finish(fields)
    } catch (error) {
      if (!isShuffleError(error)) throw error
      this.#options.sink.onPartitionFailed(partition, error)
      return
    }
    this.#options.sink.onPartitionFinished(partition)
  }

  #onPartitionFailed(fields: MessageFields<'PartitionFailed'>): void {
    const partition = this.#take(fields.partition)
    if (partition === undefined) return
    this.#idle?.progress()
    const error = withFields(errorOfWire(fields), partition.fields)
    this.#options.sink.onPartitionFailed(partition, error)
  }

  #onReadFinish(fields: MessageFields<'ReadFinish'>): void {
    if (fields.frameCount !== this.#frames) {
      throw this.#broken(
        `the worker sent ${String(fields.frameCount)} frames, ${String(this.#frames)} came`,
      )
    }
    if (this.#listed.size > 0 || !this.#isListEnded) {
      throw this.#broken('the channel ends before its list')
    }
    this.#end({ tell: false })
    this.#ended.resolve(undefined)
  }

  /** The listed partition, no longer listed; undefined when it was dropped. */
  #take(index: number): InputPartition | undefined {
    if (index >= this.#listLength) throw this.#broken(`partition ${String(index)} is not listed`)
    const partition = this.#listed.get(index)
    if (partition !== undefined) this.#forget(index, partition)
    return partition
  }

  #forget(index: number, partition: InputPartition): void {
    this.#listed.delete(index)
    this.#openRuns.delete(partition)
  }

  // --- deadlines and the end ---

  #watch(): void {
    const { waiters, openTimeoutMs, fields } = this.#options
    this.#opened = waiters.wait({
      name: 'the opening of a read channel',
      timeoutMs: openTimeoutMs,
      timeoutCode: 'WORKER_UNREACHABLE',
      fields,
    })
    this.#opened.promise.catch((error: unknown) => {
      this.#fail(error)
    })
    this.#watchFrames()
  }

  #watchFrames(): void {
    const { waiters, idleTimeoutMs, fields } = this.#options
    const idle = waiters.wait<undefined>({
      name: 'a frame of a read channel',
      timeoutMs: idleTimeoutMs,
      timeoutCode: 'WORKER_UNREACHABLE',
      fields,
    })
    this.#idle = idle
    idle.promise.catch((error: unknown) => {
      if (this.#channel !== undefined && !this.#isWorkersTurn) this.#watchFrames()
      else this.#fail(error)
    })
  }

  /**
   * Not while a consumer that gives no credit for what the worker has waits for itself, or one with
   * nothing listed for its producers. A worker that says it has nothing more owes the end.
   */
  get #isWorkersTurn(): boolean {
    if (this.#listed.size === 0) return this.#isListEnded
    return this.#reserved.length > 0 || this.#backlogLeft === 0
  }

  #fail(error: unknown): void {
    this.#end({ tell: true })
    this.#ended.reject(withFields(error, this.#options.fields))
  }

  #end(options: { readonly tell: boolean }): void {
    const channel = this.#channel
    this.#channel = undefined
    channel?.close(options)
    this.#opened?.resolve(undefined)
    this.#idle?.resolve(undefined)
    for (const buffer of this.#reserved.splice(0)) buffer.recycle()
    this.#granted = this.#consumed
    this.#options.shares.unregister(this)
  }

  #checkCredit(): void {
    assert(
      this.#granted - this.#consumed === this.#reserved.length,
      'granted minus consumed equals the buffers reserved',
    )
  }

  #broken(what: string): ShuffleError {
    const { fields } = this.#options
    return new ShuffleError('PROTOCOL', `the worker broke the protocol: ${what}`, { fields })
  }
}
