// The Describes of one connection: answered one after the other, so that one table of byte counts is
// in memory at a time, and bounded, so that a client which asks and does not read costs little.
// Owned by the connection's handler.

import { ShuffleError } from '../../client/common/errors.ts'
import { partitionListEntriesMax } from '../../client/protocol/limits.ts'
import { describePartitions, type DescribeRequest } from './describe-partitions.ts'

/** Keys that wait for their answers: two of the longest lists. */
export const waitingKeysMax = 2 * partitionListEntriesMax

interface Waiting {
  readonly request: DescribeRequest
  readonly onFailed: (error: ShuffleError) => void
}

export class DescribeQueue {
  readonly #waiting: Waiting[] = []
  #keyCount = 0
  #isAnswering = false

  /** Throws BUSY when too much waits already. */
  add(request: DescribeRequest, onFailed: (error: ShuffleError) => void): void {
    const count = request.entries.length
    if (this.#keyCount + count > waitingKeysMax) {
      throw new ShuffleError(
        'BUSY',
        `${String(this.#keyCount)} keys wait on this connection to be described, of at most ${String(waitingKeysMax)}; read the answers, then ask again`,
        { fields: { keyCount: this.#keyCount, waitingKeysMax } },
      )
    }
    this.#keyCount += count
    this.#waiting.push({ request, onFailed })
    if (!this.#isAnswering) void this.#answerAll()
  }

  async #answerAll(): Promise<void> {
    this.#isAnswering = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { request, onFailed } = next
      try {
        await describePartitions(request)
      } catch (error) {
        onFailed(asDescribeError(error))
      }
      this.#keyCount -= request.entries.length
    }
    this.#isAnswering = false
  }
}

/** Whatever it was, who asked is answered. */
function asDescribeError(error: unknown): ShuffleError {
  if (error instanceof ShuffleError) return error
  return new ShuffleError('DISK_FAILED', 'describing the partitions failed', { cause: error })
}
