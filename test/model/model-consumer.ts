// A consumer of a modelled data set: a read channel's other end, without a network but with its
// delay. It grants credit against backlog as a client's gate does, counts what it asked for, and may
// be slow.

import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { Clock } from '../../client/common/clock.ts'
import type { ShuffleError } from '../../client/common/errors.ts'
import { SegmentReader } from '../../client/protocol/read-segment.ts'
import { fromBeginning, type PartitionListEntry } from '../../client/protocol/partition-list.ts'
import type { ReadingOutput } from '../../shuffle-worker/read/reading-output.ts'
import type { ReadingView } from '../../shuffle-worker/read/reading-view.ts'
import { type DataShape, keyOf } from './data-shape.ts'
import type { Mailbox } from './mailbox.ts'

export interface ModelConsumerSettings {
  readonly clock: Clock
  readonly mailbox: Mailbox
  readonly shape: DataShape
  readonly subpartition: number
  readonly initialCredit: number
  /** Most credit that it has outstanding. */
  readonly creditWindow: number
  /** What it takes in a second; as fast as it comes unless given. */
  readonly bytesPerSecond?: number | undefined
  readonly onFinished: () => void
}

export class ModelConsumer implements ReadingOutput {
  readonly isWritable = true
  readonly #settings: ModelConsumerSettings
  readonly #segments = new SegmentReader()
  #view: ReadingView | undefined
  #outstanding: number
  #backlog = 0
  #busyUntilMs = 0
  #isGrantDue = false
  deliveredBytes = 0
  startedMs = 0
  firstByteMs: number | undefined
  finishedMs: number | undefined

  constructor(settings: ModelConsumerSettings) {
    this.#settings = settings
    this.#outstanding = settings.initialCredit
  }

  /** Lists its subpartition of every producer, as one frame after the other would. */
  start(open: (consumer: ModelConsumer) => ReadingView): void {
    const { clock, shape, subpartition } = this.#settings
    this.startedMs = clock.nowMs()
    const view = open(this)
    this.#view = view
    const entries = Array.from({ length: shape.producers }, (_, index): PartitionListEntry => {
      const range = { firstSubpartition: subpartition, lastSubpartition: subpartition }
      return { index, key: keyOf(shape, index), ...range, start: fromBeginning, isPending: false }
    })
    view.addPartitions(entries)
    view.end(entries.length)
  }

  close(): void {
    this.#view?.close()
  }

  sendData(buffer: PooledBuffer, length: number): void {
    if (this.#outstanding === 0) throw new Error('data beyond credit')
    this.#backlog = Math.max(0, this.#backlog - 1)
    const segments = this.#segments.reset(buffer.bytes, length)
    while (segments.next()) this.deliveredBytes += segments.entriesEnd - segments.entriesStart
    this.#settings.mailbox.add(() => {
      this.firstByteMs ??= this.#settings.clock.nowMs()
      buffer.recycle()
      this.#consume(length)
    })
  }

  sendBacklog(bufferCount: number): void {
    this.#backlog = bufferCount
    this.#grantSoon()
  }

  sendPartitionFinish(): void {
    return
  }

  sendPartitionFailed(_partition: number, error: ShuffleError): void {
    throw error
  }

  sendReadFinish(): void {
    this.#settings.mailbox.add(() => {
      this.finishedMs = this.#settings.clock.nowMs()
      this.#settings.onFinished()
    })
  }

  #consume(length: number): void {
    const { clock, bytesPerSecond } = this.#settings
    if (bytesPerSecond === undefined) {
      this.#consumed()
      return
    }
    const nowMs = clock.nowMs()
    this.#busyUntilMs = Math.max(nowMs, this.#busyUntilMs) + (length / bytesPerSecond) * 1000
    clock.setTimer(this.#busyUntilMs - nowMs, () => {
      this.#consumed()
    })
  }

  #consumed(): void {
    this.#outstanding -= 1
    this.#grantSoon()
  }

  #grantSoon(): void {
    if (this.#isGrantDue) return
    this.#isGrantDue = true
    this.#settings.mailbox.add(() => {
      this.#isGrantDue = false
      this.#grant()
    })
  }

  #grant(): void {
    const count = Math.min(this.#settings.creditWindow, this.#backlog) - this.#outstanding
    if (count <= 0 || this.#view?.isClosed !== false) return
    this.#outstanding += count
    this.#view.addCredit(count)
  }
}
