// Packs the entries of one read channel into bodies and sends them as its credit allows. Owned by a
// reading view. Every buffer of the channel is here: the body that is being filled, and those that
// are full and wait for credit or for the socket.
//
//   append ─▶ [ open body ] ─ full, old, or nothing more ─▶ [ filled, filled, … ] ─ credit ─▶ send
//
// Small slices of many partitions share a body: a segment header says where each belongs.

import { assert } from '../../client/common/assert.ts'
import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { Clock, Timer } from '../../client/common/clock.ts'
import type { JobId } from '../../client/common/ids.ts'
import { segmentHeaderLength, writeSegmentHeader } from '../../client/protocol/read-segment.ts'
import type { ReadMemory } from './read-memory.ts'
import type { PartitionTotals } from './reading-output.ts'

/** The channel's way out: a protocol connection, narrowed to what is sent here. */
export interface ReadOutput {
  /** Whether the connection takes more data; `pump` is called when it does again. */
  readonly isWritable: boolean
  /** Sends the first `length` bytes of `buffer`, then recycles it. */
  sendData(buffer: PooledBuffer, length: number): void
  sendBacklog(bufferCount: number): void
}

export interface CreditSenderOptions {
  readonly clock: Clock
  readonly memory: ReadMemory
  readonly output: ReadOutput
  readonly bufferSizeBytes: number
  readonly initialCredit: number
  readonly aheadBytesMax: number
  /** How old an unfilled body gets when others may want its memory, and when there is plenty. */
  readonly flushAfterMs: number
  readonly flushLateAfterMs: number
  /** Whose memory its buffers are, as far as its list says. */
  readonly jobId: () => JobId | undefined
  /** Bytes that the channel's list still has, beyond what is in bodies. */
  readonly unreadBytes: () => number
  /** All of an entry of the list has been sent. */
  readonly onFinish: (totals: PartitionTotals) => void
  /** A body that was old enough went out, though nothing else has happened: it may be empty now. */
  readonly onFlushed: () => void
}

/** Where an entry belongs; a change of any of the three begins a segment. */
export interface SegmentPlace {
  readonly partition: number
  readonly regionIndex: number
  readonly subpartition: number
}

interface Body {
  readonly buffer: PooledBuffer
  length: number
  segmentStart: number
  place: SegmentPlace
  /** Of the list's entries that end here. */
  readonly finishes: PartitionTotals[]
}

/** Credit is u32 on the wire; more than this in hand is a peer that doesn't mean it. */
export const creditMax = 1_000_000
/** What any channel may hold ahead of its credit, while there is memory for it. */
export const aheadBytesMin = 64 * 1024
const drainWindowMs = 1000

export class CreditSender {
  readonly #options: CreditSenderOptions
  readonly #filled: Body[] = []
  #open: Body | undefined
  #credit: number
  #ahead = 0
  /** Looks at the age of the open body; not cancelled with it, so that a body costs no timer. */
  #flushTimer: Timer | undefined
  #openedMs = 0
  #isDue = false
  #isDrained = false
  #isClosed = false
  #isStarved = false
  #backlogSent = 0
  #isPumping = false
  readonly #drain: DrainMeter
  frameCount = 0
  entryCount = 0
  byteCount = 0

  constructor(options: CreditSenderOptions) {
    this.#options = options
    this.#credit = options.initialCredit
    this.#drain = new DrainMeter(options.clock)
  }

  get credit(): number {
    return this.#credit
  }

  /** Buffers in the channel's hands. */
  get held(): number {
    return this.#filled.length + (this.#open === undefined ? 0 : 1)
  }

  /** Nothing is waiting to be sent. */
  get isEmpty(): boolean {
    return this.held === 0
  }

  /** The last `append` found no memory. */
  get isStarved(): boolean {
    return this.#isStarved
  }

