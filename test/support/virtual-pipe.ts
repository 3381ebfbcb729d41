// One direction of a virtual connection: a socket buffer on the sender's side, a wire that takes
// time, and what has arrived and was not yet read.
//
//     write() -> #queue (caller's memory) -> wire (copies, at most `windowBytes`) -> #arrived -> reader
//
// Bytes are copied when the system "takes" them, in pieces whose size the chunking draws, so memory
// that is given back before `onWritten` shows up as wrong bytes at the other end.

import type { VirtualClock } from './virtual-clock.ts'
import type { VirtualRandom } from './virtual-random.ts'

/** How the stream is cut: as written, byte by byte, in pieces of at most so many bytes, or by chance. */
export type Chunking = 'whole' | 'byte' | 'random' | { readonly maxBytes: number }

export interface PipeSettings {
  /** Least and most time that a piece is under way. */
  readonly latencyMs: readonly [min: number, max: number]
  readonly chunking: Chunking
  /** What the two systems hold together between a writer and a reader that doesn't read. */
  readonly windowBytes: number
  /** No limit unless given. */
  readonly bytesPerMs?: number
}

export interface PipeReader {
  /** False asks for no more until {@link VirtualPipe.resume}. */
  onBytes(bytes: Uint8Array): boolean
  /** The writer has ended and everything was read. */
  onEnd(): void
}

export interface PipeOptions {
  readonly clock: VirtualClock
  readonly random: VirtualRandom
  readonly settings: PipeSettings
  /** Called for each piece that arrives; for traces. */
  readonly onArrival?: (byteCount: number) => void
}

interface QueuedWrite {
  readonly parts: readonly Uint8Array[]
  readonly byteCount: number
  readonly onTaken: (error?: Error) => void
  taken: number
}

const wholeMax = 64 * 1024

export class VirtualPipe {
  readonly #options: PipeOptions
  readonly #queue: QueuedWrite[] = []
  readonly #arrived: Uint8Array[] = []
  /** Arrivals that wait for the silence to end, as packets sent again would. */
  readonly #held: (() => void)[] = []
  #reader: PipeReader | undefined
  #isReading = false
  #onWire = 0
  #lastArrivalMs = 0
  #isPumping = false
  #onEndSent: (() => void) | undefined
  #onStray: (() => void) | undefined
  #isEnded = false
  #isEndSent = false
  readonly #underWay: (() => void)[] = []
  #isEndArrived = false
  #isEndTold = false
  #isSilent = false
  #isBroken = false
  #slowBytesPerMs: number | undefined
  #sentBytes = 0
  #cutAfterBytes = Infinity
  #onCut: (() => void) | undefined

  constructor(options: PipeOptions) {
    this.#options = options
  }

