// Signs of life of one connection: says when to ping, and when the other side has been silent, or
// busy with one frame, for too long. Owned by one ProtocolConnection.

import type { Clock, Timer } from '../common/clock.ts'

export interface HeartbeatOptions {
  readonly clock: Clock
  readonly intervalMs: number
  /** Intervals of silence after which the other side is given up. */
  readonly idlePingsMax: number
  /** Number of the frame of which a part has come; undefined between frames. */
  readonly frameUnderWay: () => number | undefined
  /** Frames that this side has sent in all. */
  readonly sentCount: () => number
  readonly onPing: () => void
  readonly onIdle: (silentMs: number) => void
  readonly onFrameStuck: (stuckMs: number) => void
}

/** A byte now and then is life, but the buffer that a frame has must come back some day. */
const frameMsMin = 30_000

export class Heartbeat {
  readonly #options: HeartbeatOptions
  #timer: Timer | undefined
  #tickDueMs = 0
  #heardMs = 0
  #sentAtTick = 0
  #silenceMaxMs = 0
  #frame: number | undefined
  /** Since when `#frame` has been the one under way. */
  #frameSinceMs = 0

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  /** `peerIntervalMs`: how often the other side promised to send something. */
  start(peerIntervalMs: number): void {
    const { clock, intervalMs, idlePingsMax } = this.#options
    this.#silenceMaxMs = idlePingsMax * Math.max(intervalMs, peerIntervalMs)
    this.#heardMs = clock.nowMs()
    this.#schedule()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** Bytes have come. */
  heard(): void {
    this.#heardMs = this.#options.clock.nowMs()
  }

  #schedule(): void {
    const { clock, intervalMs } = this.#options
    this.#tickDueMs = clock.nowMs() + intervalMs
    this.#timer = clock.setTimer(intervalMs, () => {
      this.#tick()
    })
  }

  #tick(): void {
    const { clock, intervalMs, sentCount, onIdle, onPing, onFrameStuck } = this.#options
    const now = clock.nowMs()
    // A process that was late itself could not hear: it begins to judge anew.
    if (now - this.#tickDueMs > intervalMs) {
      this.#heardMs = now
      this.#frame = undefined
    }
    const frameMs = this.#frameMs(now)
    if (frameMs >= Math.max(this.#silenceMaxMs, frameMsMin)) {
      onFrameStuck(frameMs)
      return
    }
    const silentMs = now - this.#heardMs
    if (silentMs >= this.#silenceMaxMs) {
      onIdle(silentMs)
      return
    }
    if (silentMs >= intervalMs || sentCount() === this.#sentAtTick) onPing()
    this.#sentAtTick = sentCount()
    this.#schedule()
  }

  /** For how long the same frame has been under way at the ticks. */
  #frameMs(now: number): number {
    const frame = this.#options.frameUnderWay()
    if (frame === undefined || frame !== this.#frame) this.#frameSinceMs = now
    this.#frame = frame
    return now - this.#frameSinceMs
  }
}
