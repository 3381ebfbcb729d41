// The data port: accepts connections, each with its handler, up to a limit. Owned by the worker.

import type { Clock, Timer } from '../../client/common/clock.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import { withListenAdvice } from '../../client/common/listen-error.ts'
import type { Address, Connection, Listener, Network } from '../../client/common/network.ts'
import { ConnectionHandler, type ConnectionHandlerOptions } from './connection-handler.ts'

export interface DataServerOptions {
  readonly network: Network
  readonly address: Address
  readonly connectionsMax: number
  readonly clock: Clock
  /** Whether some reads wait for memory that others may hold. */
  readonly isShortOfMemory: () => boolean
  /** Everything of a handler but its connection. */
  readonly handlerOptions: () => Omit<ConnectionHandlerOptions, 'connection' | 'onClosed'>
}

/** Several times what a network that loses packets, or a task that collects garbage, takes. */
export const untakenMsMax = 30_000
const lookEveryMs = 5_000

export class DataServer {
  readonly #options: DataServerOptions
  readonly #handlers = new Set<ConnectionHandler>()
  #listener: Listener | undefined
  #looking: Timer | undefined
  #onEmpty: (() => void) | undefined

  constructor(options: DataServerOptions) {
    this.#options = options
  }

  /** Rejects when the port can't be had, with the options that change it. */
  async start(): Promise<void> {
    const { network, address } = this.#options
    const listening = network.listen(address, (connection) => {
      this.#accept(connection)
    })
    const options = { host: 'bind-host', port: 'data-port' }
    this.#listener = await withListenAdvice(listening, address, options)
    this.#lookLater()
  }

  get port(): number {
    return this.#listener?.address.port ?? this.#options.address.port
  }

  get connectionCount(): number {
    return this.#handlers.size
  }

  get channelCount(): number {
    let sum = 0
    for (const handler of this.#handlers) sum += handler.channelCount
    return sum
  }

  get queuedBytes(): number {
    let sum = 0
    for (const handler of this.#handlers) sum += handler.queuedBytes
    return sum
  }

  /** No more connections; those that are open go on. Idempotent. */
  async stopAccepting(): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    await listener?.close()
  }

  /** Ends every connection after what is queued on it; resolves when all are closed. */
  async close(): Promise<void> {
    this.#looking?.cancel()
    await this.stopAccepting()
    if (this.#handlers.size === 0) return
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
    for (const handler of [...this.#handlers]) handler.close()
    await empty
  }

  #lookLater(): void {
    this.#looking = this.#options.clock.setTimer(lookEveryMs, () => {
      this.#lookLater()
      if (this.#options.isShortOfMemory()) this.#endStuck()
    })
  }

  /** What waits in the socket of one that takes nothing is memory that the others need. */
  #endStuck(): void {
    for (const handler of [...this.#handlers]) {
      const { untakenMs, queuedBytes } = handler
      if (untakenMs < untakenMsMax) continue
      const seconds = String(Math.round(untakenMs / 1000))
      handler.destroy(
        new ShuffleError(
          'BUSY',
          `the other side took nothing of what was sent for ${seconds} s while others waited for the memory`,
          { fields: { queuedBytes } },
        ),
      )
    }
  }

  #accept(connection: Connection): void {
    const { connectionsMax, handlerOptions } = this.#options
    const options = handlerOptions()
    if (this.#handlers.size >= connectionsMax) {
      const error = new ShuffleError(
        'BUSY',
        `${String(connectionsMax)} connections are open, as many as connections-max allows`,
        { fields: { connectionsMax } },
      )
      options.counters.failed(error)
      options.logger.warn(
        { connectionsMax },
        'a connection was refused: connections-max is reached',
      )
      connection.destroy(error)
      return
    }
    const handler = new ConnectionHandler({
      ...options,
      connection,
      onClosed: (closed) => {
        this.#handlers.delete(closed)
        if (this.#handlers.size === 0) this.#onEmpty?.()
      },
    })
    this.#handlers.add(handler)
    handler.start()
  }
}
