// A handler that keeps what a connection tells it, with promises for what a test waits for.

import type { Connection } from '../../client/common/network.ts'
import { VirtualRandom } from './virtual-random.ts'

export interface ConnectionProbe {
  bytes(): Buffer
  /** How often bytes came. */
  reads(): number
  /** When at least so many bytes have arrived. */
  received(byteCount: number): Promise<void>
  /** When onDrain was called so often. */
  drained(count: number): Promise<void>
  readonly closed: Promise<Error | undefined>
}

/** Starts `connection` and keeps what arrives. */
export function collect(connection: Connection): ConnectionProbe {
  const chunks: Buffer[] = []
  const waiting = new Set<{ readonly isDone: () => boolean; readonly resolve: () => void }>()
  let byteCount = 0
  let drainCount = 0
  const check = () => {
    for (const waiter of waiting) {
      if (!waiter.isDone()) continue
      waiting.delete(waiter)
      waiter.resolve()
    }
  }
  const until = (isDone: () => boolean) =>
    new Promise<void>((resolve) => {
      waiting.add({ isDone, resolve })
      check()
    })
  const closed = new Promise<Error | undefined>((resolve) => {
    connection.start({
      onBytes: (bytes) => {
        chunks.push(Buffer.from(bytes))
        byteCount += bytes.byteLength
        check()
      },
      onDrain: () => {
        drainCount += 1
        check()
      },
      onClose: resolve,
    })
  })
  return {
    bytes: () => Buffer.concat(chunks),
    reads: () => chunks.length,
    received: (wanted) => until(() => byteCount >= wanted),
    drained: (count) => until(() => drainCount >= count),
    closed,
  }
}

/** Bytes that differ from place to place, the same for the same seed. */
export function patternBytes(length: number, seed: number): Buffer {
  return new VirtualRandom(seed).bytes(length)
}
