// One write channel: an open write of one partition. Messages are taken in order, one step after the
// other; data goes to the disk in batches, as its credit allows. Owned by the connection's handler;
// ends exactly once: committed, failed or closed, and then everything it held has gone back.
//
//   opening ─▶ open ─ RegionStart ─▶ region: space, then credit, data, batches ─ RegionFinish ─▶ open
//                │                                                                 (as often as it takes)
//                ╰─ WriteFinish ─▶ committing ─▶ ended

import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { Clock, Timer } from '../../client/common/clock.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { PartitionKey } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { TimeInState, type StateSums } from '../../client/common/time-in-state.ts'
import type { WaiterRegister } from '../../client/common/waiters.ts'
import { ByteCountAssembler } from '../../client/protocol/byte-counts.ts'
import type { MessageFields } from '../../client/protocol/messages.ts'
import type { Reservation } from '../memory/memory-ledger.ts'
import type {
  CommittedTotals,
  PartitionWriter,
  StorageDirectoryView,
} from '../storage/storage-types.ts'
import type { CreditGranter } from './credit-granter.ts'
import type { RegionTurns } from './region-turns.ts'
import { WritingRegion } from './writing-region.ts'

export const writeStates = ['idle', 'opening', 'memory', 'client', 'disk', 'commit'] as const
export type WriteState = (typeof writeStates)[number]

/** What the view tells its producer. */
export interface WritingOutput {
  sendOpened(): void
  sendCredit(regionIndex: number, count: number): void
  /** The last frame of the channel. */
  sendCommitted(totals: CommittedTotals, uncompressedBytes: number): void
  /** The write has failed: the last frame of the channel. */
  sendError(error: ShuffleError): void
}

/** How the regions of one disk share memory and heads. */
export interface DiskWrites {
  readonly granter: CreditGranter
  /** Undefined where regions don't disturb each other. */
  readonly turns: RegionTurns | undefined
  /** Bytes gathered for one write, unless credit or region end first. */
  readonly batchBytes: number
}

export interface WritingViewOptions {
  readonly clock: Clock
  readonly waiters: WaiterRegister
  readonly logger: Logger
  readonly output: WritingOutput
  readonly key: PartitionKey
  readonly bufferSizeBytes: number
  readonly subpartitionCount: number
  readonly openWriter: () => Promise<PartitionWriter>
  readonly writesOf: (directory: StorageDirectoryView) => DiskWrites
  readonly openTimeoutMs: number
  readonly regionTimeoutMs: number
  readonly commitTimeoutMs: number
  /** Counted memory for the pages of a WriteFinish that takes several; undefined when there is none. */
  readonly reservePages: (bytes: number) => Reservation | undefined
  /** It has ended; `error` is undefined when it was committed or closed by its client. */
  readonly onEnded: (view: WritingView, error: ShuffleError | undefined) => void
}

/** Messages taken before earlier ones are done: a region's start and end, and the end of the write. */
const stepsMax = 64

export class WritingView {
  readonly #options: WritingViewOptions
  readonly #states: TimeInState<WriteState>
  readonly #steps: (() => Promise<void>)[] = []
  #isStepping = false
  #writer: PartitionWriter | undefined
  #region: WritingRegion | undefined
  /** Regions whose start has been taken, though it may not be their turn yet. */
  #regionsStarted = 0
  #regionsFinished = 0
  #uncompressed: ByteCountAssembler | undefined
  /** From the first page of several to the end of the write. */
  #pages: { readonly reservation: Reservation; readonly deadline: Timer } | undefined
  #hasEnded = false

  constructor(options: WritingViewOptions) {
    this.#options = options
    this.#states = new TimeInState(options.clock, writeStates)
    // Not within the turn: what arrived with its OpenWrite may give it up, and then its key stays free.
    this.#addStep(() => Promise.resolve())
    this.#addStep(() => this.#open())
  }

