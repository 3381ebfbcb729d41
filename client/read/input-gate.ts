// The input of one consumer: it reads each worker through a reader of its own, all with one bounded
// pool of memory, and hands out what they receive as batches. It ends when every input has finished
// and all of it was handed out, never earlier. Owned by the consumer's task.
//
//   worker reader ─> read channel ─┐ entries, checked
//   worker reader ─> read channel ─┴─> buffer unpacker ─> nextBatch
//        ^── credit ── shares of the pool <── recycled batches

import { BufferPool, type BufferUsage } from '../common/buffer-pool.ts'
import type { SpareBuffers } from '../common/spare-buffers.ts'
import { isShuffleError, ShuffleError } from '../common/errors.ts'
import { partitionKeyText } from '../common/ids.ts'
import { TimeInState, type StateSums } from '../common/time-in-state.ts'
import { cancelledError, type Waiter, type WaiterRegister } from '../common/waiters.ts'
import type { World } from '../common/world.ts'
import type { ShuffleDescriptor } from '../master/shuffle-descriptor.ts'
import type { Locator } from '../transport/locator.ts'
import { BufferUnpacker } from './buffer-unpacker.ts'
import { CreditShares } from './credit-shares.ts'
import { checkInputs, gateBuffersMin, type GateInputRange } from './gate-inputs.ts'
import { InputPartition } from './input-partition.ts'
import type { ReadSink } from './received-entry.ts'
import type { GateBatch } from './record-batch.ts'
import { WorkerReader, type ReadSettings } from './worker-reader.ts'

export type GateState = 'consumer' | 'data' | 'compression'

export interface GateSettings extends ReadSettings {
  readonly recordBytesMax: number
  readonly computeParallelism: number
}

export interface InputGateContext {
  readonly inputs: readonly GateInputRange[]
  readonly memoryBytes: number
  readonly signal: AbortSignal | undefined
  readonly world: Pick<World, 'clock' | 'random' | 'compute'>
  readonly waiters: WaiterRegister
  readonly usage: BufferUsage
  readonly spare: SpareBuffers
  readonly locator: Locator
  readonly settings: GateSettings
  /** An input failed; for the reports to the manager. */
  readonly onInputFailed: (descriptor: ShuffleDescriptor, error: ShuffleError) => void
  /** Called once, when it has ended or was closed. */
  readonly onClosed: (gate: InputGate) => void
}

/** What an input says of itself; structurally InputStatistics of the SPI. */
type InputView = Pick<
  InputPartition,
  'inputIndex' | 'state' | 'isBegun' | 'entryCount' | 'byteCount'
>

/** Uncompressed bytes ahead of the consumer, in buffers for each entry in work. */
const aheadBuffersPerWork = 4

/**
 * What the parts of a gate that was read to its end are closed with. Nobody is told; one for all, as an
 * error costs as much as several frames.
 */
const endedReason = new ShuffleError('CANCELLED', 'the input gate was read to its end')

export class InputGate {
  readonly #context: InputGateContext
  readonly #inputs: readonly InputPartition[]
  readonly #pool: BufferPool
  readonly #shares: CreditShares
  readonly #unpacker: BufferUnpacker
  readonly #readers = new Map<string, WorkerReader>()
  readonly #timeInState: TimeInState<GateState>
  readonly #failedUntold: InputPartition[] = []
  #unfinishedCount: number
  #failedCount = 0
  #isStarted = false
  #closed: ShuffleError | undefined
  #isEnded = false
  #closing: Promise<void> | undefined
  #change: Waiter<undefined> | undefined

