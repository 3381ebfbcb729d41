// Finds the worker that holds a partition. The location in a descriptor is a hint: when nobody
// answers there, or another worker does, the manager is asked for the present address before a
// failure counts. Remembers what it learned. Owned by the ShuffleEnvironment.

import { isShuffleError, ShuffleError } from '../common/errors.ts'
import type { PartitionKey, WorkerId } from '../common/ids.ts'
import type { PartitionLocator } from '../manager/manager-client.ts'
import type { ConnectionPool, WorkerAddress } from './connection-pool.ts'
import type { WorkerConnection } from './worker-connection.ts'

export interface LocatorOptions {
  readonly pool: ConnectionPool
  readonly partitions: PartitionLocator
}

/** Addresses remembered; a cluster has fewer workers, and to forget one costs a question. */
const knownAddressesMax = 4096

export class Locator {
  readonly #pool: ConnectionPool
  readonly #partitions: PartitionLocator
  readonly #known = new Map<WorkerId, WorkerAddress>()

  constructor(options: LocatorOptions) {
    this.#pool = options.pool
    this.#partitions = options.partitions
  }

  /**
   * A connection to the worker of `hint`, wherever it is now; `key` is a partition that it holds.
   * Rejects with WORKER_UNREACHABLE when no address leads to it now, and with WORKER_CHANGED when
   * another worker answers and the manager knows no other address.
   */
  async connect(
    hint: WorkerAddress,
    key: PartitionKey,
    signal?: AbortSignal,
  ): Promise<WorkerConnection> {
    const tried = this.#known.get(hint.workerId) ?? hint
    try {
      return await this.#pool.connect(tried, signal)
    } catch (error) {
      if (!isShuffleError(error, 'WORKER_UNREACHABLE', 'WORKER_CHANGED')) throw error
      const present = await this.#presentOf({ hint, tried, key, failure: error }, signal)
      if (isSameAddress(present, tried)) throw error
      // The hint is worth remembering when it has answered; the manager's word is in any case.
      if (present !== hint) this.#remember(present)
      const connection = await this.#pool.connect(present, signal)
      this.#remember(present)
      return connection
    }
  }

  /** Where to try next: what the manager says; the hint, which may be newer, where it says nothing. */
  async #presentOf(
    at: {
      readonly hint: WorkerAddress
      readonly tried: WorkerAddress
      readonly key: PartitionKey
      readonly failure: ShuffleError
    },
    signal: AbortSignal | undefined,
  ): Promise<WorkerAddress> {
    const { hint, tried, key, failure } = at
    try {
      return await abortable(this.#ask(hint, key, failure), signal)
    } catch (error) {
      const isUnknown = error === failure || isShuffleError(error, 'WORKER_UNREACHABLE')
      if (!isUnknown || isSameAddress(hint, tried)) throw error
      return hint
    }
  }

  /** The address that the manager has for the worker now; `tried` failed with `failure`. */
  async #ask(
    hint: WorkerAddress,
    key: PartitionKey,
    failure: ShuffleError,
  ): Promise<WorkerAddress> {
    let location: WorkerAddress | undefined
    try {
      ;[location] = await this.#partitions.locate(key.jobId, [key])
    } catch (error) {
      if (!isShuffleError(error)) throw error
      // Without the manager nothing is decided: the caller tries again until its deadline.
      throw new ShuffleError('WORKER_UNREACHABLE', `${failure.message}; ${error.message}`, {
        cause: failure,
        fields: { ...failure.fields, managerCode: error.code },
      })
    }
    if (location === undefined) throw failure
    if (location.workerId === hint.workerId) return location
    throw new ShuffleError('WORKER_CHANGED', 'another worker holds the partition now', {
      cause: failure,
      fields: { ...failure.fields, presentWorkerId: location.workerId },
    })
  }

  #remember(address: WorkerAddress): void {
    this.#known.delete(address.workerId)
    this.#known.set(address.workerId, address)
    if (this.#known.size <= knownAddressesMax) return
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest)
      return
    }
  }
}

/** `promise`, or the reason of the signal as soon as it aborts. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort)
    })
  })
}

function isSameAddress(a: WorkerAddress, b: WorkerAddress): boolean {
  return a.host === b.host && a.port === b.port
}
