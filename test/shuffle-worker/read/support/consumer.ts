// A consumer as the protocol wants it, for tests: it grants credit against backlog, checks the order
// and the totals of what it gets, and keeps the payloads.

import { expect } from 'vitest'
import type { PooledBuffer } from '../../../../client/common/buffer.ts'
import type { ShuffleError } from '../../../../client/common/errors.ts'
import { EntryReader } from '../../../../client/protocol/entry.ts'
import { SegmentReader } from '../../../../client/protocol/read-segment.ts'
import type {
  ChannelTotals,
  PartitionTotals,
  RangeTotals,
  ReadingOutput,
} from '../../../../shuffle-worker/read/reading-output.ts'
import type { ReadingView } from '../../../../shuffle-worker/read/reading-view.ts'
import type { VirtualClock } from '../../../support/virtual-clock.ts'

export interface ReceivedPartition {
  readonly payloads: Buffer[]
  readonly places: string[]
  entryCount: number
  byteCount: number
  finish: RangeTotals | undefined
  error: ShuffleError | undefined
}

export class Consumer implements ReadingOutput {
  readonly received = new Map<number, ReceivedPartition>()
  readonly bodySizes: number[] = []
  readonly backlogs: number[] = []
  view: ReadingView | undefined
  isWritable = true
  finish: ChannelTotals | undefined
  /** Credit that it holds beyond what was used; never below zero. */
  credit = 2
  /** Credit is granted so long after a frame. */
  grantDelayMs = 1
  creditWindow = 2
  isGranting = true
  unfinishedRunsMost = 0
  readonly #clock: VirtualClock
  readonly #openRuns = new Set<string>()
  #backlog = 0

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  sendData(buffer: PooledBuffer, length: number): void {
    this.credit -= 1
    expect(this.credit).toBeGreaterThanOrEqual(0)
    this.#backlog = Math.max(0, this.#backlog - 1)
    this.bodySizes.push(length)
    const segments = new SegmentReader().reset(buffer.bytes, length)
    while (segments.next()) this.#takeSegment(buffer.bytes, segments)
    this.#clock.schedule(0.1, () => {
      buffer.recycle()
    })
    this.#clock.schedule(this.grantDelayMs, () => {
      this.grant()
    })
  }

  sendBacklog(bufferCount: number): void {
    this.backlogs.push(bufferCount)
    this.#backlog = bufferCount
    this.#clock.schedule(0, () => {
      this.grant()
    })
  }

  sendPartitionFinish({ partition, ...totals }: PartitionTotals): void {
    const received = this.partition(partition)
    expect(received.finish).toBeUndefined()
    received.finish = totals
  }

  sendPartitionFailed(partition: number, error: ShuffleError): void {
    this.partition(partition).error = error
  }

  sendReadFinish(totals: ChannelTotals): void {
    expect(this.finish).toBeUndefined()
    this.finish = totals
  }

  grant(): void {
    const count = Math.min(this.creditWindow, this.#backlog) - this.credit
    if (!this.isGranting || count <= 0 || this.view === undefined) return
    this.credit += count
    this.view.addCredit(count)
  }

  partition(index: number): ReceivedPartition {
    let received = this.received.get(index)
    if (received === undefined) {
      received = {
        payloads: [],
        places: [],
        entryCount: 0,
        byteCount: 0,
        finish: undefined,
        error: undefined,
      }
      this.received.set(index, received)
    }
    return received
  }

  #takeSegment(bytes: Uint8Array, segment: SegmentReader): void {
    const received = this.partition(segment.partition)
    const place = `${String(segment.regionIndex)}/${String(segment.subpartition)}`
    if (received.places.at(-1) !== place) {
      // An expectation for each of 40,000 places is slow.
      if (received.places.includes(place)) throw new Error(`the run ${place} comes twice`)
      received.places.push(place)
    }
    const run = `${String(segment.partition)}/${place}`
    const entries = new EntryReader('DATA_CORRUPT')
    entries.reset(bytes, segment.entriesStart, segment.entriesEnd)
    while (entries.next()) {
      received.payloads.push(Buffer.from(entries.payload()))
      received.entryCount += 1
      received.byteCount += entries.end - entries.start
      if (entries.isLastOfRun) this.#openRuns.delete(run)
      else this.#openRuns.add(run)
    }
    this.unfinishedRunsMost = Math.max(this.unfinishedRunsMost, this.#openRuns.size)
  }
}
