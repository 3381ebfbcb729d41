import { describe, expect, test } from 'vitest'
import { BufferPool } from '../../../client/common/buffer-pool.ts'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import { CreditShares, type CreditTaker } from '../../../client/read/credit-shares.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

class Taker implements CreditTaker {
  readonly reserved: PooledBuffer[]
  backlogLeft = 0
  constructor(buffers: readonly PooledBuffer[]) {
    this.reserved = [...buffers]
  }
  get outstanding() {
    return this.reserved.length
  }
  grant(buffers: readonly PooledBuffer[]) {
    this.reserved.push(...buffers)
    expect(this.outstanding).toBeLessThanOrEqual(this.backlogLeft)
  }
}

function setUp(bufferCount: number) {
  const clock = new VirtualClock()
  const waiters = new WaiterRegister({ clock })
  const pool = new BufferPool({ bufferSizeBytes: 8, bufferCount, waiters })
  const shares = new CreditShares({ pool, clock, waiters })
  const open = async (signal = new AbortController().signal) => {
    const taker = new Taker(await shares.acquireInitial({ signal, fields: {} }))
    shares.register(taker)
    return taker
  }
  const divide = async () => {
    shares.schedule()
    await clock.settle()
  }
  return { clock, pool, shares, open, divide, waiters }
}

describe('the shares of a gate’s channels', () => {
  test('a channel without backlog keeps its two', async () => {
    const { open, divide, pool } = setUp(10)
    const taker = await open()
    await divide()
    expect(taker.outstanding).toBe(2)
    expect(pool.usedCount).toBe(2)
  })

  test('nobody has more than its backlog', async () => {
    const { open, divide } = setUp(10)
    const taker = await open()
    taker.backlogLeft = 5
    await divide()
    expect(taker.outstanding).toBe(5)
  })

  test('what is left beyond two for each channel is divided among those with backlog', async () => {
    const { open, divide, shares } = setUp(20)
    const takers = [await open(), await open(), await open()]
    const [first, second, idle] = takers
    for (const taker of [first, second]) if (taker !== undefined) taker.backlogLeft = 100
    await divide()
    expect(shares.share).toBe(2 + 7)
    expect([first?.outstanding, second?.outstanding, idle?.outstanding]).toEqual([9, 9, 2])
  })

  test('what is recycled goes to who is below its share, in one batch a turn', async () => {
    const { clock, open, divide, pool } = setUp(8)
    const first = await open()
    first.backlogLeft = 100
    await divide()
    expect(first.outstanding).toBe(8)
    for (const buffer of first.reserved.splice(0, 4)) buffer.recycle()
    expect(first.outstanding).toBe(4)
    await clock.settle()
    expect(first.outstanding).toBe(8)
    expect(pool.freeCount).toBe(0)
  })

  test('opens as many channels as it has two buffers for, the next in order', async () => {
    const { clock, open, shares, waiters } = setUp(5)
    const first = await open()
    await open()
    const abort = new AbortController()
    const cancelled = open(abort.signal)
    cancelled.catch(() => undefined)
    const third = open()
    expect(waiters.count).toBe(2)
    abort.abort()
    await expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' })
    shares.unregister(first)
    for (const buffer of first.reserved.splice(0)) buffer.recycle()
    await clock.settle()
    expect((await third).outstanding).toBe(2)
  })

  test('while channels wait that will have room nobody takes more than two', async () => {
    const { open, divide, clock } = setUp(8)
    const first = await open()
    first.backlogLeft = 100
    await divide()
    expect(first.outstanding).toBe(8)
    const second = open()
    for (let time = 0; time < 6; time += 1) {
      first.reserved.shift()?.recycle()
      await clock.settle()
    }
    expect((await second).outstanding).toBe(2)
    expect(first.outstanding).toBeLessThanOrEqual(6)
  })

  test('an opening that is given up lets the next one have its memory', async () => {
    const { shares, clock, open } = setUp(2)
    const { signal } = new AbortController()
    const buffers = await shares.acquireInitial({ signal, fields: {} })
    const next = open()
    shares.abandonOpening()
    for (const buffer of buffers) buffer.recycle()
    await clock.settle()
    expect((await next).outstanding).toBe(2)
  })

  test('closed it divides nothing more', async () => {
    const { open, divide, shares, clock } = setUp(10)
    const taker = await open()
    taker.backlogLeft = 10
    shares.schedule()
    shares.close()
    await divide()
    expect(taker.outstanding).toBe(2)
    expect(clock.eventCount).toBe(0)
  })
})
