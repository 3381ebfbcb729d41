import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { DescribeQueue, waitingKeysMax } from '../../../shuffle-worker/read/describe-queue.ts'
import type { DescribeRequest } from '../../../shuffle-worker/read/describe-partitions.ts'
import { entryOf } from './support/read-bench.ts'

const noFailure = (error: unknown) => {
  throw error
}

function request(count: number, change: Partial<DescribeRequest> = {}): DescribeRequest {
  const entry = entryOf(0, 0, [0, 0])
  return {
    entries: Array.from({ length: count }, () => entry),
    withSubpartitions: false,
    lookup: () => ({ state: 'unknown' }),
    send: () => undefined,
    ready: () => Promise.resolve(true),
    ...change,
  }
}

describe('DescribeQueue', () => {
  it('answers one after the other', async () => {
    const queue = new DescribeQueue()
    const sent: string[] = []
    await new Promise<void>((resolve) => {
      queue.add(request(2, { send: () => sent.push('first') }), noFailure)
      queue.add(
        request(1, {
          send: () => {
            sent.push('second')
            resolve()
          },
        }),
        noFailure,
      )
    })
    expect(sent).toEqual(['first', 'first', 'second'])
  })

  it('refuses more keys than may wait, and takes them when the others are answered', async () => {
    const queue = new DescribeQueue()
    const { promise, resolve } = openPromise<boolean>()
    queue.add(request(waitingKeysMax - 1, { ready: () => promise }), noFailure)
    queue.add(request(1), noFailure)
    expect(() => {
      queue.add(request(1), noFailure)
    }).toThrow(expect.objectContaining({ code: 'BUSY' }) as Error)
    resolve(false)
    await new Promise<void>((answered) => {
      setImmediate(() => {
        queue.add(
          request(1, {
            send: () => {
              answered()
            },
          }),
          noFailure,
        )
      })
    })
  })

  it('tells of a failure, by a code whatever was thrown, and goes on with the next', async () => {
    const queue = new DescribeQueue()
    const known = new ShuffleError('DATA_CORRUPT', 'damaged')
    const unknown = new Error('gone')
    const failures: ShuffleError[] = []
    await new Promise<void>((answered) => {
      for (const thrown of [known, unknown]) {
        queue.add(request(1, { ready: () => Promise.reject(thrown) }), (error) =>
          failures.push(error),
        )
      }
      queue.add(
        request(1, {
          send: () => {
            answered()
          },
        }),
        noFailure,
      )
    })
    expect(failures[0]).toBe(known)
    expect(failures[1]).toMatchObject({ code: 'DISK_FAILED', cause: unknown })
    expect(failures.length).toBe(2)
  })
})

function openPromise<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
