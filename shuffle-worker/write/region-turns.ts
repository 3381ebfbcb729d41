// Who has a disk with heads next: a region that is written, or the sweep that reads. One per such
// disk. One region is written at a time, to its end, so that it lies in one extent; the others fill
// their buffers meanwhile. A region whose client gives nothing for a second, while another has
// something to write, loses its turn. Writes and sweeps take turns of about the same size: small
// regions follow each other until they make one, so that neither side jumps for little or starves.
//
//   regions  [ 32 MiB ]          [ 4 ][ 4 ][ 4 ][ 4 ]          [ 32 MiB ] …
//   sweep              [ 16 MiB ]                    [ 16 MiB ]           …

import { assert } from '../../client/common/assert.ts'
import type { Clock, Timer } from '../../client/common/clock.ts'

/** A region in the order of turns. `leave` exactly once, also when a wait for the turn is open. */
export interface RegionTurn {
  /** Resolves when the region may write; false when it left first. One at a time. */
  acquire(): Promise<boolean>
  /** The write that the turn was asked for is done; the turn stays with the region for more. */
  wrote(bytes: number): void
  leave(): void
}

interface Participant {
  readonly isSweep: boolean
  resolve: ((isGranted: boolean) => void) | undefined
  hasLeft: boolean
}

export interface RegionTurnsOptions {
  readonly clock: Clock
  /** How long the owner of the turn may give nothing while another waits. */
  readonly idleMs: number
}

/** What either side does before the other goes first. */
export const turnBytes = 16 * 1024 * 1024

export class RegionTurns {
  readonly #clock: Clock
  readonly #idleMs: number
  readonly #regions: Participant[] = []
  readonly #sweeps: Participant[] = []
  /** Since the last sweep. */
  #writtenInTurn = 0
  #writtenBytes = 0
  #owner: Participant | undefined
  #isOwnerWriting = false
  #idleTimer: Timer | undefined

  constructor(options: RegionTurnsOptions) {
    this.#clock = options.clock
    this.#idleMs = options.idleMs
  }

  get waitingRegions(): number {
    return this.#regions.length
  }

  /** In turns that were used, since the start. */
  get writtenBytes(): number {
    return this.#writtenBytes
  }

  enter(): RegionTurn {
    return this.#enter(false)
  }

  /** One turn of the sweep; it sees for itself when it has been long enough. */
  enterSweep(): Pick<RegionTurn, 'acquire' | 'leave'> {
    return this.#enter(true)
  }

  #enter(isSweep: boolean): RegionTurn {
    const participant: Participant = { isSweep, resolve: undefined, hasLeft: false }
    return {
      acquire: () => this.#acquire(participant),
      wrote: (bytes) => {
        this.#wrote(participant, bytes)
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
      this.#queueOf(participant).push(participant)
      this.#watchOwner()
    })
  }

  #wrote(participant: Participant, bytes: number): void {
    this.#writtenBytes += bytes
    this.#writtenInTurn += bytes
    if (participant !== this.#owner) return
    this.#isOwnerWriting = false
    this.#watchOwner()
  }

  #leave(participant: Participant): void {
    if (participant.hasLeft) return
    participant.hasLeft = true
    const queue = this.#queueOf(participant)
    const index = queue.indexOf(participant)
    if (index >= 0) queue.splice(index, 1)
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
    const waiting = this.#regions.length + this.#sweeps.length
    if (this.#isOwnerWriting || waiting === 0 || this.#idleTimer !== undefined) return
    this.#idleTimer = this.#clock.setTimer(this.#idleMs, () => {
      // A second that nobody used counts as a whole turn.
      this.#writtenInTurn += turnBytes
      this.#passOn()
    })
  }

  #passOn(): void {
    this.#idleTimer?.cancel()
    this.#idleTimer = undefined
    if (this.#owner?.isSweep === true) this.#writtenInTurn = 0
    this.#owner = undefined
    this.#isOwnerWriting = false
    const next = this.#takeNext()
    if (next === undefined) return
    const { resolve } = next
    assert(resolve !== undefined, 'who waits for a turn can be told of it')
    next.resolve = undefined
    this.#own(next)
    resolve(true)
    this.#watchOwner()
  }

  #takeNext(): Participant | undefined {
    const isSweepFirst = this.#writtenInTurn >= turnBytes || this.#regions.length === 0
    return (isSweepFirst ? this.#sweeps.shift() : undefined) ?? this.#regions.shift()
  }

  #queueOf({ isSweep }: Participant): Participant[] {
    return isSweep ? this.#sweeps : this.#regions
  }
}
