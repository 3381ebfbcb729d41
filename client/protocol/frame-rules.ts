// Which frames may come, and go, at what moment: the order of the handshake, directions, channel
// numbers. One per ProtocolConnection, asked before a header is read or written.

import { assert } from '../common/assert.ts'
import { ShuffleError } from '../common/errors.ts'
import type { Direction, MessageDeclaration } from './define-message.ts'

export type Role = 'client' | 'worker'

/**
 * `hello`: no frame of the other side has come. `authentication`: Hello and HelloAck are exchanged,
 * a challenge is open. `ready`: everything goes.
 */
export type Phase = 'hello' | 'authentication' | 'ready'

const directionOf: Readonly<Record<Role, Direction>> = {
  client: 'client-to-worker',
  worker: 'worker-to-client',
}

/** By role of the receiver: all that may come in a phase, an Error apart. */
const admitted: Readonly<Record<Role, Readonly<Record<'hello' | 'authentication', string[]>>>> = {
  client: { hello: ['HelloAck'], authentication: ['Authenticated', 'Ping', 'Pong'] },
  worker: { hello: ['Hello'], authentication: ['Authenticate', 'Ping', 'Pong'] },
}

const onlyInHandshake = ['Hello', 'HelloAck', 'Authenticate', 'Authenticated']

export class FrameRules {
  readonly #role: Role
  readonly #outgoing: Direction
  readonly #incoming: Direction
  #phase: Phase = 'hello'
  #lastOpened = 0
  #lastIssued = 0

  constructor(role: Role) {
    this.#role = role
    this.#outgoing = directionOf[role]
    this.#incoming = directionOf[role === 'client' ? 'worker' : 'client']
  }

  enter(phase: Phase): void {
    this.#phase = phase
  }

  /** Throws PROTOCOL when a frame of this kind may not come now. Undefined: an unknown type. */
  admit(declaration: MessageDeclaration | undefined, channelId: number): void {
    if (declaration === undefined) {
      if (this.#phase !== 'ready')
        fail('a frame of unknown type', channelId, 'before the handshake is done')
      return
    }
    if (declaration.direction !== 'both' && declaration.direction !== this.#incoming) {
      fail(declaration.name, channelId, `from the wrong side: a ${this.#role} sends it`)
    }
    this.#admitInPhase(declaration.name, channelId)
    this.#admitChannel(declaration, channelId)
  }

  #admitInPhase(name: string, channelId: number): void {
    if (this.#phase === 'ready') {
      if (onlyInHandshake.includes(name)) fail(name, channelId, 'after the handshake')
      return
    }
    if (name === 'Error' && channelId === 0) return
    if (!admitted[this.#role][this.#phase].includes(name)) {
      fail(name, channelId, `before the handshake is done (${this.#phase})`)
    }
  }

  #admitChannel(declaration: MessageDeclaration, channelId: number): void {
    switch (declaration.channel) {
      case 'connection':
        if (channelId !== 0) fail(declaration.name, channelId, 'on a channel; it belongs on 0')
        break
      case 'channel':
        if (channelId === 0) fail(declaration.name, channelId, 'on channel 0; it needs a channel')
        break
      case 'opens':
        if (channelId <= this.#lastOpened) {
          fail(
            declaration.name,
            channelId,
            `although ${String(this.#lastOpened)} was opened: numbers ascend`,
          )
        }
        this.#lastOpened = channelId
        break
      case 'any':
        break
    }
  }

  /** Asserts that this side may send such a frame now. */
  assertOutgoing(declaration: MessageDeclaration, channelId: number): void {
    const { name, direction, channel } = declaration
    assert(
      direction === 'both' || direction === this.#outgoing,
      `a ${this.#role} never sends ${name}`,
    )
    assert(channel !== 'connection' || channelId === 0, `${name} goes on channel 0`)
    assert(
      channel === 'connection' || channel === 'any' || channelId > 0,
      `${name} needs a channel`,
    )
    if (channel === 'opens') {
      assert(channelId > this.#lastOpened, `${name}: channel numbers ascend`)
      this.#lastOpened = channelId
    }
  }

  /** A number for a new channel. */
  nextChannelId(): number {
    assert(this.#lastIssued < 0xffff_ffff, 'a connection has 2^32 - 1 channels')
    this.#lastIssued = Math.max(this.#lastIssued, this.#lastOpened) + 1
    return this.#lastIssued
  }
}

function fail(name: string, channelId: number, what: string): never {
  throw new ShuffleError('PROTOCOL', `${name} came on channel ${String(channelId)} ${what}`, {
    fields: { message: name, channelId },
  })
}
