// Everything a gate reads from one worker, through one channel at a time. It connects, lists what is
// to be read, and when the channel is lost goes on where it stood: again and again until the worker
// has been unreachable for its deadline. Partitions that are not ready are listed again with
// back-off. Owned by one gate.
//
//   waiting (from a time on) ──listed──> channel ──> finished
//        ^──── cut, BUSY, NOT_READY ────────┘└─────> failed (told to the gate)

import type { Clock, Timer } from '../common/clock.ts'
import { isShuffleError, type ErrorFields, type ShuffleError } from '../common/errors.ts'
import type { PartitionKey } from '../common/ids.ts'
import type { Random } from '../common/random.ts'
import type { Waiter, WaiterRegister } from '../common/waiters.ts'
import { Backoff } from '../transport/backoff.ts'
import type { WorkerAddress } from '../transport/connection-pool.ts'
import { withFields } from '../transport/error-fields.ts'
import type { WorkerConnection } from '../transport/worker-connection.ts'
import type { CreditShares } from './credit-shares.ts'
import type { InputPartition } from './input-partition.ts'
import { ReadChannel } from './read-channel.ts'
import type { ReadSink } from './received-entry.ts'

export interface ReadSettings {
  readonly connectTimeoutMs: number
  readonly readUnreachableTimeoutMs: number
  readonly readIdleTimeoutMs: number
  readonly readRetryTimeoutMs: number
  readonly retryDelayMinMs: number
  readonly retryDelayMaxMs: number
}

export interface WorkerReaderOptions {
  readonly worker: WorkerAddress
  readonly bufferSizeBytes: number
  /** A connection to the worker, wherever it is now; `key` is a partition that it holds. */
  readonly connect: (
    worker: WorkerAddress,
    key: PartitionKey,
    signal: AbortSignal,
  ) => Promise<WorkerConnection>
  readonly shares: CreditShares
  readonly clock: Clock
  readonly random: Random
  readonly waiters: WaiterRegister
  readonly settings: ReadSettings
  readonly sink: ReadSink
}

export class WorkerReader {
  readonly #options: WorkerReaderOptions
  readonly #fields: ErrorFields
  readonly #closing = new AbortController()
  /** Not listed now; each from the time on that is given. */
  readonly #waiting = new Map<InputPartition, number>()
  readonly #retries = new Map<InputPartition, Backoff>()
  readonly #unreachable: Backoff
  readonly #busy: Backoff
  #channel: ReadChannel | undefined
  #running: Promise<void> | undefined
  #retryTimer: Timer | undefined
  #pause: Waiter<undefined> | undefined

  constructor(options: WorkerReaderOptions) {
    this.#options = options
    this.#fields = { workerId: options.worker.workerId }
    this.#unreachable = this.#makeBackoff()
    this.#busy = this.#makeBackoff()
  }

  /** Reads it too, from where it stands. */
  add(partition: InputPartition): void {
    this.#waiting.set(partition, this.#options.clock.nowMs())
    this.#listDue()
    this.#pause?.resolve(undefined)
    this.#start()
  }

  /** Stops reading it: it failed, or is read elsewhere. */
  remove(partition: InputPartition): void {
    this.#waiting.delete(partition)
    this.#retries.delete(partition)
    this.#channel?.drop(partition)
    this.#endListWhenSettled()
  }

  /** Stops everything; resolves when nothing runs any more. Idempotent. */
  async close(reason: ShuffleError): Promise<void> {
    this.#closing.abort(reason)
    this.#waiting.clear()
    this.#retryTimer?.cancel()
    this.#channel?.close()
    await this.#running
  }

