// A producer of a modelled data set: a write channel's other end, without a network but with its
// delay. It always has its region in memory and sends within its credit at once.

import type { Clock } from '../../client/common/clock.ts'
import type { ShuffleError } from '../../client/common/errors.ts'
import { byteCountPages } from '../../client/protocol/byte-counts.ts'
import type { CommittedTotals } from '../../shuffle-worker/storage/storage-types.ts'
import type { WriteService } from '../../shuffle-worker/write/write-service.ts'
import type { WritingOutput, WritingView } from '../../shuffle-worker/write/writing-view.ts'
import {
  bodyLength,
  bufferSizeBytes,
  type DataShape,
  keyOf,
  regionRunBytes,
  type ShapedEntry,
  writeBody,
} from './data-shape.ts'

/** From a grant at the worker to the data that it brings. */
const roundTripMs = 0.5

export interface ModelProducerSettings {
  readonly clock: Clock
  readonly writes: WriteService
  readonly shape: DataShape
  readonly partitionIndex: number
  /** Of each region; the same for all producers. */
  readonly bodies: readonly (readonly ShapedEntry[])[]
  readonly onWritten: (bytes: number) => void
  readonly onCommitted: () => void
}

export class ModelProducer implements WritingOutput {
  readonly #settings: ModelProducerSettings
  #view: WritingView | undefined
  #region = 0
  #nextBody = 0
  #credit = 0

  constructor(settings: ModelProducerSettings) {
    this.#settings = settings
  }

  start(): void {
    const { writes, shape, partitionIndex } = this.#settings
    const subpartitionCount = shape.consumers
    this.#view = writes.open(
      {
        key: keyOf(shape, partitionIndex),
        allocation: { managerEpoch: 1, jobEpoch: 1, sequence: partitionIndex },
        kind: 'map',
        subpartitionCount,
        firstSubpartition: 0,
        lastSubpartition: subpartitionCount - 1,
        bufferSizeBytes,
        codec: 'none',
        expectedBytes: undefined,
      },
      this,
      () => undefined,
    )
  }

  sendOpened(): void {
    this.#later(() => {
      this.#startRegion()
    })
  }

  sendCredit(_regionIndex: number, count: number): void {
    this.#credit += count
    this.#later(() => {
      this.#send()
    })
  }

  sendCommitted(_totals: CommittedTotals): void {
    this.#settings.onCommitted()
  }

  sendError(error: ShuffleError): void {
    throw error
  }

  #startRegion(): void {
    const { shape } = this.#settings
    this.#nextBody = 0
    this.#view?.regionStart({
      regionIndex: this.#region,
      isBroadcast: false,
      boundBytes: regionRunBytes(shape) * shape.consumers,
    })
  }

  #send(): void {
    const { bodies, onWritten } = this.#settings
    while (this.#credit > 0) {
      const body = bodies[this.#nextBody]
      if (body === undefined) break
      const length = bodyLength(body)
      const buffer = this.#view?.bodyBuffer(this.#region, length)
      if (buffer === undefined) throw new Error('credit without a buffer')
      this.#credit -= 1
      this.#nextBody += 1
      this.#view?.data(this.#region, buffer, writeBody(buffer.bytes, body))
      onWritten(length)
    }
    if (this.#nextBody === bodies.length) this.#finishRegion()
  }

  #finishRegion(): void {
    const { bodies, shape } = this.#settings
    this.#nextBody = bodies.length + 1
    this.#view?.regionFinish({
      regionIndex: this.#region,
      entryCount: bodies.reduce((sum, body) => sum + body.length, 0),
      byteCount: regionRunBytes(shape) * shape.consumers,
    })
    this.#region += 1
    // What the region did not use is not the next one's.
    this.#credit = 0
    if (this.#region < shape.regions) this.#startRegion()
    else this.#finish()
  }

  #finish(): void {
    const { shape } = this.#settings
    const perConsumer = regionRunBytes(shape) * shape.regions
    const counts = new Float64Array(shape.consumers).fill(perConsumer)
    for (const { firstSubpartition, isLast, body } of byteCountPages(counts)) {
      const fields = {
        regionCount: shape.regions,
        byteCount: perConsumer * shape.consumers,
        recordCount: 0,
        firstSubpartition,
        isLast,
      }
      this.#view?.writeFinish(fields, body)
    }
  }

  #later(step: () => void): void {
    this.#settings.clock.setTimer(roundTripMs, step)
  }
}
