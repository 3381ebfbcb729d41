import { describe, expect, test } from 'vitest'
import { BufferPool } from '../../../client/common/buffer-pool.ts'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

function setUp(bufferCount = 2) {
  const clock = new VirtualClock()
  const waiters = new WaiterRegister({ clock })
  const usage = { buffersInUse: 0 }
  const pool = new BufferPool({ bufferSizeBytes: 16, bufferCount, waiters, usage })
  return { clock, waiters, usage, pool }
}

describe('a buffer pool', () => {
  test('gives no more than its bound and counts what is out', () => {
    const { pool, usage } = setUp()
    const first = pool.acquire()
    const second = pool.acquire()
    expect(pool.acquire()).toBeUndefined()
    expect([pool.usedCount, pool.freeCount, usage.buffersInUse]).toEqual([2, 0, 2])
    first?.recycle()
    second?.recycle()
    expect([pool.usedCount, pool.freeCount, usage.buffersInUse]).toEqual([0, 2, 0])
  })

  test('uses memory again', () => {
    const { pool } = setUp()
    const first = pool.acquire()
    const memory = first?.bytes
    first?.recycle()
    expect(pool.acquire()?.bytes).toBe(memory)
  })

  test('a second recycle is an assertion failure', () => {
    const { pool } = setUp()
    const buffer = pool.acquire()
    buffer?.recycle()
    expect(() => buffer?.recycle()).toThrow(/exactly once/)
  })

  test('serves waiters in order', async () => {
    const { pool, waiters } = setUp(1)
    const held = pool.acquire()
    const order: string[] = []
    const wait = async (name: string) => {
      const buffer = await pool.acquireWhenFree({ name, timeoutMs: 100 })
      order.push(name)
      buffer.recycle()
    }
    const all = [wait('a'), wait('b'), wait('c')]
    expect(waiters.list().map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    held?.recycle()
    await Promise.all(all)
    expect(order).toEqual(['a', 'b', 'c'])
    expect(pool.usedCount).toBe(0)
  })

  test('a waiter that was cancelled or timed out takes nothing', async () => {
    const { pool, clock } = setUp(1)
    const held = pool.acquire()
    const abort = new AbortController()
    const cancelled = pool.acquireWhenFree({ name: 'a', timeoutMs: 100, signal: abort.signal })
    const late = pool.acquireWhenFree({ name: 'b', timeoutMs: 10 })
    cancelled.catch(() => undefined)
    late.catch(() => undefined)
    abort.abort()
    await clock.advance(10)
    await expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(late).rejects.toMatchObject({ code: 'BUSY' })
    held?.recycle()
    expect(pool.usedCount).toBe(0)
  })

  test('tells of a recycle that no waiter took', async () => {
    const { pool } = setUp(1)
    let told = 0
    pool.onRecycle = () => {
      told += 1
    }
    const held = pool.acquire()
    const waiting = pool.acquireWhenFree({ name: 'a', timeoutMs: 100 })
    held?.recycle()
    expect(told).toBe(0)
    ;(await waiting).recycle()
    expect(told).toBe(1)
  })

  test('closed it gives nothing, ends its waiters and drops what comes back', async () => {
    const { pool, usage } = setUp(1)
    const held = pool.acquire()
    const waiting = pool.acquireWhenFree({ name: 'a', timeoutMs: 100 })
    pool.close()
    pool.close()
    await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(pool.acquireWhenFree({ name: 'b', timeoutMs: 1 })).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    held?.recycle()
    expect(pool.acquire()).toBeUndefined()
    expect(usage.buffersInUse).toBe(0)
  })
})
