// Two pipes between two processes, and what TCP says about their ends: an orderly end, a reset, or
// nothing at all. A side is what one process holds of the link.

import type { VirtualClock } from './virtual-clock.ts'
import type { VirtualRandom } from './virtual-random.ts'
import { VirtualPipe } from './virtual-pipe.ts'
import type { PipeSettings } from './virtual-pipe.ts'

export interface LinkOptions {
  readonly clock: VirtualClock
  readonly random: VirtualRandom
  readonly settings: PipeSettings
  /** Names of the machines, first that of the one that dialled. */
  readonly hosts: readonly [client: string, server: string]
  readonly port: number
  readonly note: (line: string) => void
  readonly onClosed: (link: VirtualLink) => void
}

export class VirtualLink {
  readonly hosts: readonly [client: string, server: string]
  readonly port: number
  readonly client: VirtualSide
  readonly server: VirtualSide
  readonly #options: LinkOptions
  readonly #heldResets: VirtualSide[] = []
  #isSilent = false

  constructor(options: LinkOptions) {
    this.#options = options
    this.hosts = options.hosts
    this.port = options.port
    const up = this.#pipe('>')
    const down = this.#pipe('<')
    this.client = new VirtualSide(this, up, down)
    this.server = new VirtualSide(this, down, up)
  }

  get isOpen(): boolean {
    return !this.client.isClosed || !this.server.isClosed
  }

  /** Both ends see a reset at once; everything under way is lost. */
  cut(): void {
    this.client.receiveReset()
    this.server.receiveReset()
  }

  /** Cuts the link when the first `byteCount` bytes of the client (or the server) have arrived. */
  cutAfter(from: 'client' | 'server', byteCount: number): void {
    this[from].outgoing.cutAfter(byteCount, () => {
      this.cut()
    })
  }

  /** Nothing arrives in either direction and neither end is told. */
  silence(isSilent = true): void {
    this.#isSilent = isSilent
    this.client.outgoing.silence(isSilent)
    this.server.outgoing.silence(isSilent)
    if (isSilent) return
    for (const side of this.#heldResets.splice(0)) this.resetLater(side)
  }

  /** `side` learns that the other end is gone, after the time a packet takes. */
  resetLater(side: VirtualSide): void {
    const [, maxMs] = this.#options.settings.latencyMs
    this.#options.clock.schedule(maxMs, () => {
      if (this.#isSilent) this.#heldResets.push(side)
      else side.receiveReset()
    })
  }

  noteClosed(): void {
    if (!this.isOpen) this.#options.onClosed(this)
  }

  peerOf(side: VirtualSide): VirtualSide {
    return side === this.client ? this.server : this.client
  }

  #pipe(direction: string): VirtualPipe {
    const { clock, random, settings, hosts, port, note } = this.#options
    return new VirtualPipe({
      clock,
      random,
      settings,
      onArrival: (byteCount) => {
        const at = clock.nowMs().toFixed(6)
        note(`${at} ${hosts[0]} ${direction} ${hosts[1]}:${String(port)} ${String(byteCount)}`)
      },
    })
  }
}

export class VirtualSide {
  readonly outgoing: VirtualPipe
  readonly incoming: VirtualPipe
  readonly #link: VirtualLink
  #isClosed = false
  #onReset: ((error: Error) => void) | undefined

  constructor(link: VirtualLink, outgoing: VirtualPipe, incoming: VirtualPipe) {
    this.#link = link
    this.outgoing = outgoing
    this.incoming = incoming
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isServer(): boolean {
    return this === this.#link.server
  }

  get link(): VirtualLink {
    return this.#link
  }

  /** `callback` when a reset arrives; at most one. */
  onReset(callback: (error: Error) => void): void {
    this.#onReset = callback
  }

  /** The owner is done, or gone: bytes already taken arrive, what is unread resets the peer. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.outgoing.drop(linkError('EPIPE', 'the connection is closed'))
    this.incoming.abandon(() => {
      const peer = this.#link.peerOf(this)
      if (!peer.isClosed) this.#link.resetLater(peer)
    })
    this.#link.noteClosed()
  }

  receiveReset(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const error = linkError('ECONNRESET', 'the peer reset the connection')
    this.outgoing.break(error)
    this.incoming.break(error)
    this.#onReset?.(error)
    this.#link.noteClosed()
  }
}

export function linkError(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code })
}
