import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import { parseJobId } from '../../../client/common/ids.ts'
import { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const mebibyte = 1024 * 1024
const bufferSizeBytes = 64 * 1024
const jobId = parseJobId('job')

function newLedger(clock = new VirtualClock(), shared = 0): MemoryLedger {
  return new MemoryLedger({
    clock,
    bufferSizeBytes,
    totalBytes: 6 * mebibyte + shared,
    floors: { write: 2 * mebibyte, read: 2 * mebibyte, index: mebibyte, control: mebibyte },
  })
}

const writeBuffers = 32

describe('the memory ledger', () => {
  it('gives each purpose its floor whatever the others hold', () => {
    const ledger = newLedger()
    expect(ledger.tryAcquire({ purpose: 'write', count: writeBuffers })).toHaveLength(writeBuffers)
    expect(ledger.tryAcquire({ purpose: 'write', count: 1 })).toBeUndefined()
    expect(ledger.tryAcquire({ purpose: 'read', count: 32 })).toHaveLength(32)
    expect(ledger.tryReserve({ purpose: 'index', bytes: mebibyte })?.bytes).toBe(mebibyte)
    expect(ledger.tryReserve({ purpose: 'index', bytes: 1 })).toBeUndefined()
    ledger.assertBalanced()
  })

  it('gives what belongs to no floor to whoever comes first', () => {
    const ledger = newLedger(new VirtualClock(), mebibyte)
    expect(ledger.partBytes('read')).toBe(3 * mebibyte)
    expect(ledger.tryAcquire({ purpose: 'write', count: 48 })).toHaveLength(48)
    expect(ledger.tryAcquire({ purpose: 'read', count: 33 })).toBeUndefined()
    expect(ledger.tryAcquire({ purpose: 'read', count: 32 })).toHaveLength(32)
  })

  it('serves waiters of a purpose in arrival order, none overtaking', async () => {
    const ledger = newLedger()
    const held = ledger.tryAcquire({ purpose: 'write', count: writeBuffers }) ?? []
    const served: string[] = []
    const wait = (name: string, count: number) =>
      ledger.acquire({ purpose: 'write', count, timeoutMs: 1000 }).then((buffers) => {
        served.push(name)
        return buffers
      })
    const first = wait('first', 8)
    const second = wait('second', 1)
    held.pop()?.recycle()
    expect(ledger.tryAcquire({ purpose: 'write', count: 1 })).toBeUndefined()
    expect(ledger.waiterCount('write')).toBe(2)
    for (const buffer of held.splice(0)) buffer.recycle()
    const all = (await Promise.all([first, second])).flat()
    expect(served).toEqual(['first', 'second'])
    for (const buffer of all) buffer.recycle()
    expect(ledger.usedBytes('write')).toBe(0)
  })

  it('gives a waiter up at its deadline, by name, and serves the next', async () => {
    const clock = new VirtualClock()
    const ledger = newLedger(clock)
    const held = ledger.tryAcquire({ purpose: 'write', count: writeBuffers - 1 })
    const large = ledger.acquire({ purpose: 'write', count: 2, timeoutMs: 100 })
    const small = ledger.acquire({ purpose: 'write', count: 1, timeoutMs: 1000 })
    await expect(clock.drive(large)).rejects.toMatchObject({
      code: 'BUSY',
      fields: { purpose: 'write' },
    })
    expect(await clock.drive(small)).toHaveLength(1)
    expect(held).toHaveLength(writeBuffers - 1)
    expect(clock.timerCount).toBe(0)
  })

  it('gives a waiter up when its signal aborts', async () => {
    const ledger = newLedger()
    ledger.tryAcquire({ purpose: 'write', count: writeBuffers })
    const abort = new AbortController()
    const waiting = ledger.acquire({
      purpose: 'write',
      count: 1,
      timeoutMs: 1000,
      signal: abort.signal,
    })
    abort.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(ledger.waiterCount('write')).toBe(0)
  })

  it('refuses at once what a part could never hold', async () => {
    const ledger = newLedger()
    await expect(
      ledger.reserve({ purpose: 'index', bytes: mebibyte + 1, timeoutMs: 1000 }),
    ).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
  })

  it('keeps account by job, and drops a job that holds nothing', () => {
    const ledger = newLedger()
    const buffers = ledger.tryAcquire({ purpose: 'write', count: 2, jobId }) ?? []
    const reservation = ledger.tryReserve({ purpose: 'index', bytes: 1000, jobId })
    expect(ledger.usedBytesByJob().get(jobId)).toBe(2 * bufferSizeBytes + 1000)
    reservation?.shrinkTo(10)
    expect(ledger.usedBytesByJob().get(jobId)).toBe(2 * bufferSizeBytes + 10)
    ledger.assertBalanced()
    for (const buffer of buffers) buffer.recycle()
    reservation?.release()
    expect(ledger.usedBytesByJob().size).toBe(0)
  })

  it('asserts that nothing is given back twice', () => {
    const ledger = newLedger()
    const buffer = ledger.tryAcquire({ purpose: 'read', count: 1 })?.[0]
    buffer?.recycle()
    expect(() => buffer?.recycle()).toThrow(/recycled once/)
    const reservation = ledger.tryReserve({ purpose: 'control', bytes: 1 })
    reservation?.release()
    expect(() => reservation?.release()).toThrow(/released once/)
  })

  it('gives read blocks from one piece of memory, as large as there is', () => {
    const ledger = newLedger()
    const request = { purpose: 'read', sizeBytesMin: bufferSizeBytes } as const
    const block = ledger.tryAcquireBlock({ ...request, sizeBytesMax: mebibyte })
    expect(block?.bytes.byteLength).toBe(mebibyte)
    ledger.tryAcquire({ purpose: 'read', count: 10 })
    const rest = ledger.tryAcquireBlock({ ...request, sizeBytesMax: mebibyte })
    expect(rest?.bytes.byteLength).toBe(6 * bufferSizeBytes)
    expect(ledger.tryAcquireBlock({ ...request, sizeBytesMax: mebibyte })).toBeUndefined()
    block?.recycle()
    rest?.recycle()
    ledger.assertBalanced()
  })

  it('gives slabs back after a quiet minute and leaves no timer', async () => {
    const clock = new VirtualClock()
    const ledger = newLedger(clock)
    const buffers = ledger.tryAcquire({ purpose: 'write', count: writeBuffers }) ?? []
    expect(ledger.slabBytes).toBe(2 * mebibyte)
    for (const buffer of buffers) buffer.recycle()
    await clock.advance(59_000)
    expect(ledger.slabBytes).toBe(2 * mebibyte)
    await clock.advance(62_000)
    expect(ledger.slabBytes).toBe(0)
    expect(clock.timerCount).toBe(0)
  })

  it('tells listeners when memory is free and nobody waits for it', async () => {
    const ledger = newLedger()
    let calls = 0
    const stop = ledger.onFree('write', () => {
      calls += 1
    })
    const buffers = ledger.tryAcquire({ purpose: 'write', count: 3 }) ?? []
    for (const buffer of buffers) buffer.recycle()
    await Promise.resolve()
    expect(calls).toBe(1)
    stop()
    ledger.tryAcquire({ purpose: 'write', count: 1 })?.[0]?.recycle()
    await Promise.resolve()
    expect(calls).toBe(1)
  })

  it('refuses all waiters when it closes, and still takes back what is out', async () => {
    const clock = new VirtualClock()
    const ledger = newLedger(clock)
    const held = ledger.tryAcquire({ purpose: 'write', count: writeBuffers }) ?? []
    const waiting = ledger.acquire({ purpose: 'write', count: 1, timeoutMs: 1000 })
    ledger.close()
    await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' })
    for (const buffer of held) buffer.recycle()
    expect(ledger.usedBytes('write')).toBe(0)
    expect(ledger.tryAcquire({ purpose: 'write', count: 1 })).toBeUndefined()
    expect(clock.timerCount).toBe(0)
  })

  it('is balanced after any order of taking and giving back', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ take: fc.boolean(), count: fc.integer({ min: 1, max: 12 }) })),
        (steps) => {
          const ledger = newLedger()
          const out: PooledBuffer[] = []
          for (const { take, count } of steps) {
            if (take) out.push(...(ledger.tryAcquire({ purpose: 'read', count, jobId }) ?? []))
            else for (const buffer of out.splice(0, count)) buffer.recycle()
            expect(ledger.usedBytes('read')).toBe(out.length * bufferSizeBytes)
            ledger.assertBalanced()
          }
          for (const buffer of out) buffer.recycle()
          expect(ledger.usedBytes('read')).toBe(0)
        },
      ),
    )
  })
})
