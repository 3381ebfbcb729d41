import { describe, expect, it } from 'vitest'
import { BufferPool } from '../../../client/common/buffer-pool.ts'
import { SpareBuffers } from '../../../client/common/spare-buffers.ts'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

function make() {
  const clock = new VirtualClock()
  const spare = new SpareBuffers({ clock, bytesMax: 64, quietMs: 1000 })
  const waiters = new WaiterRegister({ clock })
  const pool = (bufferSizeBytes: number, bufferCount = 4) =>
    new BufferPool({ bufferSizeBytes, bufferCount, waiters, spare })
  return { clock, spare, pool }
}

describe('spare buffers', () => {
  it('are what a closed pool leaves, and the next of the same size uses', () => {
    const { spare, pool } = make()
    const first = pool(16)
    const [one, two] = [first.acquire(), first.acquire()]
    one?.recycle()
    first.close()
    expect(spare.bytes).toBe(16)
    two?.recycle()
    expect(spare.bytes).toBe(32)
    const other = pool(32).acquire()
    expect([one?.bytes, two?.bytes]).not.toContain(other?.bytes)
    const next = pool(16)
    const again = [next.acquire()?.bytes, next.acquire()?.bytes]
    expect(new Set(again)).toEqual(new Set([one?.bytes, two?.bytes]))
    expect(spare.bytes).toBe(0)
  })

  it('keep no more than their bound', () => {
    const { spare, pool } = make()
    const big = pool(24)
    const buffers = [big.acquire(), big.acquire(), big.acquire()]
    big.close()
    for (const buffer of buffers) buffer?.recycle()
    expect(spare.bytes).toBe(48)
  })

  it('go when none was taken for a while', async () => {
    const { clock, spare, pool } = make()
    const first = pool(16)
    const buffers = [first.acquire(), first.acquire(), first.acquire()]
    first.close()
    for (const buffer of buffers) buffer?.recycle()
    await clock.advance(900)
    expect(pool(16).acquire()).toBeDefined()
    await clock.advance(900)
    expect(spare.bytes).toBe(32)
    await clock.advance(200)
    expect(spare.bytes).toBe(0)
    // And are kept again afterwards.
    const later = pool(16)
    later.acquire()?.recycle()
    later.close()
    expect(spare.bytes).toBe(16)
  })

  it('are gone after close, and take nothing then', () => {
    const { spare, pool } = make()
    const [one, two] = [pool(16), pool(16)]
    one.acquire()?.recycle()
    two.acquire()?.recycle()
    one.close()
    spare.close()
    two.close()
    expect(spare.bytes).toBe(0)
    expect(spare.take(16)).toBeUndefined()
  })
})