  get key(): PartitionKey {
    return this.#options.key
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  stateSums(): StateSums<WriteState> {
    return this.#states.sums()
  }

  regionStart(fields: MessageFields<'RegionStart'>): void {
    if (this.#hasEnded) return
    if (
      fields.regionIndex !== this.#regionsStarted ||
      this.#regionsStarted !== this.#regionsFinished ||
      this.#uncompressed !== undefined
    ) {
      this.#failProtocol('RegionStart out of order', { regionIndex: fields.regionIndex })
      return
    }
    this.#regionsStarted += 1
    this.#addStep(() => this.#startRegion(fields))
  }

  /** Memory for the body of a WriteData: spends a credit. Undefined when the write has ended. */
  bodyBuffer(regionIndex: number, bodyLength: number): PooledBuffer | undefined {
    if (this.#hasEnded) return undefined
    const region = this.#region
    if (bodyLength > this.#options.bufferSizeBytes || bodyLength === 0) {
      this.#failProtocol('a body of WriteData is empty or larger than the buffer size', {
        bodyLength,
      })
      return
    }
    const buffer = region?.regionIndex === regionIndex ? region.takeBuffer() : undefined
    if (buffer === undefined) {
      this.#failProtocol('data beyond credit', { regionIndex })
      return
    }
    this.#states.enter('client')
    return buffer
  }

  /** The filled buffer of `bodyBuffer`; it is recycled on every path. */
  data(regionIndex: number, buffer: PooledBuffer, bodyLength: number): void {
    const region = this.#region
    if (this.#hasEnded || region?.regionIndex !== regionIndex) {
      buffer.recycle()
      return
    }
    region.add({ buffer, length: bodyLength })
  }

  regionFinish(fields: MessageFields<'RegionFinish'>): void {
    if (this.#hasEnded) return
    if (
      fields.regionIndex !== this.#regionsFinished ||
      this.#regionsFinished >= this.#regionsStarted
    ) {
      this.#failProtocol('RegionFinish out of order', { regionIndex: fields.regionIndex })
      return
    }
    this.#regionsFinished += 1
    this.#addStep(() => this.#finishRegion(fields))
  }

  writeFinish(fields: MessageFields<'WriteFinish'>, body: Uint8Array): void {
    if (this.#hasEnded) return
    if (this.#regionsStarted !== this.#regionsFinished || this.#uncompressed?.isComplete === true) {
      this.#failProtocol('WriteFinish out of order', {})
      return
    }
    try {
      if (!fields.isLast) this.#awaitPages()
      this.#uncompressed ??= new ByteCountAssembler(this.#options.subpartitionCount)
      this.#uncompressed.addPage({
        firstSubpartition: fields.firstSubpartition,
        isLast: fields.isLast,
        body,
      })
    } catch (error) {
      this.fail(error)
      return
    }
    const assembler = this.#uncompressed
    if (!assembler.isComplete) return
    this.#pages?.deadline.cancel()
    this.#addStep(() => this.#commit(fields, assembler.counts))
  }

  /** More pages follow: what is held for them is counted, and has a deadline. */
  #awaitPages(): void {
    if (this.#pages !== undefined) return
    const { clock, subpartitionCount, regionTimeoutMs } = this.#options
    const reservation = this.#options.reservePages(subpartitionCount * 8)
    if (reservation === undefined) {
      throw new ShuffleError('BUSY', 'no memory for the pages of WriteFinish; try again', {
        fields: { ...this.key, subpartitionCount },
      })
    }
    const deadline = clock.setTimer(regionTimeoutMs, () => {
      this.fail(
        new ShuffleError(
          'WRITE_INTERRUPTED',
          `the last page of WriteFinish did not come within ${String(regionTimeoutMs)} ms (region-timeout)`,
          { fields: { ...this.key } },
        ),
      )
    })
    this.#pages = { reservation, deadline }
  }

  /** The client gave it up, or its connection is gone. Idempotent. */
  close(): void {
    this.#end(undefined)
  }

  fail(error: unknown): void {
    if (this.#hasEnded) return
    const failure = asWriteError(error, this.key)
    this.#options.output.sendError(failure)
    this.#end(failure)
  }

  #addStep(step: () => Promise<void>): void {
    if (this.#steps.length >= stepsMax) {
      this.#failProtocol('too many messages ahead of their answers', { stepsMax })
      return
    }
    this.#steps.push(step)
    if (this.#isStepping) return
    this.#isStepping = true
    this.#runSteps().catch((error: unknown) => {
      this.fail(error)
    })
  }

  async #runSteps(): Promise<void> {
    try {
      for (let step = this.#steps.shift(); step !== undefined; step = this.#steps.shift()) {
        if (this.#hasEnded) return
        await step()
      }
    } finally {
      this.#isStepping = false
    }
  }

