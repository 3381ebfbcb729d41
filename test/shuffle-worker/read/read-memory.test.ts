import { describe, expect, it } from 'vitest'
import { directBlockBytes } from '../../../client/common/aligned-memory.ts'
import { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import { ReadMemory } from '../../../shuffle-worker/read/read-memory.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const mebibyte = 1024 * 1024

function make(totalBytes = 16 * mebibyte, bufferSizeBytes = 32 * 1024) {
  const ledger = new MemoryLedger({ clock: new VirtualClock(), totalBytes, bufferSizeBytes })
  return { ledger, memory: new ReadMemory(ledger) }
}

describe('read memory', () => {
  it('lets blocks take at most half of the read part', () => {
    const { ledger, memory } = make()
    const blocks = []
    for (let next = memory.tryAcquireBlock(mebibyte); next !== undefined;) {
      blocks.push(next)
      next = memory.tryAcquireBlock(mebibyte)
    }
    expect(memory.blockBytes).toBeLessThanOrEqual(ledger.partBytes('read') / 2)
    expect(memory.blockBytes).toBeGreaterThan(ledger.partBytes('read') / 2 - mebibyte)
    for (const block of blocks) block.recycle()
    expect(memory.blockBytes).toBe(0)
    expect(ledger.usedBytes('read')).toBe(0)
  })

  it('sizes blocks so that all disks have their reads in flight', () => {
    const { ledger, memory } = make()
    const part = ledger.partBytes('read')
    for (const diskCount of [1, 2, 8]) {
      const size = memory.blockBytesFor({ diskCount, readsInFlight: 8 })
      expect(size).toBeLessThanOrEqual(mebibyte)
      expect(size).toBeGreaterThanOrEqual(64 * 1024)
      if (size > 64 * 1024) expect(size * diskCount * 8).toBeLessThanOrEqual(part / 2)
    }
  })

  it.each([4, 8, 32, 256])(
    'gives no block in which a read of whole blocks of the disk finds no room, with buffers of %i KiB',
    (kibibytes) => {
      const bufferSizeBytes = kibibytes * 1024
      const { ledger, memory } = make(128 * bufferSizeBytes, bufferSizeBytes)
      const leastBytes = bufferSizeBytes + 2 * directBlockBytes
      const sizeBytes = memory.blockBytesFor({ diskCount: 100, readsInFlight: 8 })
      expect(sizeBytes).toBeGreaterThan(leastBytes)
      const count = ledger.freeCount('read')
      const taken = ledger.tryAcquire({ purpose: 'read', count }) ?? []
      let block = memory.tryAcquireBlock(sizeBytes)
      while (block === undefined) {
        taken.pop()?.recycle()
        block = memory.tryAcquireBlock(sizeBytes)
      }
      expect(block.bytes.length).toBeGreaterThan(leastBytes)
    },
  )

  it('bounds what is ahead of credit over all channels', () => {
    const { ledger, memory } = make()
    expect(memory.aheadBuffersMax).toBe(ledger.partBytes('read') / 4 / (32 * 1024))
    expect(memory.canReadAhead).toBe(true)
    memory.changeAhead(memory.aheadBuffersMax)
    expect(memory.canReadAhead).toBe(false)
    memory.changeAhead(-memory.aheadBuffersMax)
    expect(memory.aheadBuffers).toBe(0)
    expect(() => {
      memory.changeAhead(-1)
    }).toThrow(/zero/)
  })

  it('gives a buffer while there is one', () => {
    const { memory } = make(8 * mebibyte)
    const buffers = []
    while (memory.hasFree) buffers.push(memory.tryAcquireBuffer(undefined))
    expect(memory.tryAcquireBuffer(undefined)).toBeUndefined()
    expect(memory.tryAcquireBlock(mebibyte)).toBeUndefined()
    for (const buffer of buffers) buffer?.recycle()
    expect(memory.hasFree).toBe(true)
  })
})
