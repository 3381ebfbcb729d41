import { describe, expect, it } from 'vitest'
import { isAligned } from '../../../client/common/aligned-memory.ts'
import { DirectMemory } from '../../../shuffle-worker/storage/direct-memory.ts'

describe('direct memory', () => {
  it('is allocated when first needed, and used again', () => {
    const memory = new DirectMemory({ writeBytes: 5000, writesMax: 2, readsMax: 1 })
    expect(memory.bytes).toBe(0)
    expect(memory.writeBytes).toBe(8192)
    const piece = memory.takeForWrite()
    expect(isAligned(piece)).toBe(true)
    expect(memory.bytes).toBe(8192)
    memory.giveFromWrite(piece)
    expect(memory.takeForWrite()).toBe(piece)
    expect(memory.bytes).toBe(8192)
    const read = memory.takeForRead()
    expect(memory.bytes).toBe(8192 + read.byteLength)
  })

  it('no more pieces are out than there are slots', () => {
    const memory = new DirectMemory({ writeBytes: 4096, writesMax: 1, readsMax: 1 })
    memory.takeForWrite()
    expect(() => memory.takeForWrite()).toThrow('slots')
  })
})