  constructor(context: InputGateContext) {
    const { world, waiters, settings } = context
    const bufferSizeBytes = checkInputs(context.inputs, context.memoryBytes)
    this.#context = context
    this.#inputs = context.inputs.map(
      // Written out, here and where the inputs come from: a spread costs ten times as much.
      ({ descriptor, firstSubpartition, lastSubpartition, isPending }, inputIndex) =>
        new InputPartition(
          { inputIndex, descriptor, firstSubpartition, lastSubpartition, isPending },
          settings,
        ),
    )
    this.#unfinishedCount = this.#inputs.length
    this.#pool = new BufferPool({
      bufferSizeBytes,
      bufferCount: Math.max(gateBuffersMin, Math.floor(context.memoryBytes / bufferSizeBytes)),
      waiters,
      usage: context.usage,
      spare: context.spare,
    })
    this.#shares = new CreditShares({ pool: this.#pool, clock: world.clock, waiters })
    this.#unpacker = new BufferUnpacker({
      compute: world.compute,
      parallelism: settings.computeParallelism,
      aheadBytesMax: settings.computeParallelism * aheadBuffersPerWork * bufferSizeBytes,
      onReady: () => {
        this.#changed()
      },
      onFailed: (partition, error) => {
        this.#fail(partition, error)
      },
    })
    this.#timeInState = new TimeInState<GateState>(world.clock, ['consumer', 'data', 'compression'])
    context.signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (context.signal?.aborted === true) this.#onAbort()
  }

  async nextBatch(): Promise<GateBatch | undefined> {
    for (;;) {
      this.#throwIfClosed()
      this.#start()
      this.#throwFailure()
      const batch = this.pollBatch()
      if (batch !== undefined) return batch
      this.#throwFailure()
      if (this.#isDone()) {
        this.#end()
        return undefined
      }
      await this.#waitForChange()
    }
  }

  pollBatch(): GateBatch | undefined {
    this.#throwIfClosed()
    this.#start()
    const batch = this.#unpacker.poll()
    if (batch !== undefined) this.#inputs[batch.origin.inputIndex]?.begin()
    return batch
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<GateBatch, void, undefined> {
    for (;;) {
      const batch = await this.nextBatch()
      if (batch === undefined) return
      yield batch
    }
  }

  updatePartition(inputIndex: number, descriptor: ShuffleDescriptor): void {
    this.#throwIfClosed()
    const partition = this.#inputs[inputIndex]
    if (partition === undefined) {
      throw new ShuffleError('INVALID_ARGUMENT', `the gate has no input ${String(inputIndex)}`)
    }
    const { bufferSizeBytes } = this.#pool
    const { firstSubpartition, lastSubpartition, isPending } = partition
    const range = { descriptor, firstSubpartition, lastSubpartition, isPending }
    checkInputs([range], this.#pool.bufferCount * bufferSizeBytes, bufferSizeBytes)
    const isSame = partitionKeyText(partition.descriptor.key) === partitionKeyText(descriptor.key)
    const canGoOn = isSame && partition.state !== 'failed'
    if (!canGoOn && partition.isBegun) {
      throw partition.error(
        'INVALID_ARGUMENT',
        'something of this input was handed out: it cannot be read from another attempt',
      )
    }
    if (canGoOn && partition.state === 'finished') return
    this.#readerOf(partition).remove(partition)
    if (canGoOn) partition.move(descriptor)
    else this.#reset(partition, descriptor)
    if (this.#isStarted) this.#readerOf(partition).add(partition)
    this.#changed()
  }

  inputs(): readonly InputView[] {
    return this.#inputs.map(({ inputIndex, state, isBegun, entryCount, byteCount }) => ({
      inputIndex,
      state,
      isBegun,
      entryCount,
      byteCount,
    }))
  }

  /** Whether it has ended or was closed. */
  get isClosed(): boolean {
    return this.#closed !== undefined
  }

  /** Bytes of entries received so far. */
  get receivedBytes(): number {
    return this.#inputs.reduce((sum, { byteCount }) => sum + byteCount, 0)
  }

  timeInState(): StateSums<GateState> {
    return this.#timeInState.sums()
  }

  close(): Promise<void> {
    return (
      this.#closing ?? this.#closeWith(new ShuffleError('CANCELLED', 'the input gate was closed'))
    )
  }

  readonly #onAbort = () => {
    void this.#closeWith(cancelledError('an input gate', this.#context.signal?.reason))
  }

  /** In another order for each gate, so that not all consumers begin with the same worker. */
  #start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    const { random } = this.#context.world
    const shift = Math.floor(random.float() * this.#inputs.length)
    for (let index = 0; index < this.#inputs.length; index += 1) {
      const partition = this.#inputs[(index + shift) % this.#inputs.length]
      if (partition !== undefined) this.#readerOf(partition).add(partition)
    }
  }

  #readerOf(partition: InputPartition): WorkerReader {
    const { holder, descriptor } = partition
    const { bufferSizeBytes } = descriptor
    const name = `${holder.workerId} ${String(bufferSizeBytes)}`
    const known = this.#readers.get(name)
    if (known !== undefined) return known
    const { world, waiters, locator, settings } = this.#context
    const reader = new WorkerReader({
      worker: holder,
      bufferSizeBytes,
      connect: (worker, key, signal) => locator.connect(worker, key, signal),
      shares: this.#shares,
      clock: world.clock,
      random: world.random,
      waiters,
      settings,
      sink: this.#sink(),
    })
    this.#readers.set(name, reader)
    return reader
  }

  #sink(): ReadSink {
    return {
      onEntry: (entry) => {
        this.#unpacker.push(entry)
      },
      onFrame: () => {
        this.#changed()
      },
      onPartitionFinished: () => {
        this.#unfinishedCount -= 1
        this.#changed()
      },
      onPartitionFailed: (partition, error) => {
        this.#fail(partition, error)
      },
    }
  }

  #fail(partition: InputPartition, error: ShuffleError): void {
    if (partition.state === 'failed' || this.#closed !== undefined) return
    if (partition.state === 'finished') this.#unfinishedCount += 1
    partition.fail(error)
    this.#failedCount += 1
    this.#failedUntold.push(partition)
    this.#readerOf(partition).remove(partition)
    this.#unpacker.discardStale()
    this.#context.onInputFailed(partition.descriptor, error)
    this.#changed()
  }

  #reset(partition: InputPartition, descriptor: ShuffleDescriptor): void {
    if (partition.state === 'failed') this.#failedCount -= 1
    if (partition.state === 'finished') this.#unfinishedCount += 1
    const untold = this.#failedUntold.indexOf(partition)
    if (untold >= 0) this.#failedUntold.splice(untold, 1)
    partition.reset(descriptor)
    this.#unpacker.discardStale()
  }

  /** A failure that was not told yet; when nothing but failed inputs is left, the first again. */
  #throwFailure(): void {
    const untold = this.#failedUntold.shift()
    if (untold?.failure !== undefined) throw untold.failure
    const onlyFailed = this.#failedCount > 0 && this.#failedCount === this.#unfinishedCount
    if (!onlyFailed || !this.#unpacker.isEmpty) return
    const failure = this.#inputs.find(({ state }) => state === 'failed')?.failure
    if (failure !== undefined) throw failure
  }

  #isDone(): boolean {
    return this.#unfinishedCount === 0 && this.#unpacker.isEmpty
  }

  async #waitForChange(): Promise<void> {
    const { waiters } = this.#context
    this.#timeInState.enter(this.#unpacker.workingCount > 0 ? 'compression' : 'data')
    this.#change = waiters.wait<undefined>({
      name: 'data for a consumer',
      // The readers' deadlines end it: each input finishes or fails.
      timeoutMs: Infinity,
      fields: { inputs: this.#inputs.length, unfinished: this.#unfinishedCount },
    })
    try {
      await this.#change.promise
    } finally {
      this.#timeInState.enter('consumer')
    }
  }

  #changed(): void {
    this.#change?.resolve(undefined)
  }

  #throwIfClosed(): void {
    if (this.#closed !== undefined && !this.#isEnded) throw this.#closed
  }

  #end(): void {
    this.#isEnded = true
    void this.#closeWith(endedReason)
  }

  #closeWith(reason: Error): Promise<void> {
    this.#closing ??= this.#closeOnce(reason)
    return this.#closing
  }

  async #closeOnce(reason: Error): Promise<void> {
    const closed = isShuffleError(reason)
      ? reason
      : new ShuffleError('CANCELLED', reason.message, { cause: reason })
    this.#closed = closed
    this.#context.signal?.removeEventListener('abort', this.#onAbort)
    this.#unpacker.close()
    this.#shares.close()
    this.#change?.reject(closed)
    const readers = [...this.#readers.values()]
    await Promise.all(readers.map((reader) => reader.close(closed)))
    this.#pool.close()
    this.#context.onClosed(this)
  }
}