  /** Bytes of entries that it can take now, its segment headers aside. */
  get roomBytes(): number {
    if (this.#isClosed || !this.#options.output.isWritable) return 0
    const inOpen = this.#open === undefined ? 0 : this.#options.bufferSizeBytes - this.#open.length
    return this.#freeBuffers() * this.#options.bufferSizeBytes + inOpen
  }

  addCredit(count: number): boolean {
    if (this.#isClosed) return true
    if (this.#credit + count > creditMax) return false
    this.#credit += count
    this.#accountAhead()
    this.pump()
    return true
  }

  /** Copies one entry into the open body or a new one; false when there is no room or memory. */
  append(place: SegmentPlace, entry: Uint8Array): boolean {
    const { bufferSizeBytes } = this.#options
    assert(segmentHeaderLength + entry.length <= bufferSizeBytes, 'an entry fits a body')
    if (this.#isClosed) return false
    let body = this.#open
    if (body !== undefined && body.length + neededFor(body, place, entry) > bufferSizeBytes) {
      this.#closeBody(body)
      body = undefined
    }
    body ??= this.#newBody(place)
    if (body === undefined) return false
    if (body.length === 0 || !isSamePlace(body.place, place)) beginSegment(body, place)
    body.buffer.bytes.set(entry, body.length)
    body.length += entry.length
    this.entryCount += 1
    this.byteCount += entry.length
    return true
  }

  /** Says so when all that was appended up to now has been sent; at once if it has. */
  finishAfterSent(totals: PartitionTotals): void {
    const last = this.#open ?? this.#filled.at(-1)
    if (last === undefined) this.#options.onFinish(totals)
    else last.finishes.push(totals)
  }

  /** Whether the list has nothing more to read now: then an unfilled body need not wait. */
  setDrained(isDrained: boolean): void {
    this.#isDrained = isDrained
    if (isDrained) this.pump()
  }

  /** Sends what credit and connection allow; to be called when either has changed. */
  pump(): void {
    if (this.#isClosed || this.#isPumping) return
    this.#isPumping = true
    try {
      while (this.#sendNext());
    } finally {
      this.#isPumping = false
    }
    this.#accountAhead()
    this.#announce()
  }

  /** Tells the backlog now, after the list has changed. */
  announceBacklog(): void {
    if (this.#isClosed) return
    const backlog = this.#backlog()
    if (backlog > this.#backlogSent) this.#sendBacklog(backlog)
  }

  /** Gives every buffer back; credit that comes later is ignored. Idempotent. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#flushTimer?.cancel()
    this.#open?.buffer.recycle()
    this.#open = undefined
    for (const body of this.#filled.splice(0)) body.buffer.recycle()
    this.#options.memory.changeAhead(-this.#ahead)
    this.#ahead = 0
  }

  #sendNext(): boolean {
    if (this.#credit === 0 || !this.#options.output.isWritable || this.#isClosed) return false
    if (this.#filled.length === 0 && this.#open !== undefined && (this.#isDue || this.#isDrained)) {
      this.#closeBody(this.#open)
    }
    const body = this.#filled.shift()
    if (body === undefined) return false
    this.#credit -= 1
    assert(this.#credit >= 0, 'no more frames are sent than were granted')
    this.frameCount += 1
    this.#backlogSent = Math.max(0, this.#backlogSent - 1)
    this.#drain.add(body.length)
    this.#options.output.sendData(body.buffer, body.length)
    for (const totals of body.finishes) this.#options.onFinish(totals)
    return true
  }

  /** Sent again before the last is used up, or when it was far too much. */
  #announce(): void {
    if (this.#isClosed) return
    const backlog = this.#backlog()
    const left = this.#backlogSent
    const isNearlyUsed = left <= 2 && backlog > left
    const isFarTooMuch = left > 8 && backlog * 2 < left
    if (isNearlyUsed || isFarTooMuch) this.#sendBacklog(backlog)
  }

  #sendBacklog(backlog: number): void {
    this.#backlogSent = backlog
    this.#options.output.sendBacklog(backlog)
  }

  /** Frames that will follow: those that are full, then what is in the open body and unread. */
  #backlog(): number {
    const { bufferSizeBytes, unreadBytes } = this.#options
    const unread = Math.max(0, unreadBytes())
    const more = Math.ceil((unread + (this.#open?.length ?? 0)) / bufferSizeBytes)
    return Math.min(this.#filled.length + more, 0xffff_ffff)
  }

  #newBody(place: SegmentPlace): Body | undefined {
    this.#isStarved = false
    if (this.#freeBuffers() <= 0) return undefined
    const buffer = this.#options.memory.tryAcquireBuffer(this.#options.jobId())
    this.#isStarved = buffer === undefined
    if (buffer === undefined) return undefined
    const body: Body = { buffer, length: 0, segmentStart: 0, place, finishes: [] }
    this.#open = body
    this.#accountAhead()
    this.#openedMs = this.#options.clock.nowMs()
    if (this.#flushTimer === undefined) this.#flushIn(this.#ageMaxMs)
    return body
  }

  #flushIn(delayMs: number): void {
    const { clock } = this.#options
    this.#flushTimer = clock.setTimer(delayMs, () => {
      this.#flushTimer = undefined
      if (this.#open === undefined) return
      const leftMs = this.#openedMs + this.#ageMaxMs - clock.nowMs()
      if (leftMs > 0) {
        this.#flushIn(leftMs)
        return
      }
      this.#isDue = true
      this.pump()
      this.#options.onFlushed()
    })
  }

  /**
   * Small slices come one by one as the sweep goes from file to file: a body that waits for more of
   * them saves frames, each of which costs both sides as much as a slice.
   */
  get #ageMaxMs(): number {
    const { memory, flushAfterMs, flushLateAfterMs } = this.#options
    return memory.isPlentiful ? flushLateAfterMs : flushAfterMs
  }

  #closeBody(body: Body): void {
    assert(body === this.#open && body.length > 0, 'a body that is closed holds something')
    endSegment(body)
    this.#isDue = false
    this.#open = undefined
    this.#filled.push(body)
  }

  /** How many more buffers it may hold: its credit, and a little ahead of it. */
  #freeBuffers(): number {
    const { memory, bufferSizeBytes, aheadBytesMax } = this.#options
    const withinCredit = Math.max(0, this.#credit - this.held)
    const drained = Math.min(Math.max(this.#drain.bytes(), aheadBytesMin), aheadBytesMax)
    const aheadMax = Math.max(2, Math.floor(drained / bufferSizeBytes))
    const aheadLeft = Math.min(
      aheadMax - Math.max(0, this.held - this.#credit),
      memory.aheadBuffersMax - memory.aheadBuffers,
    )
    return withinCredit + Math.max(0, aheadLeft)
  }

  #accountAhead(): void {
    if (this.#isClosed) return
    const ahead = Math.max(0, this.held - this.#credit)
    if (ahead === this.#ahead) return
    this.#options.memory.changeAhead(ahead - this.#ahead)
    this.#ahead = ahead
  }
}

/** Bytes that went out in the last one to two seconds. */
class DrainMeter {
  readonly #clock: Clock
  #windowStartMs: number
  #current = 0
  #previous = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#windowStartMs = clock.nowMs()
  }

  add(bytes: number): void {
    this.#turn()
    this.#current += bytes
  }

  bytes(): number {
    this.#turn()
    return this.#previous + this.#current
  }

  #turn(): void {
    const elapsed = this.#clock.nowMs() - this.#windowStartMs
    if (elapsed < drainWindowMs) return
    this.#previous = elapsed < 2 * drainWindowMs ? this.#current : 0
    this.#current = 0
    this.#windowStartMs += Math.floor(elapsed / drainWindowMs) * drainWindowMs
  }
}

function neededFor(body: Body, place: SegmentPlace, entry: Uint8Array): number {
  return entry.length + (isSamePlace(body.place, place) ? 0 : segmentHeaderLength)
}

function isSamePlace(a: SegmentPlace, b: SegmentPlace): boolean {
  return (
    a.partition === b.partition &&
    a.regionIndex === b.regionIndex &&
    a.subpartition === b.subpartition
  )
}

function beginSegment(body: Body, place: SegmentPlace): void {
  if (body.length > 0) endSegment(body)
  body.place = place
  body.segmentStart = body.length
  body.length += segmentHeaderLength
}

function endSegment(body: Body): void {
  const { partition, regionIndex, subpartition } = body.place
  const byteLength = body.length - body.segmentStart - segmentHeaderLength
  const header = { partition, regionIndex, subpartition, byteLength }
  writeSegmentHeader(body.buffer.bytes, body.segmentStart, header)
}
