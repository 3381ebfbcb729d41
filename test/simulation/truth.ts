// What must be true of everything that is delivered. Every attempt that may ever write is told here
// beforehand; every batch that a gate hands out is held against it.

import { partitionKeyText, type PartitionKey } from '../../client/common/ids.ts'
import type { GateBatch } from '../../client/read/record-batch.ts'
import { Content, type Emission, type OutputShape } from './content.ts'

export type AttemptState = 'writing' | 'finishing' | 'committed' | 'failed'

export interface AttemptTruth {
  readonly content: Content
  state: AttemptState
  /** The job has given it up: readers may be told that it is gone. */
  isReleased: boolean
  /** The machine of its worker, once it has one. */
  host: string | undefined
}

export class Truth {
  readonly attempts = new Map<string, AttemptTruth>()
  recordsDelivered = 0
  partitionsCommitted = 0

  begin(key: PartitionKey, subpartitionCount: number, shape: OutputShape): AttemptTruth {
    const attempt: AttemptTruth = {
      content: new Content(key, subpartitionCount, shape),
      state: 'writing',
      isReleased: false,
      host: undefined,
    }
    this.attempts.set(partitionKeyText(key), attempt)
    return attempt
  }

  of(key: PartitionKey): AttemptTruth | undefined {
    return this.attempts.get(partitionKeyText(key))
  }
}

/** One input of one consumer: what must come next. Throws {@link WrongData} when something else comes. */
export class InputCheck {
  readonly #truth: Truth
  readonly #attempt: AttemptTruth
  readonly #first: number
  readonly #last: number
  readonly #next: number[]
  #regionIndex = -1
  #subpartition = -1

  constructor(
    truth: Truth,
    attempt: AttemptTruth,
    range: { readonly first: number; readonly last: number },
  ) {
    this.#truth = truth
    this.#attempt = attempt
    this.#first = range.first
    this.#last = range.last
    this.#next = Array.from({ length: range.last - range.first + 1 }, () => 0)
  }

  /** Whether anything was handed out: then no other attempt may take its place. */
  get isBegun(): boolean {
    return this.#regionIndex >= 0
  }

  take(batch: GateBatch): void {
    const { key, subpartition, regionIndex } = batch.origin
    const { content, state } = this.#attempt
    if (partitionKeyText(key) !== partitionKeyText(content.key)) {
      throw new WrongData('another attempt is delivered', content.key)
    }
    if (state === 'writing' || state === 'failed') {
      throw new WrongData(`an attempt that is ${state} is delivered`, content.key)
    }
    if (subpartition < this.#first || subpartition > this.#last) {
      throw new WrongData(`subpartition ${String(subpartition)} is out of range`, content.key)
    }
    this.#checkOrder(regionIndex, subpartition)
    const list = content.of(subpartition)
    if (batch.kind === 'event') {
      this.#takeOne(list, subpartition, { bytes: batch.bytes, code: batch.code })
      return
    }
    let count = 0
    for (const bytes of batch) {
      this.#takeOne(list, subpartition, { bytes, code: undefined })
      count += 1
    }
    if (count !== batch.recordCount) throw new WrongData('a batch counts wrong', content.key)
  }

  finish(): void {
    const { content } = this.#attempt
    this.#next.forEach((next, index) => {
      const expected = content.of(this.#first + index).length
      if (next === expected) return
      throw new WrongData(
        `subpartition ${String(this.#first + index)} ended after ${String(next)} of ${String(expected)}`,
        content.key,
      )
    })
  }

  /** Region by region, within it subpartition by subpartition. */
  #checkOrder(regionIndex: number, subpartition: number): void {
    const isLater =
      regionIndex > this.#regionIndex ||
      (regionIndex === this.#regionIndex && subpartition >= this.#subpartition)
    if (!isLater) {
      throw new WrongData(
        `region ${String(regionIndex)} subpartition ${String(subpartition)} comes after region ${String(this.#regionIndex)} subpartition ${String(this.#subpartition)}`,
        this.#attempt.content.key,
      )
    }
    this.#regionIndex = regionIndex
    this.#subpartition = subpartition
  }

  #takeOne(
    list: readonly Emission[],
    subpartition: number,
    got: { readonly bytes: Uint8Array; readonly code: number | undefined },
  ): void {
    const { content } = this.#attempt
    const index = subpartition - this.#first
    const at = this.#next[index] ?? 0
    const expected = list[at]
    const where = `subpartition ${String(subpartition)} number ${String(at)}`
    if (expected === undefined) throw new WrongData(`${where} is too much`, content.key)
    if (expected.eventCode !== got.code)
      throw new WrongData(`${where} is of another kind`, content.key)
    if (!content.bytesOf(expected).equals(got.bytes)) {
      throw new WrongData(`${where} has other bytes`, content.key)
    }
    this.#next[index] = at + 1
    this.#truth.recordsDelivered += 1
  }
}

/** The one thing that must never happen. */
export class WrongData extends Error {
  override readonly name = 'WrongData'

  constructor(what: string, key: PartitionKey) {
    super(`${what}: ${partitionKeyText(key)}`)
  }
}
