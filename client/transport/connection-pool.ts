// The connections of one task process: one for each worker, shared by all its partitions and gates,
// dialled when first wanted, dialled anew after a cut or GoAway, closed when unused for a while.
// Owned by the ShuffleEnvironment.

import type { Clock } from '../common/clock.ts'
import { isShuffleError, ShuffleError } from '../common/errors.ts'
import type { ClusterId, WorkerId } from '../common/ids.ts'
import type { Network } from '../common/network.ts'
import type { WaiterRegister } from '../common/waiters.ts'
import { WorkerConnection } from './worker-connection.ts'

/** Where a worker is thought to be. The name is resolved at each dial. */
export interface WorkerAddress {
  readonly workerId: WorkerId
  readonly host: string
  readonly port: number
}

export interface ConnectionPoolOptions {
  readonly network: Network
  readonly clock: Clock
  readonly waiters: WaiterRegister
  readonly clusterId: ClusterId
  readonly token: string | undefined
  readonly connectTimeoutMs: number
  readonly connectionIdleMs: number
  readonly pingIntervalMs: number
  readonly idlePingsMax: number
}

const software = 'sluice-client'

export class ConnectionPool {
  readonly #options: ConnectionPoolOptions
  /** By worker: the connection that takes new channels, or the dial that will make it. */
  readonly #current = new Map<WorkerId, Promise<WorkerConnection>>()
  /** Those of them that are connected: nothing has to wait for them. */
  readonly #ready = new Map<WorkerId, WorkerConnection>()
  /** Everything that is not closed, retired connections too. */
  readonly #open = new Set<WorkerConnection>()
  readonly #closing = new AbortController()

  constructor(options: ConnectionPoolOptions) {
    this.#options = options
  }

  get connectionCount(): number {
    return this.#open.size
  }

  get channelCount(): number {
    let count = 0
    for (const connection of this.#open) count += connection.channelCount
    return count
  }

  /**
   * A connection on which a channel can be opened in the same turn. Callers of one worker share a
   * dial; a signal ends its caller's wait only. Rejects with WORKER_UNREACHABLE, WORKER_CHANGED, or
   * what the handshake refused.
   */
  async connect(address: WorkerAddress, signal?: AbortSignal): Promise<WorkerConnection> {
    const ready = this.#ready.get(address.workerId)
    if (ready !== undefined && signal?.aborted !== true) return ready
    const dial = this.#current.get(address.workerId) ?? this.#startDial(address)
    const waiter = this.#options.waiters.wait<WorkerConnection>({
      name: 'a connection to the worker',
      // The dial and the handshake have deadlines of their own.
      timeoutMs: Infinity,
      signal,
      fields: { workerId: address.workerId, host: address.host, port: address.port },
    })
    dial.then(
      (connection) => {
        waiter.resolve(connection)
      },
      (error: unknown) => {
        waiter.reject(error as Error)
      },
    )
    return waiter.promise
  }

  /** Closes all connections; channels hear `onClosed`, dials reject. Idempotent. */
  close(): void {
    const error = new ShuffleError('CANCELLED', 'the shuffle environment was closed')
    this.#closing.abort(error)
    for (const connection of [...this.#open]) connection.close()
  }

  #startDial(address: WorkerAddress): Promise<WorkerConnection> {
    const { workerId } = address
    const forget = () => {
      if (this.#current.get(workerId) !== dial) return
      this.#current.delete(workerId)
      this.#ready.delete(workerId)
    }
    const dial = this.#dial(address, forget)
    this.#current.set(workerId, dial)
    // A failed dial is forgotten, so that the next caller dials again.
    dial.then((connection) => {
      if (this.#current.get(workerId) === dial) this.#ready.set(workerId, connection)
    }, forget)
    return dial
  }

  async #dial(address: WorkerAddress, onRetired: () => void): Promise<WorkerConnection> {
    const { network, clock, clusterId, token } = this.#options
    try {
      this.#closing.signal.throwIfAborted()
      const connection = await network.connect({
        host: address.host,
        port: address.port,
        timeoutMs: this.#options.connectTimeoutMs,
        signal: this.#closing.signal,
      })
      return await new Promise<WorkerConnection>((resolve, reject) => {
        const made = new WorkerConnection({
          connection,
          clock,
          handshake: {
            role: 'client',
            software,
            clusterId,
            expectedWorkerId: address.workerId,
            token,
          },
          workerId: address.workerId,
          handshakeTimeoutMs: this.#options.connectTimeoutMs,
          pingIntervalMs: this.#options.pingIntervalMs,
          idlePingsMax: this.#options.idlePingsMax,
          idleMs: this.#options.connectionIdleMs,
          onReady: () => {
            resolve(made)
          },
          onRetired,
          onClosed: (error) => {
            this.#open.delete(made)
            reject(error)
          },
        })
        this.#open.add(made)
        made.start()
        if (this.#closing.signal.aborted) made.close()
      })
    } catch (error) {
      throw unreachable(address, error)
    }
  }
}

/** A system's error as ours, with the address; a ShuffleError passes unchanged. */
function unreachable(address: WorkerAddress, error: unknown): ShuffleError {
  if (isShuffleError(error)) return error
  return new ShuffleError(
    'WORKER_UNREACHABLE',
    `cannot reach the worker at ${address.host}:${String(address.port)}: ${String(error)}`,
    {
      cause: error,
      fields: { workerId: address.workerId, host: address.host, port: address.port },
    },
  )
}
