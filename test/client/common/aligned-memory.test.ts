import { describe, expect, it } from 'vitest'
import {
  alignDown,
  alignedMemory,
  alignUp,
  directBlockBytes,
  isAligned,
} from '../../../client/common/aligned-memory.ts'

describe('aligned memory', () => {
  it('has the wanted length, zeros, and is taken by direct IO in whole blocks', () => {
    const memory = alignedMemory(100_000)
    expect(memory.byteLength).toBe(100_000)
    expect(memory.every((byte) => byte === 0)).toBe(true)
    expect(isAligned(memory)).toBe(false)
    expect(isAligned(memory.subarray(0, 8 * directBlockBytes))).toBe(true)
    expect(isAligned(memory.subarray(directBlockBytes, 3 * directBlockBytes))).toBe(true)
    expect(isAligned(memory.subarray(1, 1 + directBlockBytes))).toBe(false)
  })

  it('ordinary memory is never taken for aligned', () => {
    expect(isAligned(new Uint8Array(directBlockBytes))).toBe(false)
  })

  it('falls back to ordinary memory where there is none, or no more', () => {
    const refusing = class {
      readonly buffer: ArrayBuffer
      constructor() {
        this.buffer = new ArrayBuffer(0)
        throw new RangeError('out of addresses')
      }
    }
    const memory = alignedMemory(directBlockBytes, refusing)
    expect(memory.byteLength).toBe(directBlockBytes)
    expect(isAligned(memory)).toBe(false)
  })

  it('positions are rounded to blocks', () => {
    expect([0, 1, 4095, 4096, 4097].map(alignDown)).toEqual([0, 0, 0, 4096, 4096])
    expect([0, 1, 4095, 4096, 4097].map(alignUp)).toEqual([0, 4096, 4096, 4096, 8192])
  })
})
