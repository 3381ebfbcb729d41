// The output of one producer attempt: records go into the sort buffer; when it is full they leave as
// one data region, in the background, while the next region fills. Owned by the producer's task,
// which makes one call after another.
//
//   emitRecord ─> sort buffer ─(full)─> region ─> buffer packer ─> write channel ─> worker
//                     ^ freed blocks ──────┘
//
// A record larger than the empty sort buffer becomes a region of its own, sent straight from the
// caller's memory. A broadcast region and a unicast one follow each other, never mixed.

import { assert } from '../common/assert.ts'
import { BufferPool, type BufferUsage } from '../common/buffer-pool.ts'
import type { SpareBuffers } from '../common/spare-buffers.ts'
import { ShuffleError, type ErrorFields } from '../common/errors.ts'
import { TimeInState, type StateSums } from '../common/time-in-state.ts'
import { cancelledError, type Waiter, type WaiterRegister } from '../common/waiters.ts'
import type { World } from '../common/world.ts'
import type { ShuffleDescriptor, ShuffleHolder } from '../master/shuffle-descriptor.ts'
import { EntryChecksum, entryPayloadMax, entryTypes } from '../protocol/entry.ts'
import { Backoff } from '../transport/backoff.ts'
import { withFields } from '../transport/error-fields.ts'
import type { Locator } from '../transport/locator.ts'
import { BufferPacker } from './buffer-packer.ts'
import type { CommittedPartition } from './committed-partition.ts'
import { checkDescriptor, divideMemory, type PartitionSettings } from './partition-settings.ts'
import { recordPieces, regionPieces, type PieceSource } from './region-pieces.ts'
import { SortBuffer } from './sort-buffer.ts'
import { WriteChannel, type WriteState } from './write-channel.ts'

export interface ResultPartitionContext {
  readonly descriptor: ShuffleDescriptor
  readonly memoryBytes: number
  readonly expectedBytes: number | undefined
  readonly signal: AbortSignal | undefined
  readonly world: Pick<World, 'clock' | 'random' | 'compute'>
  readonly waiters: WaiterRegister
  readonly usage: BufferUsage
  readonly spare: SpareBuffers
  readonly locator: Locator
  readonly settings: PartitionSettings
  /** Called once, when it has committed or failed. */
  readonly onClosed: (partition: ResultPartition) => void
}

const knownTypes: readonly number[] = Object.values(entryTypes)

interface Emission {
  readonly isBroadcast: boolean
  readonly subpartition: number
  /** Of the event; undefined: a record. */
  readonly code: number | undefined
  readonly bytes: Uint8Array
}

export class ResultPartition {
  readonly #context: ResultPartitionContext
  readonly #fields: ErrorFields
  readonly #pools: readonly BufferPool[]
  readonly #sortBuffer: SortBuffer
  readonly #packer: BufferPacker
  readonly #channel: WriteChannel
  readonly #timeInState: TimeInState<WriteState>
  readonly #ending = new AbortController()
  #state: 'open' | 'finishing' | 'committed' | 'failed' = 'open'
  #failure: ShuffleError | undefined
  #sending: Promise<void> | undefined
  #space: Waiter<undefined> | undefined
  #spaceWantedBytes = 0
  #recordCount = 0

