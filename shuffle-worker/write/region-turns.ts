// Whose region is written next on a disk with heads. One per such disk. One region is written at a
// time, to its end, so that it lies in one extent; the others fill their buffers meanwhile. A region
// whose client gives nothing for a second, while another has something to write, loses its turn.

import { assert } from '../../client/common/assert.ts'
import type { Clock, Timer } from '../../client/common/clock.ts'

/** A region in the order of turns. `leave` exactly once, also when a wait for the turn is open. */
export interface RegionTurn {
  /** Resolves when the region may write; false when it left first. One at a time. */
  acquire(): Promise<boolean>
  /** The write that the turn was asked for is done; the turn stays with the region for more. */
  wrote(): void
  leave(): void
}

interface Participant {
  resolve: ((isGranted: boolean) => void) | undefined
  hasLeft: boolean
}

export interface RegionTurnsOptions {
  readonly clock: Clock
  /** How long the owner of the turn may give nothing while another waits. */
  readonly idleMs: number
}

export class RegionTurns {
  readonly #clock: Clock
  readonly #idleMs: number
  readonly #waiting: Participant[] = []
  #owner: Participant | undefined
  #isOwnerWriting = false
  #idleTimer: Timer | undefined

  constructor(options: RegionTurnsOptions) {
    this.#clock = options.clock
    this.#idleMs = options.idleMs
  }

  get waitingRegions(): number {
    return this.#waiting.length
  }

  enter(): RegionTurn {
    const participant: Participant = { resolve: undefined, hasLeft: false }
    return {
      acquire: () => this.#acquire(participant),
      wrote: () => {
        this.#wrote(participant)
      },
      leave: () => {
        this.#leave(participant)
      },
    }
  }

  #acquire(participant: Participant): Promise<boolean> {
    assert(participant.resolve === undefined, 'a region asks for one turn at a time')
    if (participant.hasLeft) return Promise.resolve(false)
    if (this.#owner === undefined || this.#owner === participant) {
      this.#own(participant)
      return Promise.resolve(true)
    }
    return new Promise((resolve) => {
      participant.resolve = resolve
      this.#waiting.push(participant)
      this.#watchOwner()
    })
  }

  #wrote(participant: Participant): void {
    if (participant !== this.#owner) return
    this.#isOwnerWriting = false
    this.#watchOwner()
  }

  #leave(participant: Participant): void {
    if (participant.hasLeft) return
    participant.hasLeft = true
    const index = this.#waiting.indexOf(participant)
    if (index >= 0) this.#waiting.splice(index, 1)
    participant.resolve?.(false)
    participant.resolve = undefined
    if (participant === this.#owner) this.#passOn()
  }

  #own(participant: Participant): void {
    this.#idleTimer?.cancel()
    this.#idleTimer = undefined
    this.#owner = participant
    this.#isOwnerWriting = true
  }

  /** The owner is idle from now on: starts the second in which it must give something. */
  #watchOwner(): void {
    if (this.#isOwnerWriting || this.#waiting.length === 0 || this.#idleTimer !== undefined) return
    this.#idleTimer = this.#clock.setTimer(this.#idleMs, () => {
      this.#passOn()
    })
  }

  #passOn(): void {
    this.#idleTimer?.cancel()
    this.#idleTimer = undefined
    this.#owner = undefined
    this.#isOwnerWriting = false
    const next = this.#waiting.shift()
    if (next === undefined) return
    const { resolve } = next
    assert(resolve !== undefined, 'who waits for a turn can be told of it')
    next.resolve = undefined
    this.#own(next)
    resolve(true)
    this.#watchOwner()
  }
}