  async #open(): Promise<void> {
    this.#states.enter('opening')
    const opening = this.#options.openWriter().then((writer) => {
      // The channel may be over by now: what was opened goes at once.
      if (this.#hasEnded) this.#abort(writer)
      else this.#writer = writer
    })
    await this.#within(opening, 'opening of a partition', this.#options.openTimeoutMs)
    if (this.#hasEnded) return
    this.#states.enter('idle')
    this.#options.output.sendOpened()
  }

  async #startRegion(fields: MessageFields<'RegionStart'>): Promise<void> {
    const writer = this.#writerOrFail()
    this.#states.enter('memory')
    await writer.startRegion(fields)
    if (this.#hasEnded) return
    this.#region = new WritingRegion({
      waiters: this.#options.waiters,
      writes: this.#options.writesOf(writer.directory),
      writer,
      boundBytes: fields.boundBytes,
      regionIndex: fields.regionIndex,
      bufferSizeBytes: this.#options.bufferSizeBytes,
      timeoutMs: this.#options.regionTimeoutMs,
      onGrant: (count) => {
        this.#states.enter('client')
        this.#options.output.sendCredit(fields.regionIndex, count)
      },
      onWriting: () => {
        this.#states.enter('disk')
      },
      onFailed: (error) => {
        this.fail(error)
      },
    })
    this.#region.enter()
  }

  async #finishRegion(fields: MessageFields<'RegionFinish'>): Promise<void> {
    const writer = this.#writerOrFail()
    const region = this.#region
    if (region === undefined) return
    this.#states.enter('disk')
    await region.finish()
    if (this.#hasEnded) return
    await writer.finishRegion(fields)
    region.close()
    if (this.#region === region) this.#region = undefined
    this.#states.enter('idle')
  }

  async #commit(fields: MessageFields<'WriteFinish'>, counts: Float64Array): Promise<void> {
    const writer = this.#writerOrFail()
    this.#states.enter('commit')
    const committing = writer.finish({
      regionCount: fields.regionCount,
      byteCount: fields.byteCount,
      recordCount: fields.recordCount,
      uncompressedBytes: counts,
    })
    const totals = await this.#within(committing, 'commit', this.#options.commitTimeoutMs)
    if (this.#hasEnded) return
    this.#writer = undefined
    const uncompressedBytes = counts.reduce((sum, bytes) => sum + bytes, 0)
    this.#options.output.sendCommitted(totals, uncompressedBytes)
    this.#end(undefined)
  }

  #writerOrFail(): PartitionWriter {
    if (this.#writer === undefined) {
      throw new ShuffleError('PROTOCOL', 'the write is not open', { fields: { ...this.key } })
    }
    return this.#writer
  }

  /** `work` with a deadline; work that ends later has no effect but its own clean-up. */
  async #within<T>(work: Promise<T>, name: string, timeoutMs: number): Promise<T> {
    const waiter = this.#options.waiters.wait<T>({
      name,
      timeoutMs,
      timeoutCode: 'DISK_FAILED',
      fields: { ...this.key },
    })
    work.then(
      (value) => {
        waiter.resolve(value)
      },
      (error: unknown) => {
        waiter.reject(error instanceof Error ? error : new Error(String(error)))
      },
    )
    return waiter.promise
  }

  #failProtocol(what: string, fields: Readonly<Record<string, number>>): undefined {
    this.fail(new ShuffleError('PROTOCOL', what, { fields: { ...this.key, ...fields } }))
    return undefined
  }

  #end(error: ShuffleError | undefined): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#steps.length = 0
    this.#pages?.deadline.cancel()
    this.#pages?.reservation.release()
    this.#pages = undefined
    this.#region?.close()
    this.#region = undefined
    if (this.#writer !== undefined) this.#abort(this.#writer)
    this.#writer = undefined
    this.#states.enter('idle')
    this.#options.onEnded(this, error)
  }

  #abort(writer: PartitionWriter): void {
    writer.abort().catch((error: unknown) => {
      this.#options.logger.warn({ error, ...this.key }, 'a broken write could not be cleaned up')
    })
  }
}

function asWriteError(error: unknown, key: PartitionKey): ShuffleError {
  if (error instanceof ShuffleError) return error
  return new ShuffleError('DISK_FAILED', 'writing the partition failed', {
    cause: error,
    fields: { ...key },
  })
}