  #start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
      // One may have been added between the last look and here.
      if (this.#waiting.size > 0 && !this.#closing.signal.aborted) this.#start()
    })
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted && this.#waiting.size > 0) {
      try {
        const pauseMs = this.#nextDueMs() - this.#options.clock.nowMs()
        if (pauseMs > 0) await this.#pauseFor(pauseMs)
        else await this.#readOnce()
      } catch (error) {
        if (!this.#isClosed) this.#afterLoss(withFields(error, this.#fields))
      }
    }
  }

  /** Until the next is due, or one is added. */
  async #pauseFor(pauseMs: number): Promise<void> {
    const { clock, waiters } = this.#options
    const pause = waiters.wait<undefined>({
      name: 'the next attempt to read',
      // Ends by a timer of its own: that is no failure.
      timeoutMs: Infinity,
      signal: this.#closing.signal,
      fields: this.#fields,
    })
    const timer = clock.setTimer(pauseMs, () => {
      pause.resolve(undefined)
    })
    this.#pause = pause
    try {
      await pause.promise
    } finally {
      this.#pause = undefined
      timer.cancel()
    }
  }

  /** One channel, from its opening to its end; rejects with why it ended early. */
  async #readOnce(): Promise<void> {
    const { shares } = this.#options
    const { signal } = this.#closing
    // Before it takes memory, so that none waits for a worker that can't be reached.
    if ((await this.#connect()) === undefined) return
    const buffers = await shares.acquireInitial({ signal, fields: this.#fields })
    const giveBack = () => {
      shares.abandonOpening()
      for (const buffer of buffers) buffer.recycle()
    }
    // Again: it waited for as long as others read, and a connection without a channel is closed.
    const connection = await this.#connect().catch((error: unknown) => {
      giveBack()
      throw error
    })
    const due = signal.aborted ? [] : this.#takeDue()
    if (connection === undefined || due.length === 0) {
      giveBack()
      return
    }
    const channel = new ReadChannel({
      connection,
      shares,
      buffers,
      bufferSizeBytes: this.#options.bufferSizeBytes,
      waiters: this.#options.waiters,
      sink: this.#sink(),
      openTimeoutMs: this.#options.settings.connectTimeoutMs,
      idleTimeoutMs: this.#options.settings.readIdleTimeoutMs,
      fields: this.#fields,
    })
    this.#channel = channel
    try {
      const end = channel.run(due)
      // Those that are not due yet are listed in their time.
      this.#listDue()
      this.#endListWhenSettled()
      await end
    } finally {
      this.#channel = undefined
      this.#retryTimer?.cancel()
      const nowMs = this.#options.clock.nowMs()
      if (!this.#isClosed) {
        for (const partition of channel.unfinished()) this.#waiting.set(partition, nowMs)
      }
    }
  }

  /** Undefined when nothing is to be read any more. */
  async #connect(): Promise<WorkerConnection | undefined> {
    const { worker, connect } = this.#options
    const [first] = this.#waiting.keys()
    return first && connect(worker, first.descriptor.key, this.#closing.signal)
  }

  /** Decides, after a channel was lost or could not be opened, whether to go on. */
  #afterLoss(error: ShuffleError): void {
    const { settings, clock } = this.#options
    const isBusy = error.code === 'BUSY'
    // One that answers can be reached; whether one that can't be is busy still is not known.
    if (isBusy) this.#unreachable.reset()
    const backoff = isBusy ? this.#busy : this.#unreachable
    const limitMs = isBusy ? settings.readRetryTimeoutMs : settings.readUnreachableTimeoutMs
    const mayPass = isShuffleError(error, 'BUSY', 'WORKER_UNREACHABLE')
    if (!mayPass || backoff.failingForMs >= limitMs) {
      this.#failAll(error)
      return
    }
    const untilMs = clock.nowMs() + backoff.nextDelayMs()
    for (const [partition, atMs] of this.#waiting) {
      if (atMs < untilMs) this.#waiting.set(partition, untilMs)
    }
  }

  #recovered(): void {
    this.#unreachable.reset()
    this.#busy.reset()
  }

  #failAll(error: ShuffleError): void {
    const failed = [...this.#waiting.keys()]
    this.#waiting.clear()
    this.#recovered()
    for (const partition of failed) {
      this.#retries.delete(partition)
      this.#options.sink.onPartitionFailed(partition, withFields(error, partition.fields))
    }
  }

  #sink(): ReadSink {
    const { sink } = this.#options
    return {
      onEntry: (entry) => {
        // If it fails again the time to mend that begins anew.
        if (this.#retries.size > 0) this.#retries.delete(entry.partition)
        sink.onEntry(entry)
      },
      onFrame: () => {
        this.#recovered()
        this.#endListWhenSettled()
        sink.onFrame()
      },
      onPartitionFinished: (partition) => {
        this.#recovered()
        this.#retries.delete(partition)
        sink.onPartitionFinished(partition)
        this.#endListWhenSettled()
      },
      onPartitionFailed: (partition, error) => {
        this.#recovered()
        if (!this.#retryLater(partition, error)) sink.onPartitionFailed(partition, error)
        this.#endListWhenSettled()
      },
    }
  }

  /** Whether the failure is one that time mends, and there is time left. */
  #retryLater(partition: InputPartition, error: ShuffleError): boolean {
    if (!isShuffleError(error, 'PARTITION_NOT_READY', 'BUSY')) return false
    const backoff = this.#retries.get(partition) ?? this.#makeBackoff()
    this.#retries.set(partition, backoff)
    if (backoff.failingForMs >= this.#options.settings.readRetryTimeoutMs) {
      this.#retries.delete(partition)
      return false
    }
    this.#waiting.set(partition, this.#options.clock.nowMs() + backoff.nextDelayMs())
    this.#listDue()
    return true
  }

  /** Lists what is due on the running channel, while its list is open. */
  #listDue(): void {
    const channel = this.#channel
    if (channel === undefined || channel.isListEnded) return
    const due = this.#takeDue()
    if (due.length > 0) channel.add(due)
    this.#retryTimer?.cancel()
    if (this.#waiting.size === 0) return
    const delayMs = this.#nextDueMs() - this.#options.clock.nowMs()
    this.#retryTimer = this.#options.clock.setTimer(Math.max(0, delayMs), () => {
      this.#listDue()
      this.#endListWhenSettled()
    })
  }

  /**
   * The list stays open while partitions may have to be listed again: some wait for their time, or
   * were said to be pending and have shown no sign yet.
   */
  #endListWhenSettled(): void {
    const channel = this.#channel
    if (channel === undefined || channel.isListEnded || this.#waiting.size > 0) return
    for (const partition of channel.unfinished()) {
      if (partition.isPending && partition.state === 'waiting') return
    }
    channel.endList()
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  #nextDueMs(): number {
    let nextMs = Infinity
    for (const atMs of this.#waiting.values()) nextMs = Math.min(nextMs, atMs)
    return nextMs
  }

  #takeDue(): InputPartition[] {
    const nowMs = this.#options.clock.nowMs()
    const due: InputPartition[] = []
    for (const [partition, atMs] of this.#waiting) {
      if (atMs > nowMs) continue
      due.push(partition)
      this.#waiting.delete(partition)
    }
    return due
  }

  #makeBackoff(): Backoff {
    const { clock, random, settings } = this.#options
    return new Backoff({
      clock,
      random,
      delayMinMs: settings.retryDelayMinMs,
      delayMaxMs: settings.retryDelayMaxMs,
    })
  }
}