  constructor(context: ResultPartitionContext) {
    const { descriptor } = context
    const holder = checkDescriptor(descriptor)
    this.#context = context
    this.#fields = { ...descriptor.key, workerId: holder.workerId }
    const shares = divideMemory(descriptor, context.memoryBytes, context.settings)
    // Each has its own: bodies that a slow socket holds must not take what sorting counts on.
    const sortPool = this.#makePool(shares.sortBuffers)
    const scratchPool = this.#makePool(shares.parallelism)
    const bodyPool = this.#makePool(shares.bodyBuffers)
    this.#pools = [sortPool, scratchPool, bodyPool]
    this.#sortBuffer = new SortBuffer({
      pool: sortPool,
      bufferCountMax: shares.sortBuffers,
      subpartitionCount: descriptor.subpartitionCount,
    })
    this.#timeInState = new TimeInState<WriteState>(context.world.clock, [
      'idle',
      'compression',
      'credit',
      'socket',
      'commit',
    ])
    this.#channel = this.#makeChannel(holder)
    this.#packer = this.#makePacker({ pool: bodyPool, scratchPool })
    context.signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (context.signal?.aborted === true) this.#onAbort()
  }

  emitRecord(record: Uint8Array, subpartition: number): Promise<void> | undefined {
    if (this.#isReadyFor(record, false) && this.#isInRange(subpartition)) {
      if (this.#sortBuffer.append(subpartition, record)) return undefined
    }
    return this.#emitLater({ isBroadcast: false, subpartition, code: undefined, bytes: record })
  }

  broadcastRecord(record: Uint8Array): Promise<void> | undefined {
    if (this.#isReadyFor(record, true) && this.#sortBuffer.append(0, record)) return undefined
    return this.#emitLater({ isBroadcast: true, subpartition: 0, code: undefined, bytes: record })
  }

  emitEvent(code: number, bytes: Uint8Array, subpartition: number): Promise<void> | undefined {
    return this.#emitLater({ isBroadcast: false, subpartition, code, bytes })
  }

  broadcastEvent(code: number, bytes: Uint8Array): Promise<void> | undefined {
    return this.#emitLater({ isBroadcast: true, subpartition: 0, code, bytes })
  }

  async finish(): Promise<CommittedPartition> {
    this.#throwUnlessOpen()
    this.#state = 'finishing'
    try {
      await this.#sendRest()
      if (!this.#channel.isOpen) await this.#channel.openEmpty()
      const bytesBySubpartition = this.#packer.bytesBySubpartition()
      const recordCount = this.#recordCount
      const stored = await this.#channel.finish({ recordCount, bytesBySubpartition })
      // Aborted in the very moment of the commit, it has been closed as failed.
      this.#throwIfFailed()
      this.#close('committed')
      return {
        recordCount,
        regionCount: stored.regionCount,
        entryCount: stored.entryCount,
        uncompressedBytes: this.#packer.uncompressedBytes,
        storedBytes: stored.byteCount,
        bytesBySubpartition,
        isDurable: stored.durability === 'sync',
      }
    } catch (error) {
      throw this.#fail(error)
    }
  }

  abort(reason?: unknown): void {
    if (this.#state === 'committed') return
    this.#fail(cancelledError('a result partition', reason, this.#fields))
  }

  /** Why it failed, when it has. */
  get failure(): ShuffleError | undefined {
    return this.#failure
  }

  /** Whether it has committed or failed. */
  get isClosed(): boolean {
    return this.#state === 'committed' || this.#state === 'failed'
  }

  /** Bytes of entries sent to the worker so far. */
  get storedBytes(): number {
    return this.#channel.byteCount
  }

  timeInState(): StateSums<WriteState> {
    return this.#timeInState.sums()
  }

  readonly #onAbort = () => {
    this.abort(this.#context.signal?.reason)
  }

  #isReadyFor(record: Uint8Array, isBroadcast: boolean): boolean {
    return (
      this.#state === 'open' &&
      this.#sortBuffer.isBroadcast === isBroadcast &&
      record.length <= this.#context.settings.recordBytesMax
    )
  }

  #isInRange(subpartition: number): boolean {
    const { subpartitionCount } = this.#context.descriptor
    return Number.isInteger(subpartition) && subpartition >= 0 && subpartition < subpartitionCount
  }

  /** The way of everything that may have to wait: for the other kind of region, or for memory. */
  async #emitLater(emission: Emission): Promise<void> {
    this.#throwUnlessOpen()
    this.#check(emission)
    const buffer = this.#sortBuffer
    if (buffer.isBroadcast !== emission.isBroadcast) {
      if (!buffer.isEmpty) await this.#startNextRegion()
      buffer.isBroadcast = emission.isBroadcast
    }
    while (!this.#add(emission)) {
      if (this.#sending !== undefined) {
        await this.#waitForSpace(emission.bytes.length)
      } else if (buffer.isEmpty) {
        await this.#sendLarge(emission)
        return
      } else {
        await this.#startNextRegion()
        buffer.isBroadcast = emission.isBroadcast
      }
    }
  }

  #add(emission: Emission): boolean {
    // Aborted since the wait for room has ended, it has given its memory back.
    this.#throwIfFailed()
    const { subpartition, code, bytes } = emission
    return code === undefined
      ? this.#sortBuffer.append(subpartition, bytes)
      : this.#sortBuffer.appendEvent(subpartition, code, bytes)
  }

  /** Lets what is in the sort buffer leave, after the region before it. */
  async #startNextRegion(): Promise<void> {
    await this.#sending
    this.#throwIfFailed()
    const region = this.#sortBuffer.takeRegion()
    this.#recordCount += region.recordCount
    const source = regionPieces(region, this.#payloadBytesMax)
    this.#sending = this.#packer
      .sendRegion(this.#watched(source))
      .catch((error: unknown) => {
        this.#fail(error)
      })
      .finally(() => {
        region.release()
        this.#sending = undefined
        this.#space?.resolve(undefined)
      })
  }

  async #sendLarge(emission: Emission): Promise<void> {
    const source = recordPieces(emission.bytes, emission, this.#payloadBytesMax)
    this.#recordCount += 1
    try {
      await this.#packer.sendRegion(source)
    } catch (error) {
      throw this.#fail(error)
    }
  }

  async #sendRest(): Promise<void> {
    if (!this.#sortBuffer.isEmpty) await this.#startNextRegion()
    await this.#sending
    this.#throwIfFailed()
  }

  /** Waits until the leaving region has made room for `byteCount` and some more, or has left. */
  async #waitForSpace(byteCount: number): Promise<void> {
    const wantedBytes = Math.max(byteCount + 4, this.#sortBuffer.capacityBytes / 8)
    // With that much free something else is short: events are counted apart.
    this.#spaceWantedBytes = this.#sortBuffer.freeBytes >= wantedBytes ? Infinity : wantedBytes
    this.#space = this.#context.waiters.wait<undefined>({
      name: 'room in the sort buffer',
      // What the leaving region waits for has deadlines.
      timeoutMs: Infinity,
      signal: this.#ending.signal,
      fields: this.#fields,
    })
    await this.#space.promise
    this.#throwIfFailed()
  }

  /** The same pieces; each one that was taken may have made the room that is waited for. */
  #watched(source: PieceSource): PieceSource {
    const onTaken = () => {
      if (this.#space === undefined) return
      if (this.#sortBuffer.freeBytes >= this.#spaceWantedBytes) this.#space.resolve(undefined)
    }
    return {
      isBroadcast: source.isBroadcast,
      boundBytes: source.boundBytes,
      *pieces() {
        for (const piece of source.pieces()) {
          yield piece
          onTaken()
        }
      },
    }
  }

  get #payloadBytesMax(): number {
    return entryPayloadMax(this.#context.descriptor.bufferSizeBytes)
  }

  #check(emission: Emission): void {
    const { recordBytesMax } = this.#context.settings
    if (!this.#isInRange(emission.subpartition)) {
      throw this.#invalid(`there is no subpartition ${String(emission.subpartition)}`)
    }
    if (emission.code === undefined) {
      if (emission.bytes.length <= recordBytesMax) return
      throw new ShuffleError(
        'LIMIT_EXCEEDED',
        `a record of ${String(emission.bytes.length)} bytes is longer than the ${String(recordBytesMax)} that are allowed`,
        { fields: { ...this.#fields, recordBytes: emission.bytes.length } },
      )
    }
    if (emission.code === entryTypes.data || !knownTypes.includes(emission.code)) {
      throw this.#invalid(`${String(emission.code)} is no event code`)
    }
    if (emission.bytes.length > this.#payloadBytesMax) {
      throw this.#invalid(`an event of ${String(emission.bytes.length)} bytes fits no entry`)
    }
  }

  #invalid(message: string): ShuffleError {
    return new ShuffleError('INVALID_ARGUMENT', message, { fields: this.#fields })
  }

  #throwUnlessOpen(): void {
    this.#throwIfFailed()
    assert(this.#state === 'open', 'nothing is called after finish')
  }

  #throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** The first failure decides and frees everything. */
  #fail(error: unknown): ShuffleError {
    if (this.#failure !== undefined) return this.#failure
    const failure = withFields(error, this.#fields)
    this.#failure = failure
    this.#channel.abort(failure)
    this.#ending.abort(failure)
    this.#close('failed')
    return failure
  }

  #close(state: 'committed' | 'failed'): void {
    this.#state = state
    this.#context.signal?.removeEventListener('abort', this.#onAbort)
    this.#sortBuffer.close()
    for (const pool of this.#pools) pool.close()
    this.#context.onClosed(this)
  }

  #makeChannel(holder: ShuffleHolder): WriteChannel {
    const { descriptor, expectedBytes, world, waiters, locator, settings } = this.#context
    return new WriteChannel({
      descriptor,
      expectedBytes,
      connect: (signal) => locator.connect(holder, descriptor.key, signal),
      waiters,
      backoff: new Backoff({
        clock: world.clock,
        random: world.random,
        delayMinMs: settings.retryDelayMinMs,
        delayMaxMs: settings.retryDelayMaxMs,
      }),
      timeInState: this.#timeInState,
      openTimeoutMs: settings.writeOpenTimeoutMs,
      regionTimeoutMs: settings.regionTimeoutMs,
      commitTimeoutMs: settings.commitTimeoutMs,
      fields: this.#fields,
    })
  }

  #makePool(bufferCount: number): BufferPool {
    const { descriptor, waiters, usage, spare } = this.#context
    const { bufferSizeBytes } = descriptor
    return new BufferPool({ bufferSizeBytes, bufferCount, waiters, usage, spare })
  }

  #makePacker(pools: {
    readonly pool: BufferPool
    readonly scratchPool: BufferPool
  }): BufferPacker {
    const { descriptor, world, settings } = this.#context
    return new BufferPacker({
      ...pools,
      channel: this.#channel,
      compute: world.compute,
      checksum: new EntryChecksum(descriptor.key),
      isCompressed: settings.isCompressionEnabled && descriptor.codec === 'lz4',
      parallelism: pools.scratchPool.bufferCount,
      subpartitionCount: descriptor.subpartitionCount,
      timeInState: this.#timeInState,
      signal: this.#ending.signal,
      bufferTimeoutMs: settings.regionTimeoutMs,
      fields: this.#fields,
    })
  }
}