  /** Bytes that have left the writer so far. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  get isEndTold(): boolean {
    return this.#isEndTold
  }

  write(parts: readonly Uint8Array[], onTaken: (error?: Error) => void): void {
    let byteCount = 0
    for (const part of parts) byteCount += part.byteLength
    this.#queue.push({ parts, byteCount, onTaken, taken: 0 })
    this.#pumpSoon()
  }

  /** After all that was written the reader learns of the end; `onSent` when all of it was taken. */
  end(onSent?: () => void): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#onEndSent = onSent
    this.#pumpSoon()
  }

  setReader(reader: PipeReader): void {
    this.#reader = reader
    this.resume()
  }

  resume(): void {
    if (this.#isReading) return
    this.#isReading = true
    // Never within the call of a reader that asks for more.
    this.#options.clock.schedule(0, () => {
      this.#deliver()
    })
  }

  /** While silent nothing arrives and the writer is not told; afterwards all of it arrives. */
  silence(isSilent: boolean): void {
    this.#isSilent = isSilent
    if (isSilent) return
    for (const arrive of this.#held.splice(0)) arrive()
    this.#options.clock.schedule(0, () => {
      this.#deliver()
    })
  }

  /** So many bytes a millisecond from now on; undefined: as the settings say. */
  slow(bytesPerMs: number | undefined): void {
    this.#slowBytesPerMs = bytesPerMs
  }

  /** No byte beyond `byteCount` is sent; `onCut` when those before it have arrived. */
  cutAfter(byteCount: number, onCut: () => void): void {
    this.#cutAfterBytes = byteCount
    this.#onCut = onCut
    this.#pumpSoon()
  }

  /** The writer is gone: what was not taken is answered with `error`, the rest arrives, then the end. */
  drop(error: Error): void {
    for (const item of this.#queue.splice(0)) item.onTaken(error)
    this.end()
  }

  /** The reader is gone: `onStray` for what it left unread and for anything that still arrives. */
  abandon(onStray: () => void): void {
    const hasUnread = this.#arrived.length > 0 || this.#onWire > 0
    this.#reader = undefined
    this.#arrived.length = 0
    this.#onStray = onStray
    if (hasUnread) onStray()
  }

  /** Everything under way is lost; writes not yet taken are answered with `error`. */
  break(error: Error): void {
    if (this.#isBroken) return
    this.#isBroken = true
    this.#arrived.length = 0
    this.#held.length = 0
    this.#underWay.length = 0
    for (const item of this.#queue.splice(0)) item.onTaken(error)
  }

  #pumpSoon(): void {
    if (this.#isPumping || this.#isBroken) return
    this.#isPumping = true
    this.#options.clock.schedule(0, () => {
      this.#isPumping = false
      this.#pump()
    })
  }

  #pump(): void {
    while (!this.#isBroken) {
      const item = this.#queue[0]
      if (item === undefined) break
      if (!this.#takeSome(item)) return
    }
    if (this.#isBroken || !this.#isEnded || this.#isEndSent) return
    this.#isEndSent = true
    this.#arriveLater(0, () => {
      this.#isEndArrived = true
    })
    this.#onEndSent?.()
  }

  /** False when no more can be taken at present. */
  #takeSome(item: QueuedWrite): boolean {
    if (this.#sentBytes >= this.#cutAfterBytes) {
      const onCut = this.#onCut
      this.#onCut = undefined
      if (onCut !== undefined) this.#arriveLater(0, onCut)
      return false
    }
    const room = this.#options.settings.windowBytes - this.#onWire
    const rest = item.byteCount - item.taken
    if (rest > 0 && room <= 0) return false
    const untilCut = this.#cutAfterBytes - this.#sentBytes
    const length = Math.min(this.#pieceLength(), room, rest, untilCut)
    if (length > 0) this.#send(copyOf(item.parts, item.taken, length))
    item.taken += length
    if (item.taken === item.byteCount) {
      this.#queue.shift()
      item.onTaken()
    }
    return true
  }

  #send(piece: Uint8Array): void {
    this.#onWire += piece.byteLength
    this.#sentBytes += piece.byteLength
    this.#arriveLater(piece.byteLength, () => {
      this.#options.onArrival?.(piece.byteLength)
      if (this.#onStray === undefined) this.#arrived.push(piece)
      else this.#onStray()
    })
  }

  #arriveLater(byteCount: number, arrive: () => void): void {
    const { clock, random, settings } = this.#options
    const [min, max] = settings.latencyMs
    const bytesPerMs = this.#slowBytesPerMs ?? settings.bytesPerMs
    const wireMs = bytesPerMs === undefined ? 0 : byteCount / bytesPerMs
    const atMs = Math.max(this.#lastArrivalMs, clock.nowMs() + random.between(min, max)) + wireMs
    this.#lastArrivalMs = atMs
    this.#underWay.push(arrive)
    clock.schedule(atMs - clock.nowMs(), () => {
      // The one that left first, also where sums of times differ in their last digit.
      const first = this.#underWay.shift()
      if (first === undefined || this.#isBroken) return
      if (this.#isSilent) {
        this.#held.push(first)
        return
      }
      first()
      this.#deliver()
    })
  }

  #deliver(): void {
    while (this.#isReading && this.#reader !== undefined && !this.#isBroken) {
      const piece = this.#arrived.shift()
      if (piece === undefined) break
      this.#onWire -= piece.byteLength
      this.#isReading = this.#reader.onBytes(piece)
      if (this.#queue.length > 0) this.#pumpSoon()
    }
    if (!this.#isReading || this.#reader === undefined || this.#isBroken) return
    if (!this.#isEndArrived || this.#arrived.length > 0 || this.#isEndTold) return
    this.#isEndTold = true
    this.#reader.onEnd()
  }

  #pieceLength(): number {
    const { chunking } = this.#options.settings
    if (chunking === 'whole') return wholeMax
    if (chunking === 'byte') return 1
    const { random } = this.#options
    if (chunking === 'random') {
      // Small and large ones alike: the exponent is what is uniform.
      return Math.floor(2 ** random.between(0, 16))
    }
    return 1 + random.integer(chunking.maxBytes)
  }
}

function copyOf(parts: readonly Uint8Array[], offset: number, length: number): Uint8Array {
  const copy = new Uint8Array(length)
  let start = 0
  let filled = 0
  for (const part of parts) {
    const from = Math.max(0, offset - start)
    if (from < part.byteLength) {
      const piece = part.subarray(from, from + length - filled)
      copy.set(piece, filled)
      filled += piece.byteLength
      if (filled === length) break
    }
    start += part.byteLength
  }
  return copy
}
